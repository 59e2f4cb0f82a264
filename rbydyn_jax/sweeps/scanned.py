"""The array-style traversal: all isomorphic runs of joints at once, scanned along their length.

The tree is cut into unbranched runs of joints of one type, or of revolute and prismatic joints. Runs of one length and
type at the same depth form a group; a step works on arrays with one entry for each run of the group, and `lax.scan`
takes it along the runs. The program has as many steps as there are groups, whatever the length of a chain. It contains
plain array operations only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..joints import Coordinates as JointCoordinates
from ..joints import JointType, Prismatic, Revolute, rotation_about
from ..model.model import Model, numbers_from_pattern
from ..model.tree import KinematicTree
from ..spatial.algebra import Force, Motion, Transform, Vec3
from ..xla.fusion import kernel
from ..xla.structural import ZERO, Scalar, Structural
from .body import Body, Coordinates, inertia_from_row, transform_from_numbers
from .topology import Blocks, ancestors, dof_bodies, whole


@dataclass(frozen=True)
class Group:
    """Isomorphic runs: `bodies[l, r]` is the l-th body of run r, `parents[r]` the body on which it stands."""

    bodies: np.ndarray
    parents: tuple[int, ...]
    joint: JointType


class RevoluteOrPrismatic(JointType):
    """One or the other, so that one step serves a run of both.

    x = [(sine, cosine) of the angle, distance, 1 where it turns, 1 where it slides]; an angle or a distance that the
    joint does not have is zero.
    """

    def transform(self, axis: Vec3, x: JointCoordinates) -> Transform:
        return Transform(rotation_about(axis, *x[0]), axis.scale(x[1]))

    def subspace(self, axis: Vec3, x: JointCoordinates) -> tuple[Motion, ...]:
        return (Motion(axis.scale(x[2]), axis.scale(x[3])),)


def _common_type(a: JointType, b: JointType) -> JointType | None:
    """The type of a run in which both occur, if there is one."""
    if type(a) is type(b):
        return a
    scalar = (Revolute, Prismatic, RevoluteOrPrismatic)
    return RevoluteOrPrismatic() if isinstance(a, scalar) and isinstance(b, scalar) else None


def group_runs(tree: KinematicTree) -> tuple[Group, ...]:
    """The groups of a tree, parents before children."""
    groups: dict[tuple, list[list[int]]] = {}
    types: dict[str, JointType] = {}
    front = [(i, 0) for i in tree.order if tree.parents[i] < 0]
    while front:
        body, depth = front.pop()
        run, joint = [body], tree.joints[body]
        while len(tree.children[run[-1]]) == 1:
            only = tree.children[run[-1]][0]
            common = _common_type(joint, tree.joints[only])
            if common is None:
                break
            joint = common
            run.append(only)
        name = type(joint).__name__
        types[name] = joint
        groups.setdefault((depth, len(run), name), []).append(run)
        front += [(child, depth + 1) for child in tree.children[run[-1]]]
    return tuple(
        Group(np.array(runs).T, tuple(tree.parents[r[0]] for r in runs), types[key[-1]])
        for key, runs in sorted(groups.items(), key=lambda item: item[0])
    )


def _is_structural(x: Any) -> bool:
    return isinstance(x, Structural)


def _dense(tree: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """A state with its structural constants written out, every scalar of one shape."""

    def fill(x: Any) -> jax.Array:
        return jnp.full(shape, float(x.value), dtype) if _is_structural(x) else jnp.broadcast_to(x, shape)

    return jax.tree.map(fill, tree, is_leaf=_is_structural)


def _weighted(table: Sequence[jax.Array], weights: np.ndarray) -> jax.Array:
    rows = jnp.stack(table)
    return jnp.matmul(rows, weights.astype(rows.dtype), precision=jax.lax.Precision.HIGHEST)


class ScannedSweep:
    """The traversal by groups. A per-body value is a list with one pytree of arrays (length, runs) for each group."""

    def __init__(self, model: Model, q: jax.Array) -> None:
        self.model, self.tree = model, model.tree
        self.coordinates = Coordinates(model)
        self.groups = group_runs(model.tree)
        self._bodies = self._gather_bodies(self.coordinates.spread_q(q))

    @property
    def dtype(self) -> jnp.dtype:
        """The dtype of the computation."""
        return self.model.inertias.dtype

    @cached_property
    def _v_starts(self) -> np.ndarray:
        return np.cumsum([0, *self.coordinates.sizes])

    def _gather_bodies(self, q: jax.Array) -> list[Body]:
        tree, geometry = self.tree, self.model.geometry
        placements = numbers_from_pattern(geometry, tree.placement_pattern, 12)
        axes = self.model.joint_axes
        starts = np.cumsum([0, *(j.nq for j in tree.joints)])
        sine, cosine = jnp.sin(q), jnp.cos(q)  # `sincos` is a kernel of the CPU
        bodies = []
        for group in self.groups:
            at = starts[group.bodies]
            if isinstance(group.joint, RevoluteOrPrismatic):
                turns = np.isin(group.bodies, [i for i, j in enumerate(tree.joints) if isinstance(j, Revolute)])
                angle = jnp.where(turns, sine[at], 0.0), jnp.where(turns, cosine[at], 1.0)
                masks = (jnp.asarray(mask, self.dtype) for mask in (turns, ~turns))
                x = (angle, jnp.where(turns, 0.0, q[at]), *masks)
            else:
                angles, nq = group.joint.angles, group.joint.nq
                x = tuple((sine[at + k], cosine[at + k]) if k in angles else q[at + k] for k in range(nq))
                slots = np.array([tree.axis_pattern[i][3:] for i in group.bodies.flat], int)
                x += tuple(geometry[slots[:, k].reshape(at.shape)] for k in range(slots.shape[1]))
            rows, numbers, axis = (a[group.bodies] for a in (self.model.inertias, placements, axes))
            bodies.append(
                Body(
                    joint=group.joint,
                    axis=Vec3(*(axis[..., k] for k in range(3))),
                    placement=transform_from_numbers([numbers[..., k] for k in range(12)]),
                    inertia=inertia_from_row([rows[..., k] for k in range(10)]),
                    x=x,
                )
            )
        return bodies

    def split_v(self, v: jax.Array) -> list[tuple]:
        """The velocities (or accelerations, or forces) of each joint."""
        v = self.coordinates.spread_v(v)
        return [tuple(v[self._v_starts[g.bodies] + k] for k in range(g.joint.nv)) for g in self.groups]

    def no_v(self) -> list[tuple]:
        """Joint velocities that are structurally zero."""
        return [(ZERO,) * g.joint.nv for g in self.groups]

    def shared(self, value: Any) -> list:
        """The same value for every body."""
        return [value] * len(self.groups)

    def nothing(self) -> list:
        """A per-body value of which there is none."""
        return self.shared(None)

    def constants(self, values: Sequence[int]) -> list[jax.Array]:
        """Constants 0, 1 or -1 for each body."""
        return [jnp.asarray(np.array(values)[g.bodies], self.dtype) for g in self.groups]

    def unzip(self, values: list, k: int) -> list:
        """The k-th element of each body's tuple."""
        return [x[k] for x in values]

    def split_wrenches(self, f: jax.Array) -> list[Force]:
        """The rows of a (nb, 6) array of wrenches."""
        rows = [f[g.bodies] for g in self.groups]
        return [Force(Vec3(*(r[..., k] for k in range(3))), Vec3(*(r[..., k] for k in range(3, 6)))) for r in rows]

    @staticmethod
    def _numbers(T: jax.Array) -> tuple[jax.Array, ...]:
        """R by rows, then p, of transforms."""
        return (*(T[..., i, j] for i in range(3) for j in range(3)), *(T[..., i, 3] for i in range(3)))

    def split_poses(self, T: jax.Array) -> list[tuple]:
        """The twelve numbers (R by rows, then p) of the pose of each body, from those of the links."""
        return [self._numbers(T[np.array(self.tree.principal_links)[g.bodies]]) for g in self.groups]

    def sum_links(self, f: Callable, *links: jax.Array) -> list:
        """For each body the sum of `f` over its links; of each (n_links, 4, 4) array `f` gets a link's transform."""
        per_link = f(*(transform_from_numbers(self._numbers(x)) for x in links))
        is_on = np.arange(self.tree.nb)[:, None] == np.array(self.tree.link_bodies)[None]

        def total(x: jax.Array, bodies: np.ndarray) -> jax.Array:
            return jnp.where(is_on, x, 0.0).sum(axis=1)[bodies]

        return [jax.tree.map(lambda x, g=g: total(x, g.bodies), per_link) for g in self.groups]

    def move_links(self, f: Callable, motions: list, T: jax.Array) -> jax.Array:
        """`f(motion of its body, pose)` for each link, (n_links, 4, 4); a link of the world does not move."""
        rows = jnp.pad(self.stack_bodies([(*m.w, *m.v) for m in motions], 6), ((0, 1), (0, 0)))  # the world is -1
        columns = rows[np.array(self.tree.link_bodies)].T
        change = f(Motion(Vec3(*columns[:3]), Vec3(*columns[3:])), transform_from_numbers(self._numbers(T)))
        top = jnp.stack([jnp.stack([*row, p], axis=-1) for row, p in zip(change.R, change.p, strict=True)], axis=-2)
        return jnp.pad(top, ((0, 0), (0, 1), (0, 0)))

    def split_armature(self) -> list[tuple]:
        """The rotor inertia of each joint."""
        per_dof = self.coordinates.armature
        return [tuple(per_dof[self._v_starts[g.bodies] + k] for k in range(g.joint.nv)) for g in self.groups]

    def _scan(self, group: Group, step: Callable, init: Any, xs: Any, *, reverse: bool) -> tuple[Any, Any]:
        """`step(body, carry, *inputs) -> (carry, out)` along the runs of a group."""
        length, runs = group.bodies.shape

        def body_step(carry: Any, inputs: Any) -> tuple[Any, Any]:
            (axis, placement, inertia, x), rest = inputs
            after, out = step(Body(group.joint, axis, placement, inertia, x), carry, *rest)
            return _dense(after, (runs,), self.dtype), out

        carry, one = _dense(init, (runs,), self.dtype), kernel(body_step, exportable=True)
        if length == 1:
            carry, out = one(carry, jax.tree.map(lambda a: a[0], xs))
            return carry, jax.tree.map(lambda a: a[None], out)
        return jax.lax.scan(one, carry, xs, reverse=reverse)

    def _inputs(self, g: int, inputs: Sequence[list]) -> Any:
        body = self._bodies[g]
        return (body.axis, body.placement, body.inertia, body.x), tuple(x[g] for x in inputs)

    def outward(self, step: Callable, root: Any, *inputs: list) -> list:
        """`step(body, parent_state, *inputs) -> (state, out)` from the root to the leaves; returns the outs."""
        ends: dict[int, int] = {-1: 0}
        stacked = _dense(root, (1,), self.dtype)
        outs = []
        for g, group in enumerate(self.groups):
            index = np.array([ends[p] for p in group.parents])
            init = jax.tree.map(lambda a, index=index: a[index], stacked)
            end, out = self._scan(group, step, init, self._inputs(g, inputs), reverse=False)
            outs.append(out)
            for body in group.bodies[-1]:
                ends[int(body)] = len(ends)
            stacked = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), stacked, end)
        return outs

    def inward(self, step: Callable, zero: Any, *inputs: list) -> list:
        """`step(body, sum_of_children, *inputs) -> (up, out)` from the leaves to the root; returns the outs."""
        waiting: dict[int, list[Any]] = {}
        outs: list[Any] = [None] * len(self.groups)
        for g in reversed(range(len(self.groups))):
            group = self.groups[g]
            runs = group.bodies.shape[1]
            init = _dense(zero, (runs,), self.dtype)
            for r, body in enumerate(group.bodies[-1]):
                for up in waiting.pop(int(body), []):
                    init = jax.tree.map(lambda a, b, r=r: a.at[r].add(b), init, up)
            up, outs[g] = self._scan(group, step, init, self._inputs(g, inputs), reverse=True)
            by_parent: dict[int, list[int]] = {}
            for r, parent in enumerate(group.parents):
                by_parent.setdefault(parent, []).append(r)
            for parent, members in by_parent.items():
                if parent >= 0:
                    total = jax.tree.map(lambda a, m=members: a[np.array(m)].sum(axis=0), up)
                    waiting.setdefault(parent, []).append(total)
        return outs

    def each(self, step: Callable, *inputs: list) -> list:
        """`step(body, *inputs) -> out` on every body."""
        return [step(self._bodies[g], *(x[g] for x in inputs)) for g in range(len(self.groups))]

    def join(self, scalars: Sequence[Scalar]) -> jax.Array:
        """The 1-D array of scalars."""
        return jnp.stack(_dense(list(scalars), (), self.dtype))

    def _in_body_order(self, values: list, starts: Callable[[int], Sequence[int]], width: int) -> jax.Array:
        """Rows in body order: `values[g]` is a sequence of rows of scalars, `starts(body)` their places."""
        if not self.groups:
            return jnp.zeros((0, width), self.dtype)
        blocks, places = [], []
        for group, rows in zip(self.groups, values, strict=True):
            shape = group.bodies.shape
            block = jnp.stack([jnp.stack(_dense(list(row), shape, self.dtype), axis=-1) for row in rows], axis=-2)
            blocks.append(block.reshape(-1, block.shape[-1]))
            places += [place for body in group.bodies.reshape(-1) for place in starts(int(body))]
        return jnp.concatenate(blocks)[np.argsort(places)]

    def lanes(self, f: Callable) -> Callable:
        """`f`, which works on the arrays of all bodies at once, on their leading axes."""
        return f

    def fused_map(self, f: Callable) -> Callable:
        """Like `lanes`, as a kernel of its own."""
        return kernel(f, exportable=True)

    @property
    def blocks(self) -> Blocks:
        """Those of the degrees of freedom, for matrices."""
        return whole(len(dof_bodies(self.tree)))

    def sum_subtrees(self, table: Sequence[jax.Array]) -> jax.Array:
        """For each body the sum of the columns of it and of all that it carries; `table` has a row (nb,) for each."""
        return _weighted(table, ancestors(self.tree))

    def sum_paths(self, table: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
        """For each body the sum of the columns of it and of its ancestors, and of its ancestors alone; `table` has
        rows with a number for each degree of freedom."""
        with_own = ancestors(self.tree)
        above = with_own & ~np.eye(self.tree.nb, dtype=bool)
        both = _weighted(table, np.concatenate([with_own, above])[:, list(dof_bodies(self.tree))].T)
        return both[:, : self.tree.nb], both[:, self.tree.nb :]

    def columns(self, values: list, width: int) -> jax.Array:
        """The array (width, dofs of all joints) of a tuple of columns, one for each degree of freedom of a joint."""
        return self._in_body_order(values, lambda i: range(int(self._v_starts[i]), int(self._v_starts[i + 1])), width).T

    def table(self, columns: Sequence, width: int) -> jax.Array:
        """The array (width, nb) of one flat sequence for each body."""
        return self.stack_bodies(list(columns), width).T

    def of_parents(self, table: jax.Array, root: Sequence[Scalar]) -> jax.Array:
        """The columns of the parents of all bodies; `root` is that of the world."""
        return jnp.concatenate([table, self.join(root)[:, None]], axis=1)[:, np.array(self.tree.parents, int)]

    def stack_v(self, values: list) -> jax.Array:
        """The array (nv,) of the scalars of each joint."""
        return self.stack_columns([tuple((x,) for x in per_joint) for per_joint in values], 1)[0]

    def stack_columns(self, values: list, width: int) -> jax.Array:
        """The array (width, nv) of a tuple of flat columns (one for each degree of freedom) for each joint."""
        return self.coordinates.gather(self.columns(values, width).T).T

    def stack_bodies(self, values: list, width: int) -> jax.Array:
        """The array (nb, width) of a flat sequence for each body."""
        return self._in_body_order([(row,) for row in values], lambda i: (i,), width)

    def link_poses(self, poses: list) -> jax.Array:
        """The array (n_links, 4, 4) of all links, from the poses of the bodies."""
        flat = [tuple(x for row, p in zip(pose.R, pose.p, strict=True) for x in (*row, p)) for pose in poses]
        top = self.stack_bodies(flat, 12).reshape(-1, 3, 4)
        top = jnp.concatenate([top, jnp.eye(4, dtype=self.dtype)[None, :3]])  # the world, found by index -1
        bottom = jnp.broadcast_to(jnp.array([[[0.0, 0.0, 0.0, 1.0]]], self.dtype), (self.tree.nb + 1, 1, 4))
        bodies = jnp.concatenate([top, bottom], axis=1)
        return bodies[np.array(self.tree.link_bodies)] @ self.model.link_placements

    def link_matrix(self, poses: list, link: int) -> jax.Array:
        """The 4x4 matrix of one link, from the poses of the bodies."""
        return self.link_poses(poses)[link]

    def link_transform(self, poses: list, link: int) -> Transform:
        """The pose of one link, from the poses of the bodies."""
        return transform_from_numbers(self._numbers(self.link_matrix(poses, link)))
