"""The static half of a robot: topology, names, index maps and the pattern of zeros and ones in its geometry."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from .._check import check_integer, known
from .._errors import ArgumentError, DtypeError, Finding, NameNotFoundError
from ..joints import JOINT_TYPES, JointType

# How one number of the geometry is stored: an index into the leaf `Model.geometry`, or one of these constants.
IS_ZERO, IS_ONE, IS_MINUS_ONE = -1, -2, -3
# Both bit masks of a shape without any of its own on a robot whose other shapes have some: all bits of an `unsigned`.
EVERY_GROUP = 0xFFFFFFFF


@dataclass(frozen=True)
class MimicJoint:
    """A joint whose position is multiplier * (position of `source`) + offset; `slot` indexes both."""

    source: int
    slot: int


@dataclass(frozen=True)
class MobileBase:
    """The wheels of a mobile base; `origin` holds T_base_mobile (4, 4), row by row."""

    kind: str
    origin: tuple[float, ...]
    joints: tuple[str, ...]
    params: tuple[float, ...]


Traversal = Literal["auto", "unrolled", "scanned"]


@dataclass(frozen=True, eq=False)
class KinematicTree:
    """Topology of a robot: hashable by value, so that two loads of one file share every compilation.

    Body `i` is moved by joint `i` relative to body `parents[i]` (-1 is the world). Links are frames on bodies.

    Attributes:
        name: Name of the robot.
        joint_names: Names of the moving joints, in the order of q, v and tau.
        joint_types: Their types, keys of `JOINT_TYPES`.
        parents: Parent body of each body, -1 for the world.
        mimics: For each joint, None or the joint that it mimics.
        link_names: Names of all links, the root first.
        link_bodies: The body to which each link belongs, -1 for the world.
        placement_pattern: For each joint the 12 entries (rows of R, then p) of its placement, as indices or constants.
        axis_pattern: The same for the 3 entries of its axis, and then the indices of the parameters of the joint.
        link_pattern: The same for the 12 entries of each link's placement on its body.
        shape_kinds: The kind of each collision shape, a key of `Model.shapes`.
        shape_links: Its link.
        shape_coltypes: Its group bits; `EVERY_GROUP` has no masks of its own.
        shape_colaffinities: The group bits that it is tested against.
        mobile_base: Wheels, if the robot has them.
        traversal: Form of the sweeps over the tree: ``"auto"`` (by platform and size), ``"unrolled"`` or ``"scanned"``;
            see `with_traversal`.
        report: What was corrected or ignored when the robot was read; not part of the identity of the tree.
    """

    name: str
    joint_names: tuple[str, ...]
    joint_types: tuple[str, ...]
    parents: tuple[int, ...]
    mimics: tuple[MimicJoint | None, ...]
    link_names: tuple[str, ...]
    link_bodies: tuple[int, ...]
    placement_pattern: tuple[tuple[int, ...], ...]
    axis_pattern: tuple[tuple[int, ...], ...]
    link_pattern: tuple[tuple[int, ...], ...]
    shape_kinds: tuple[str, ...] = ()
    shape_links: tuple[int, ...] = ()
    shape_coltypes: tuple[int, ...] = ()
    shape_colaffinities: tuple[int, ...] = ()
    mobile_base: MobileBase | None = None
    traversal: Traversal = "auto"
    report: tuple[Finding, ...] = field(default=(), repr=False)

    @cached_property
    def _key(self) -> str:
        values = tuple(getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "report")
        return hashlib.sha256(repr(values).encode()).hexdigest()

    @cached_property
    def _hash(self) -> int:
        return int(self._key[:15], 16)  # not of the string: that differs between processes, and trees are pickled

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, KinematicTree) and self._key == other._key)

    @property
    def nb(self) -> int:
        """Number of bodies, and of moving joints."""
        return len(self.parents)

    @cached_property
    def joints(self) -> tuple[JointType, ...]:
        """The joint types as objects."""
        return tuple(JOINT_TYPES[t] for t in self.joint_types)

    @cached_property
    def parameter_slots(self) -> tuple[int, ...]:
        """Where the parameters of the joints stand in `Model.geometry`, in the order of the joints."""
        return tuple(k for row in self.axis_pattern for k in row[3:])

    def _slices(self, sizes: tuple[int, ...]) -> tuple[slice, ...]:
        """Consecutive slices over the independent joints; a mimic joint repeats its source's."""
        slices: dict[int, slice] = {}
        at = 0
        for i, (mimic, size) in enumerate(zip(self.mimics, sizes, strict=True)):
            if mimic is None:
                slices[i] = slice(at, at + size)
                at += size
        return tuple(slices[i if m is None else m.source] for i, m in enumerate(self.mimics))

    @cached_property
    def q_slices(self) -> tuple[slice, ...]:
        """The slice of each joint in q."""
        return self._slices(tuple(j.nq for j in self.joints))

    @cached_property
    def v_slices(self) -> tuple[slice, ...]:
        """The slice of each joint in v."""
        return self._slices(tuple(j.nv for j in self.joints))

    @cached_property
    def nq(self) -> int:
        """Size of q."""
        return sum(j.nq for j, m in zip(self.joints, self.mimics, strict=True) if m is None)

    @cached_property
    def nv(self) -> int:
        """Size of v."""
        return sum(j.nv for j, m in zip(self.joints, self.mimics, strict=True) if m is None)

    def _names(self, sizes: tuple[int, ...]) -> tuple[str, ...]:
        own = zip(self.joint_names, sizes, self.mimics, strict=True)
        return tuple(name for name, size, mimic in own if mimic is None for _ in range(size))

    @cached_property
    def q_names(self) -> tuple[str, ...]:
        """The joint of each coordinate of q, never one that mimics another."""
        return self._names(tuple(j.nq for j in self.joints))

    @cached_property
    def v_names(self) -> tuple[str, ...]:
        """The joint of each coordinate of v, never one that mimics another."""
        return self._names(tuple(j.nv for j in self.joints))

    @cached_property
    def singular_joints(self) -> tuple[tuple[str, JointType, slice], ...]:
        """Name, type and slice in q of the independent joints with singular positions, such as a quaternion zero."""
        return tuple(
            (name, joint, place)
            for name, joint, place, mimic in zip(self.joint_names, self.joints, self.q_slices, self.mimics, strict=True)
            if mimic is None and joint.problem(np.zeros(joint.nq))
        )

    def check_configuration(self, q: Any, name: str) -> None:
        """Raises for a configuration at which a joint has no position: a quaternion, or a sine and cosine, of zero.

        Functions of a configuration call it, where its values are known; where they are traced the results are NaN.

        Args:
            q: Configuration [rad, m]; what has another shape, or is NaN there, passes.
            name: Its name, for the message.

        Raises:
            ArgumentError: A joint is at a singular position.
        """
        if not self.singular_joints or (x := known(q)) is None or x.shape != (self.nq,):
            return
        for joint_name, joint, place in self.singular_joints:
            if problem := joint.problem(x[place]):
                raise ArgumentError(f"{name} of joint {joint_name!r} {problem}")

    @cached_property
    def has_mimics(self) -> bool:
        """Whether a joint mimics another."""
        return any(m is not None for m in self.mimics)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The bodies so that parents come before their children."""
        children: dict[int, list[int]] = {}
        for i, p in enumerate(self.parents):
            children.setdefault(p, []).append(i)
        order, stack = [], list(reversed(children.get(-1, [])))
        while stack:
            i = stack.pop()
            order.append(i)
            stack += reversed(children.get(i, []))
        return tuple(order)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each body."""
        lists: list[list[int]] = [[] for _ in self.parents]
        for i in self.order:
            if self.parents[i] >= 0:
                lists[self.parents[i]].append(i)
        return tuple(tuple(c) for c in lists)

    def path(self, body: int) -> tuple[int, ...]:
        """The bodies from the world to `body`, including `body`, excluding the world.

        Args:
            body: Index of a body, or -1 for the world.

        Raises:
            ArgumentError: There is no such body.
            DtypeError: `body` is not an integer.
        """
        body = body if type(body) is int else check_integer(body, "body")
        if not -1 <= body < len(self.parents):
            raise ArgumentError(f"body must be an index below {len(self.parents)}, or -1 for the world, got {body}")
        path = []
        while body >= 0:
            path.append(body)
            body = self.parents[body]
        return tuple(reversed(path))

    def paths(self, bodies: Iterable[int]) -> tuple[int, ...]:
        """All bodies on the paths from the world to `bodies`, parents before children.

        Args:
            bodies: Indices of bodies.

        Raises:
            ArgumentError: There is no such body.
            DtypeError: `bodies` are no integers.
        """
        if not isinstance(bodies, Iterable):
            raise DtypeError(f"bodies must be indices of bodies, got {type(bodies).__name__}")
        wanted = {i for body in bodies for i in self.path(body)}
        return tuple(i for i in self.order if i in wanted)

    @cached_property
    def principal_links(self) -> tuple[int, ...]:
        """For each body, the link whose frame is that of the body."""
        identity = (IS_ONE, *(IS_ZERO,) * 3, IS_ONE, *(IS_ZERO,) * 3, IS_ONE, *(IS_ZERO,) * 3)
        found: dict[int, int] = {}
        for link, (body, pattern) in enumerate(zip(self.link_bodies, self.link_pattern, strict=True)):
            if body >= 0 and pattern == identity:
                found.setdefault(body, link)
        return tuple(found[i] for i in range(self.nb))

    @cached_property
    def welded_slots(self) -> tuple[int, ...]:
        """For each link, its row in `Model.welded_inertias`, or -1 for the principal link of a body."""
        principal, slots, at = set(self.principal_links), [], 0
        for link in range(len(self.link_names)):
            slots.append(-1 if link in principal else at)
            at += link not in principal
        return tuple(slots)

    @cached_property
    def shape_rows(self) -> tuple[int, ...]:
        """For each collision shape, its row in `Model.shapes[kind]`."""
        rows, count = [], dict.fromkeys(self.shape_kinds, 0)
        for kind in self.shape_kinds:
            rows.append(count[kind])
            count[kind] += 1
        return tuple(rows)

    def link_index(self, link: str | int) -> int:
        """Index of a link given by name or index.

        Raises:
            NameNotFoundError: There is no such link.
        """
        return _index(link, self.link_names, "link")

    def joint_index(self, joint: str | int) -> int:
        """Index of a moving joint given by name or index.

        Raises:
            NameNotFoundError: There is no such joint.
        """
        return _index(joint, self.joint_names, "joint")


def _index(item: str | int, names: tuple[str, ...], kind: str) -> int:
    if isinstance(item, str):
        if item in names:
            return names.index(item)
    elif isinstance(item, int | np.integer) and not isinstance(item, bool) and 0 <= item < len(names):
        return int(item)
    raise NameNotFoundError(str(item), kind, names)
