"""Contacts that a robot keeps: patches and points that do not move relative to the world or to another link."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from .._check import check_array, check_not_negative, check_real
from .._errors import ArgumentError, DtypeError
from ..constraints._bodies import BodyMotions, body_of, link_frame
from ..constraints._vectors import Numbers, check_link, direction, not_negative, positive, scalar, vector
from ..constraints._vectors import pose as rigid
from ..constraints.loops import Baumgarte, LoopJoint
from ..model.model import Model
from ..spatial import cones
from ..spatial.safe import safe_norm


class ContactModel(eqx.Module):
    """A contact of a link, which has no acceleration and bears a force within a cone.

    Of a contact that moves, the rate of its velocity in the axes of its link is zero, so that several points of a link
    that turns do not contradict one another.

    Attributes:
        size: Number of components of its force.
    """

    link: eqx.AbstractVar[str | int]
    ref: eqx.AbstractVar[str | int | None]
    damping: eqx.AbstractVar[Float[Numbers, ""]]
    least: eqx.AbstractVar[Float[Numbers, ""]]
    most: eqx.AbstractVar[Float[Numbers, ""]]

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of components of its force."""

    @abc.abstractmethod
    def joint(self) -> LoopJoint:
        """The joint that holds it."""

    @abc.abstractmethod
    def axes(self, model: Model, bodies: BodyMotions) -> Float[Array, "n n"]:
        """What takes components of the force in the frame after the joint to those in the contact's axes."""

    @abc.abstractmethod
    def faces(self) -> Float[Array, "k n"]:
        """The matrix F of its cone, F f <= 0."""

    @property
    def gain(self) -> Baumgarte:
        """What takes a velocity of the contact to zero."""
        rate: Any = self.damping
        return Baumgarte(0.0, rate, 0.0, rate)


class PatchContact(ContactModel):
    r"""A rectangle of a link that touches a plane with its whole area, such as a sole.

    Its force is a wrench [n; f] on the link about the middle of the rectangle in the axes of the contact: the force in
    the pyramid of friction $|f_x|, |f_y| \le \mu f_z / \sqrt2$, the centre of pressure in the rectangle, and the yaw
    moment within the friction of the whole area (see `spatial.cones.wrench_cone_faces`). The pyramid is an inner
    approximation of the cone, which is no linear condition. `constraints.ContactPatch` is a rectangle in the world.

    Attributes:
        link: The link that touches; static.
        pose: T_link_contact (4, 4): its origin in the middle of the rectangle, z along the normal towards the link.
        half_sizes: Half of its length along x and of its width along y (2,) [m].
        friction: Coefficient of friction.
        least: The smallest normal force [N].
        most: The largest normal force [N].
        damping: What takes a velocity of the contact to zero [1/s].
        ref: The link that is touched; None is the world; static.

    Example:
        >>> from rbydyn_jax.whole_body import PatchContact
        >>> PatchContact("sole", None, (0.1, 0.06), 0.7).size
        6
    """

    link: str | int = eqx.field(static=True)
    pose: Float[Numbers, "4 4"]
    half_sizes: Float[Numbers, "2"]
    friction: Float[Numbers, ""]
    least: Float[Numbers, ""]
    most: Float[Numbers, ""]
    damping: Float[Numbers, ""]
    ref: str | int | None = eqx.field(static=True)

    def __init__(
        self,
        link: str | int,
        pose: Any = None,
        half_sizes: Any = (0.1, 0.05),
        friction: Any = 0.5,
        *,
        least: Any = 0.0,
        most: Any = None,
        damping: Any = 0.0,
        ref: str | int | None = None,
    ) -> None:
        """A pose that is not given is the identity; `most` that is not given is infinite.

        Raises:
            ArgumentError: `link` and `ref` are the same, or, where values are known, the pose is no rigid transform,
                the friction is not positive, a number is negative, or `least` is more than `most`.
            DtypeError: An argument is not numeric, or a link is neither a name nor an index.
            ShapeError: An argument has another shape.
        """
        self.link, self.ref = _links(link, ref)
        self.pose = rigid(pose, "pose")
        traced = isinstance(half_sizes, jax.Array)
        self.half_sizes = (
            check_array(half_sizes, "half_sizes", (2,)) if traced else check_real(half_sizes, "half_sizes", (2,))
        )
        check_not_negative(self.half_sizes, "half_sizes")
        self.friction = positive(friction, "friction")
        self.least, self.most = _between(least, most)
        self.damping = not_negative(damping, "damping")

    @property
    def size(self) -> int:
        return 6

    def joint(self) -> LoopJoint:
        return LoopJoint("fixed", self.ref, self.link, successor_pose=self.pose)

    def axes(self, model: Model, bodies: BodyMotions) -> Array:
        return jnp.eye(6, dtype=bodies.poses.dtype)

    def faces(self) -> Array:
        return cones.wrench_cone_faces(jnp.asarray(self.half_sizes), jnp.asarray(self.friction))


