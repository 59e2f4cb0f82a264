"""What goes into the steps of a traversal by groups, and the arrays of what comes out of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..joints import JointType
from ..model.model import Model
from ..model.tree import IS_MINUS_ONE, IS_ONE, IS_ZERO
from ..spatial.algebra import Force, Vec3
from ..xla.batch_last import in_lanes
from ..xla.fusion import barrier
from ..xla.layout import batch_last, join, rows_of
from ..xla.structural import MINUS_ONE, ONE, ZERO, Scalar, Structural
from ..xla.trigonometry import sincos
from .body import Coordinates, transform_from_numbers
from .schedule import Group

_CONSTANTS = {IS_ZERO: ZERO, IS_ONE: ONE, IS_MINUS_ONE: MINUS_ONE}


class PerBody:
    """The per-body values of a traversal by groups.

    Each is a list with a pytree for each group. Its scalars are arrays with an entry for each body of the group, or a
    single one for all of them.
    """

    def __init__(self, model: Model, q: jax.Array, of: tuple[Group, ...]) -> None:
        self.model, self.tree = model, model.tree
        self.coordinates = Coordinates(model)
        self.groups = of
        self._place = {i: (g, lane) for g, group in enumerate(self.groups) for lane, i in enumerate(group.bodies)}
        self._bodies = self._numbers_of_bodies(self.coordinates.spread_q(q))

    def _numbers_of_bodies(self, q: jax.Array) -> list[tuple]:
        """For each group what makes a `Body`, but for the type of the joint."""
        tree = self.tree
        sine, cosine = sincos(q) if any(j.angles for j in tree.joints) else (q, q)
        q, sine, cosine = batch_last(q), batch_last(sine), batch_last(cosine)
        starts = np.cumsum([0, *(j.nq for j in tree.joints)]).tolist()

        def coordinate(group: Group, k: int) -> Any:
            at = [starts[i] + k for i in group.bodies]
            return (rows_of(sine, at), rows_of(cosine, at)) if k in self._joint(group).angles else rows_of(q, at)

        def numbers(group: Group, patterns: Sequence[tuple[int, ...]]) -> list[Scalar]:
            return self._numbers([patterns[i] for i in group.bodies])

        bodies = []
        for group in self.groups:
            x, y, z, *parameters = numbers(group, tree.axis_pattern)
            bodies.append(
                (
                    Vec3(x, y, z),
                    transform_from_numbers(numbers(group, tree.placement_pattern)),
                    rows_of(self.model.inertias, group.bodies),
                    (*(coordinate(group, k) for k in range(self._joint(group).nq)), *parameters),
                )
            )
        return bodies

    def _numbers(self, patterns: Sequence[tuple[int, ...]]) -> list[Scalar]:
        """Numbers of the geometry, of patterns with the same constants."""
        columns = zip(*patterns, strict=True)
        return [rows_of(self.model.geometry, c) if c[0] >= 0 else _CONSTANTS[c[0]] for c in columns]

    def _joint(self, group: Group) -> JointType:
        return self.tree.joints[group.bodies[0]]

    @property
    def dtype(self) -> jnp.dtype:
        """The dtype of the computation."""
        return self.model.inertias.dtype

    def _by_joint(self, x: jax.Array) -> list[tuple]:
        x, starts = batch_last(x), np.cumsum([0, *self.coordinates.sizes]).tolist()

        def of(group: Group, k: int) -> jax.Array:
            return rows_of(x, [starts[i] + k for i in group.bodies])

        return [tuple(of(group, k) for k in range(self._joint(group).nv)) for group in self.groups]

    def split_v(self, v: jax.Array) -> list[tuple]:
        """The velocities (or accelerations, or forces) of each joint."""
        return self._by_joint(self.coordinates.spread_v(v))

    def no_v(self) -> list[tuple]:
        """Joint velocities that are structurally zero."""
        return [(ZERO,) * self._joint(group).nv for group in self.groups]

    def split_armature(self) -> list[tuple]:
        """The rotor inertia of each joint."""
        return self._by_joint(self.coordinates.armature)

    def split_wrenches(self, f: jax.Array) -> list[Force]:
        """The rows of a (nb, 6) array of wrenches."""
        f = batch_last(f.reshape(-1))

        def of(group: Group) -> Force:
            x = [rows_of(f, [6 * i + k for i in group.bodies]) for k in range(6)]
            return Force(Vec3(*x[:3]), Vec3(*x[3:]))

        return [of(group) for group in self.groups]

    def shared(self, value: Any) -> list:
        """The same value for every body."""
        return [jax.tree.map(lambda x: x[None], value)] * len(self.groups)

    def nothing(self) -> list:
        """A per-body value of which there is none."""
        return [None] * len(self.groups)

    def constants(self, values: Sequence[int]) -> list[Scalar]:
        """Constants 0, 1 or -1 for each body."""

        def of(group: Group) -> Scalar:
            own = [values[i] for i in group.bodies]
            return jnp.array(own, self.dtype) if len(set(own)) > 1 else (ZERO, ONE, MINUS_ONE)[own[0]]

        return [of(group) for group in self.groups]

    def unzip(self, values: list, k: int) -> list:
        """The k-th element of each body's tuple."""
        return [x[k] for x in values]

    def _entry(self, values: list, body: int, k: int | None = None) -> tuple[Any, int]:
        """The value of a body's group (or its k-th part), and where in it the body is."""
        g, lane = self._place[body]
        return (values[g] if k is None else values[g][k]), lane

    @property
    def _dofs(self) -> list[tuple[int, int]]:
        """The body of each degree of freedom, and which it is of its joint."""
        return [(i, k) for i, joint in enumerate(self.tree.joints) for k in range(joint.nv)]

    def _join(self, entries: Sequence[tuple[Scalar, int]]) -> jax.Array:
        """The 1-D array of scalars, each of a lane of an array."""
        starts: dict[int, int] = {}
        pieces: list[Scalar] = []
        indices, size = [], 0
        for x, lane in entries:
            if isinstance(x, Structural):
                pieces.append(x)
                indices.append(size)
                size += 1
                continue
            if id(x) not in starts:
                starts[id(x)] = size
                pieces.append(x)
                size += len(x)
            indices.append(starts[id(x)] + lane)
        return rows_of(join(pieces, self.dtype), indices)

    def stack_v(self, values: list) -> jax.Array:
        """The array (nv,) of the scalars of each joint."""
        return self.coordinates.gather(self._join([self._entry(values, i, k) for i, k in self._dofs]))

    def stack_columns(self, values: list, width: int) -> jax.Array:
        """The array (width, nv) of a tuple of flat columns (one for each degree of freedom) for each joint."""
        full = self.columns(values, width)
        return self.coordinates.gather(full.T).T if self.tree.has_mimics else full

    def stack_bodies(self, values: list, width: int) -> jax.Array:
        """The array (nb, width) of a flat sequence for each body."""
        entries = (self._entry(values, i) for i in range(self.tree.nb))
        return self._join([(x, lane) for row, lane in entries for x in row]).reshape(self.tree.nb, width)

    def columns(self, values: list, width: int) -> jax.Array:
        """The array (width, dofs of all joints) of a tuple of columns, one for each degree of freedom of a joint."""
        dofs = {dof: n for n, dof in enumerate(self._dofs)}
        given = [
            (column, [dofs[i, k] for i in group.bodies])
            for group, per_joint in zip(self.groups, values, strict=True)
            for k, column in enumerate(per_joint)
        ]
        return self._table(given, len(dofs), width)

    def table(self, values: list, width: int) -> jax.Array:
        """The array (width, nb) of one flat sequence for each body."""
        given = [(x, list(group.bodies)) for group, x in zip(self.groups, values, strict=True)]
        return self._table(given, self.tree.nb, width)

    def _table(self, columns: list[tuple[Sequence[Scalar], list[int]]], size: int, width: int) -> jax.Array:
        """The array (width, size) of columns that stand side by side, and where each is to stand; others are zero."""
        given = {k for _, own in columns for k in own}
        rest = (([ZERO] * width, [k]) for k in range(size) if k not in given)
        columns = sorted([*columns, *rest], key=lambda column: column[1])

        def side_by_side(x: Scalar, own: list[int]) -> list[Scalar]:
            return [x] * len(own) if isinstance(x, Structural) else [x]

        pieces = [x for k in range(width) for column, own in columns for x in side_by_side(column[k], own)]
        order = np.argsort([k for _, own in columns for k in own]).tolist()

        def in_order(x: jax.Array) -> jax.Array:
            return rows_of(x.reshape(width, size, *x.shape[1:]), order, axis=1)

        return barrier(in_lanes(in_order)(join(pieces, self.dtype)))  # or XLA joins the rows of a part of it once more

    def of_parents(self, table: jax.Array, root: Sequence[Scalar]) -> jax.Array:
        """The columns of the parents of all bodies; `root` is that of the world."""
        world = self.tree.nb
        parents = [world if p < 0 else p for p in self.tree.parents]

        def chosen(x: jax.Array, root: jax.Array) -> jax.Array:
            x = jnp.concatenate([x, root[:, None]], axis=1)
            # XLA would gather lanes one by one, and copy single numbers slice by slice.
            return rows_of(x, parents, axis=1) if x.ndim > 2 else x[:, np.array(parents, int)]

        return in_lanes(chosen)(table, join(root, self.dtype))
