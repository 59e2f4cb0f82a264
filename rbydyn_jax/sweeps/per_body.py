"""What goes into the steps of an unrolled sweep, and the arrays of what comes out of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..model.model import Model
from ..model.tree import IS_MINUS_ONE, IS_ONE, IS_ZERO
from ..spatial.algebra import Force, Transform, Vec3
from ..xla.batch_last import in_lanes
from ..xla.fusion import barrier
from ..xla.layout import batch_last, join, rows_of
from ..xla.structural import MINUS_ONE, ONE, ZERO, Scalar, Scalars, Structural
from ..xla.trigonometry import sincos
from .schedule import Group
from .sweep import Field, Sweep, scalars_of, transform_from_numbers

_CONSTANTS = {IS_ZERO: ZERO, IS_ONE: ONE, IS_MINUS_ONE: MINUS_ONE}


class Numbers(NamedTuple):
    """What makes the `Body` of a group, but for the type of the joint."""

    axis: Vec3
    placement: Transform
    inertias: jax.Array
    x: Scalars


class PerBody(Sweep):
    """Fields of arrays and arrays of fields, whose scalars are arrays with an entry for each body of a group.

    What is the same for all bodies of a group may have a single entry.
    """

    def __init__(self, model: Model, q: jax.Array, of: tuple[Group, ...]) -> None:
        super().__init__(model, [model.tree.joints[group.bodies[0]] for group in of])
        self.groups = of
        self._place = {i: (g, lane) for g, group in enumerate(self.groups) for lane, i in enumerate(group.bodies)}
        self._bodies = self._numbers_of_bodies(self.coordinates.spread_q(q))

    def _sines(self, q: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Sine and cosine of the positions of all joints."""
        return sincos(q) if any(j.angles for j in self.tree.joints) else (q, q)

    def _numbers_of_bodies(self, q: jax.Array) -> list[Numbers]:
        tree = self.tree
        sine, cosine = self._sines(q)
        q, sine, cosine = batch_last(q), batch_last(sine), batch_last(cosine)
        starts = np.cumsum([0, *(j.nq for j in tree.joints)]).tolist()

        def coordinate(group: Group, k: int, is_angle: bool) -> Any:
            at = [starts[i] + k for i in group.bodies]
            return (rows_of(sine, at), rows_of(cosine, at)) if is_angle else rows_of(q, at)

        def numbers(group: Group, patterns: Sequence[tuple[int, ...]]) -> list[Scalar]:
            return self._numbers([patterns[i] for i in group.bodies])

        bodies: list[Numbers] = []
        for group, joint in zip(self.groups, self._joints, strict=True):
            x, y, z, *parameters = numbers(group, tree.axis_pattern)
            bodies.append(
                Numbers(
                    Vec3(x, y, z),
                    transform_from_numbers(numbers(group, tree.placement_pattern)),
                    rows_of(self.model.inertias, group.bodies),
                    (*(coordinate(group, k, k in joint.angles) for k in range(joint.nq)), *parameters),
                )
            )
        return bodies

    def _numbers(self, patterns: Sequence[tuple[int, ...]]) -> list[Scalar]:
        """Numbers of the geometry, of patterns with the same constants."""
        columns = zip(*patterns, strict=True)
        return [rows_of(self.model.geometry, c) if c[0] >= 0 else _CONSTANTS[c[0]] for c in columns]

    def split_dofs(self, x: jax.Array) -> Field[Scalars]:
        x, starts = batch_last(x), np.cumsum([0, *self.coordinates.sizes]).tolist()

        def of(group: Group, nv: int) -> Scalars:
            return tuple(rows_of(x, [starts[i] + k for i in group.bodies]) for k in range(nv))

        return Field(tuple(of(group, joint.nv) for group, joint in zip(self.groups, self._joints, strict=True)))

    def split_wrenches(self, f: jax.Array) -> Field[Force]:
        f = batch_last(f.reshape(-1))

        def of(group: Group) -> Force:
            x = [rows_of(f, [6 * i + k for i in group.bodies]) for k in range(6)]
            return Force(Vec3(*x[:3]), Vec3(*x[3:]))

        return Field(tuple(of(group) for group in self.groups))

    def constants(self, values: Sequence[int]) -> Field[Scalar]:

        def of(group: Group) -> Scalar:
            own = [values[i] for i in group.bodies]
            return jnp.array(own, self.dtype) if len(set(own)) > 1 else (ZERO, ONE, MINUS_ONE)[own[0]]

        return Field(tuple(of(group) for group in self.groups))

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

    def stack_v(self, values: Field[Scalars]) -> jax.Array:
        places = [(*self._place[i], k) for i, k in self._dofs]
        return self.coordinates.gather(self._join([(values.parts[g][k], lane) for g, lane, k in places]))

    def columns(self, values: Field[Any], width: int) -> jax.Array:
        dofs = {dof: n for n, dof in enumerate(self._dofs)}
        given = [
            (scalars_of(column), [dofs[i, k] for i in group.bodies])
            for group, per_joint in zip(self.groups, values.parts, strict=True)
            for k, column in enumerate(per_joint)
        ]
        return self._table(given, len(dofs), width)

    def table(self, values: Field[Any], width: int) -> jax.Array:
        given = [(scalars_of(x), list(group.bodies)) for group, x in zip(self.groups, values.parts, strict=True)]
        return self._table(given, self.tree.nb, width)

    def _table(self, columns: list[tuple[list[Scalar], list[int]]], size: int, width: int) -> jax.Array:
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

    def of_parents(self, table: jax.Array, root: Any) -> jax.Array:
        world = self.tree.nb
        parents = [world if p < 0 else p for p in self.tree.parents]

        def chosen(x: jax.Array, root: jax.Array) -> jax.Array:
            x = jnp.concatenate([x, root[:, None]], axis=1)
            # XLA would gather lanes one by one, and copy single numbers slice by slice.
            return rows_of(x, parents, axis=1) if x.ndim > 2 else x[:, np.array(parents, int)]

        return in_lanes(chosen)(table, join(scalars_of(root), self.dtype))