class PointContact(ContactModel):
    r"""A point of a link that touches a plane and does not slip; the link may turn about it.

    Its force is that on the link, in axes whose z is the normal, within the pyramid of friction
    $|f_x|, |f_y| \le \mu f_z / \sqrt2$ of the contact's tangents.

    Attributes:
        link: The link that touches; static.
        point: The point in the link's coordinates (3,) [m].
        normal: Unit normal of the plane towards the link, in the axes of the link that is touched (3,).
        friction: Coefficient of friction.
        least: The smallest normal force [N].
        most: The largest normal force [N].
        damping: What takes a velocity of the contact to zero [1/s].
        ref: The link that is touched; None is the world; static.

    Example:
        >>> from rbydyn_jax.whole_body import PointContact
        >>> PointContact("wheel", (0.0, 0.0, -0.1), friction=0.7).size
        3
    """

    link: str | int = eqx.field(static=True)
    point: Float[Numbers, "3"]
    normal: Float[Numbers, "3"]
    friction: Float[Numbers, ""]
    least: Float[Numbers, ""]
    most: Float[Numbers, ""]
    damping: Float[Numbers, ""]
    ref: str | int | None = eqx.field(static=True)

    def __init__(
        self,
        link: str | int,
        point: Any = (0.0, 0.0, 0.0),
        normal: Any = (0.0, 0.0, 1.0),
        friction: Any = 0.5,
        *,
        least: Any = 0.0,
        most: Any = None,
        damping: Any = 0.0,
        ref: str | int | None = None,
    ) -> None:
        """The normal may be of any length; `most` that is not given is infinite.

        Raises:
            ArgumentError: `link` and `ref` are the same, or, where values are known, the normal has no length, the
                friction is not positive, a number is negative, or `least` is more than `most`.
            DtypeError: An argument is not numeric, or a link is neither a name nor an index.
            ShapeError: An argument has another shape.
        """
        self.link, self.ref = _links(link, ref)
        self.point, self.normal = vector(point, "point"), direction(normal, "normal")
        self.friction = positive(friction, "friction")
        self.least, self.most = _between(least, most)
        self.damping = not_negative(damping, "damping")

    @property
    def size(self) -> int:
        return 3

    def joint(self) -> LoopJoint:
        eye = jnp.eye(4, dtype=jnp.asarray(self.point).dtype)
        return LoopJoint("spherical", self.ref, self.link, successor_pose=eye.at[:3, 3].set(self.point))

    def axes(self, model: Model, bodies: BodyMotions) -> Array:
        eye = jnp.eye(4, dtype=bodies.poses.dtype)
        after, before = (link_frame(model, bodies.poses, x, eye)[:3, :3] for x in (self.link, self.ref))
        return _frame(before @ self.normal).T @ after

    def faces(self) -> Array:
        return cones.friction_cone_faces(jnp.asarray(self.friction))


def _links(link: Any, ref: Any) -> tuple[str | int, str | int | None]:
    """The two links of a contact, not the same one."""
    if check_link(link, "link") == check_link(ref, "ref", True):
        raise ArgumentError(f"link and ref must be two links, got {link!r} for both: a link does not touch itself")
    return link, ref


def _frame(normal: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """A rotation whose third column is a unit vector; its first is across the axis that is farthest from it."""
    away = jax.nn.one_hot(jnp.argmin(jnp.abs(normal)), 3, dtype=normal.dtype)
    across = jnp.cross(away, normal)
    x = across / safe_norm(across)
    return jnp.stack([x, jnp.cross(normal, x), normal], axis=1)


def _between(least: Any, most: Any) -> tuple[Numbers, Numbers]:
    low = not_negative(least, "least")
    if most is None:
        return low, np.asarray(np.inf)
    high = scalar(most, "most")
    if not any(isinstance(x, Tracer) for x in (low, high)) and not high >= low:
        raise ArgumentError(f"most must be at least {least}, the smallest force, got {most}")
    return low, high


def check_contacts(model: Model, contacts: Any, dtype: Any) -> tuple[ContactModel, ...]:
    """The contacts, cast to one dtype.

    Raises:
        ArgumentError: One is of a link that touches itself, or what it does not move relative to.
        DtypeError: They are no sequence of `PatchContact` and `PointContact`.
        NameNotFoundError: One names a link that the robot does not have.
    """
    if isinstance(contacts, ContactModel) or not isinstance(contacts, Sequence) or isinstance(contacts, str | bytes):
        raise DtypeError(f"contacts must be a sequence of PatchContact or PointContact, got {type(contacts).__name__}")
    for i, contact in enumerate(contacts):
        if not isinstance(contact, ContactModel):
            raise DtypeError(f"contacts must hold PatchContact or PointContact, got {type(contact).__name__}")
        link, ref = (None if k is None else model.link_index(k) for k in (contact.link, contact.ref))
        if link == ref:
            same = f"{contact.link!r} and {contact.ref!r}, which are the same"
            raise ArgumentError(f"link and ref of contacts[{i}] must be two links, got {same}")
        if body_of(model, link) == body_of(model, ref):
            against = "the world" if contact.ref is None else repr(contact.ref)
            raise ArgumentError(f"link of contacts[{i}] must move relative to {against}, got {contact.link!r}")
    return tuple(jax.tree.map(lambda x: jnp.asarray(x, dtype), contact) for contact in contacts)
