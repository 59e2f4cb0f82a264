"""The sweep in arrays: all isomorphic runs of joints at once, scanned along their length.

The tree is cut into unbranched runs of joints of one type, or of revolute and prismatic joints. Runs of one length and
type at the same depth form a group; a step works on arrays with one entry for each run of the group, and `lax.scan`
takes it along the runs. The program has as many steps as there are groups, whatever the length of a chain. It contains
plain array operations only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..joints import Revolute
from ..model.model import Model, numbers_from_pattern
from ..spatial.algebra import Force, Transform, Vec3
from ..xla.batch_last import broadcast_leading, in_lanes
from ..xla.fusion import kernel
from ..xla.loops import Pieces, scan_in_kernels
from ..xla.structural import Scalars, Structural
from .schedule import RevoluteOrPrismatic, Runs
from .sweep import Body, Field, Sweep, Table, inertia_from_row, scalars_of, transform_from_numbers
from .topology import ancestors, dof_bodies

T = TypeVar("T")
State = TypeVar("State")


def _is_structural(x: Any) -> bool:
    return isinstance(x, Structural)


def _dense(tree: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """A state with its structural constants written out, every scalar of one shape."""

    def fill(x: Any) -> jax.Array:
        return jnp.full(shape, float(x.value), dtype) if _is_structural(x) else jnp.broadcast_to(x, shape)

    return jax.tree.map(fill, tree, is_leaf=_is_structural)


def _weighted(table: Table, weights: np.ndarray) -> jax.Array:
    rows = jnp.stack(table)
    return jnp.matmul(rows, weights.astype(rows.dtype), precision=jax.lax.Precision.HIGHEST)


def _numbers(T: jax.Array, axis: int) -> tuple[jax.Array, ...]:
    """R by rows, then p, of transforms whose rows and columns are two axes from `axis` on."""
    before = (slice(None),) * axis
    return (*(T[*before, i, j] for i in range(3) for j in range(3)), *(T[*before, i, 3] for i in range(3)))


def _matrices(T: Transform, corner: float) -> jax.Array:
    """The 4x4 matrices of transforms whose scalars have an entry for each."""
    zero = jnp.zeros_like(T.p.x)
    rows = [*([*row, p] for row, p in zip(T.R, T.p, strict=True)), [zero, zero, zero, jnp.full_like(zero, corner)]]
    return jnp.stack([jnp.stack(row, axis=1) for row in rows], axis=1)


class ScannedSweep(Sweep):
    """The sweep by runs of joints. The scalars of a field are arrays (length, runs)."""

    # What runs in lanes is kept with its program: it closes over nothing of the sweep but types and groups.
    unrolls = False

    def __init__(self, model: Model, q: jax.Array, of: tuple[Runs, ...]) -> None:
        self.groups = of
        super().__init__(model, [group.joint for group in self.groups])
        self._bodies = self._gather_bodies(self.coordinates.spread_q(q))

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

    def split_dofs(self, x: jax.Array) -> Field[Scalars]:
        return Field(tuple(tuple(x[self._v_starts[g.bodies] + k] for k in range(g.joint.nv)) for g in self.groups))

    def split_wrenches(self, f: jax.Array) -> Field[Force]:
        rows = Field(tuple(f[g.bodies] for g in self.groups))
        return rows.select(
            lambda r: Force(Vec3(*(r[..., k] for k in range(3))), Vec3(*(r[..., k] for k in range(3, 6))))
        )

    def constants(self, values: Sequence[int]) -> Field[jax.Array]:
        return Field(tuple(jnp.asarray(np.array(values)[g.bodies], self.dtype) for g in self.groups))

    def split_poses(self, rows: jax.Array, links: Sequence[int]) -> Field[Scalars]:
        places = np.array([links.index(k) for k in self.tree.principal_links], int)

        groups = self.groups

        def split(T: jax.Array) -> list[Scalars]:
            return [_numbers(T[places[g.bodies]], 2) for g in groups]

        return Field(tuple(in_lanes(split, spread=False)(rows)))

    def sum_links(self, rows: jax.Array, links: Sequence[int]) -> Field[Scalars]:
        of, on = np.array(links, int), np.array([self.tree.link_bodies[k] for k in links], int)
        shares = [np.flatnonzero(on == body) for body in range(self.tree.nb)]
        count = max(map(len, shares), default=0)
        nothing = len(on)  # a row of zeros behind those of the links
        places = np.array([[*own, *[nothing] * (count - len(own))] for own in shares]).reshape(-1, count)

        dtype, groups = self.dtype, self.groups

        def summed(given: jax.Array, placements: jax.Array) -> list[Scalars]:
            own, placement = (transform_from_numbers(_numbers(x, 1)) for x in (given, placements[of]))
            turned = (row + placement.p.scale(x) for row, x in zip(own.R @ placement.R.T, own.p, strict=True))
            lanes = jax.lax.broadcast_shapes(given.shape[3:], placements.shape[3:])
            dense = _dense((*(x for row in turned for x in row), *own.p), (len(on), *lanes), dtype)

            def totals(x: jax.Array, bodies: np.ndarray) -> jax.Array:
                rows = jnp.concatenate([x, jnp.zeros_like(x[:1])])
                return functools.reduce(jax.lax.add, (rows[places[bodies, k]] for k in range(count)))

            return [jax.tree.map(lambda x, g=g: totals(x, g.bodies), dense) for g in groups]

        return Field(tuple(in_lanes(summed, spread=False)(rows, self.model.link_placements)))

    def move_links(self, rates: Field[Transform], rows: jax.Array, links: Sequence[int]) -> Pieces:
        on = np.array([self.tree.link_bodies[k] for k in links], int)

        dtype = self.dtype

        def moved(rows: jax.Array, T: jax.Array) -> jax.Array:
            carried = jnp.concatenate([rows, jnp.zeros_like(rows[:, :1])], axis=1)[:, on]  # the world is -1
            change = transform_from_numbers(list(carried)) @ transform_from_numbers(_numbers(T, 1))
            lanes = jax.lax.broadcast_shapes(rows.shape[2:], T.shape[3:])
            return _matrices(_dense(change, (len(on), *lanes), dtype), 0.0)

        return Pieces((in_lanes(moved, spread=False)(self.table(rates, 12), rows),))

    def _scan(self, group: Runs, step: Callable[..., Any], init: Any, xs: Any, *, reverse: bool) -> tuple[Any, Any]:
        """`step(body, carry, *inputs) -> (carry, out)` along the runs of a group.

        In lanes: XLA's innermost loop would go over the one or two runs otherwise. What is the same for a whole batch,
        such as the numbers of the bodies, stays one lane: spread, it would be an array of all steps in memory.
        """
        length, runs = group.bodies.shape

        dtype = self.dtype

        def along(carry: Any, xs: Any) -> tuple[Any, Any]:
            lanes = [*(x.shape[1:] for x in jax.tree.leaves(carry)), *(x.shape[2:] for x in jax.tree.leaves(xs))]
            shape: Any = (runs, *jax.lax.broadcast_shapes(*lanes))

            def body_step(carry: Any, inputs: Any) -> tuple[Any, Any]:
                (axis, placement, inertia, x), rest = inputs
                after, out = step(Body(group.joint, axis, placement, inertia, x), carry, *rest)
                return _dense(after, shape, dtype), out

            carry, one = _dense(carry, shape, dtype), kernel(body_step, exportable=True, separate_use=True)
            if length == 1:
                carry, out = one(carry, jax.tree.map(lambda a: a[0], xs))
                return carry, jax.tree.map(lambda a: a[None], out)

            return scan_in_kernels(one, carry, xs, reverse=reverse)

        return in_lanes(along, spread=False)(_dense(init, (runs,), self.dtype), xs)

    def _inputs(self, g: int, inputs: Sequence[Any]) -> Any:
        body, shape = self._bodies[g], self.groups[g].bodies.shape
        own = tuple(x.parts[g] if isinstance(x, Field) else _dense(x, shape, self.dtype) for x in inputs)
        return (body.axis, body.placement, body.inertia, body.x), own

    def outward(self, step: Callable[..., tuple[State, T]], root: State, *inputs: Any) -> Field[T]:
        ends: dict[int, int] = {-1: 0}
        stacked = _dense(root, (1,), self.dtype)
        outs: list[T] = []
        for g, group in enumerate(self.groups):
            index = np.array([ends[p] for p in group.parents])
            init = jax.tree.map(lambda a, index=index: a[index], stacked)
            end, out = self._scan(group, step, init, self._inputs(g, inputs), reverse=False)
            outs.append(out)
            for body in group.bodies[-1]:
                ends[int(body)] = len(ends)
            stacked = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), stacked, end)
        return Field(tuple(outs))

    def inward(self, step: Callable[..., tuple[State, T]], zero: State, *inputs: Any) -> Field[T]:
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
        return Field(tuple(outs))

    def map(self, step: Callable[..., T], *inputs: Any) -> Field[T]:
        def on(g: int, body: Body) -> T:
            return step(body, *(x.parts[g] if isinstance(x, Field) else x for x in inputs))

        return Field(tuple(on(g, body) for g, body in enumerate(self._bodies)))

    def _in_body_order(
        self, values: Sequence[Sequence[list[Any]]], starts: Callable[[int], Sequence[int]], count: int, width: int
    ) -> jax.Array:
        """`count` columns in body order: `values[g]` is a sequence of columns of scalars, `starts(body)` their places.

        Columns of bodies that are not in the sweep are zero.
        """
        places = [k for group in self.groups for body in group.bodies.reshape(-1) for k in starts(int(body))]
        order = np.full(count, len(places))
        order[places] = np.arange(len(places))

        dtype, groups = self.dtype, self.groups

        def ordered(values: Sequence[Sequence[list[Any]]]) -> jax.Array:
            lanes = jax.lax.broadcast_shapes(*(x.shape[2:] for x in jax.tree.leaves(values)))
            blocks: list[jax.Array] = []
            for group, columns in zip(groups, values, strict=True):
                shape: Any = (*group.bodies.shape, *lanes)
                block = jnp.stack([jnp.stack(_dense(x, shape, dtype)) for x in columns], axis=3)
                blocks.append(block.reshape(width, -1, *lanes))
            if len(places) < count:
                blocks.append(jnp.zeros((width, 1, *lanes), dtype))
            return jnp.concatenate(blocks, axis=1)[:, order]

        return in_lanes(ordered, spread=False)(values) if places else jnp.zeros((width, count), self.dtype)

    def lanes(self, f: Callable[..., T]) -> Callable[..., T]:
        return f

    def sum_subtrees(self, table: Table) -> jax.Array:
        return _weighted(table, ancestors(self.tree))

    def sum_paths(self, table: Table) -> tuple[jax.Array, jax.Array]:
        with_own = ancestors(self.tree)
        above = with_own & ~np.eye(self.tree.nb, dtype=bool)
        both = _weighted(table, np.concatenate([with_own, above])[:, list(dof_bodies(self.tree))].T)
        return both[:, : self.tree.nb], both[:, self.tree.nb :]

    def columns(self, values: Field[Any], width: int) -> jax.Array:
        rows = [[scalars_of(column) for column in per_joint] for per_joint in values.parts]
        starts = self._v_starts
        return self._in_body_order(rows, lambda i: range(int(starts[i]), int(starts[i + 1])), int(starts[-1]), width)

    def table(self, values: Field[Any], width: int) -> jax.Array:
        return self._in_body_order([[scalars_of(x)] for x in values.parts], lambda i: (i,), self.tree.nb, width)

    def stack_v(self, values: Field[Scalars]) -> jax.Array:
        return self.stack_columns(values, 1)[0]

    def of_parents(self, table: jax.Array, root: Any) -> jax.Array:
        of_world = jnp.stack(_dense(scalars_of(root), (), self.dtype))
        return jnp.concatenate([table, of_world[:, None]], axis=1)[:, np.array(self.tree.parents, int)]

    def _placed(self, poses: Field[Transform], links: Sequence[int], as_result: Callable[[Transform], T]) -> T:
        """`as_result` of the poses of links: its scalars have an entry for each link, in lanes."""
        on = np.array(self.tree.link_bodies, int)[list(links)]
        world = np.eye(4)[:3]
        own = np.array([*world[:, :3].reshape(-1), *world[:, 3]])

        dtype = self.dtype

        def placed(table: jax.Array, placements: jax.Array) -> T:
            constant = jnp.broadcast_to(
                jnp.asarray(broadcast_leading(own[:, None], table), table.dtype), (12, 1, *table.shape[2:])
            )
            carried = jnp.concatenate([table, constant], axis=1)[:, on]
            pose = transform_from_numbers(list(carried)) @ transform_from_numbers(
                _numbers(placements[np.array(links, int)], 1)
            )
            lanes = jax.lax.broadcast_shapes(table.shape[2:], placements.shape[3:])
            return as_result(_dense(pose, (len(links), *lanes), dtype))

        return in_lanes(placed, spread=False)(self.table(poses, 12), self.model.link_placements)

    def link_pose(self, poses: Field[Transform], link: int) -> jax.Array:
        return self._placed(poses, [link], lambda pose: _matrices(pose, 1.0)[0])

    def link_poses(self, poses: Field[Transform], links: Sequence[int]) -> Pieces:
        return Pieces((self._placed(poses, links, lambda pose: _matrices(pose, 1.0)),))

    def link_transform(self, poses: Field[Transform], link: int) -> Transform:
        return self._placed(poses, [link], lambda pose: jax.tree.map(lambda x: x[0], pose))
