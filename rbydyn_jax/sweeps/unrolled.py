"""The sweep that takes the bodies one by one, or isomorphic limbs as one.

Each step is one CPU kernel, without what is structurally zero.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from ..joints import JointType
from ..model.model import Model
from ..spatial.algebra import IDENTITY, Transform
from ..xla.batch_last import in_lanes
from ..xla.fusion import barrier, kernel, kernel_inputs
from ..xla.gpu_kernel import gpu_kernel
from ..xla.layout import batch_first, batch_last, rows_of
from ..xla.loops import Pieces
from ..xla.structural import ONE, ZERO, Scalar, Scalars, Structural, add
from ..xla.tuning import BODIES_TOGETHER, LINKS_OF_PIECE
from .per_body import Numbers, PerBody
from .schedule import Group
from .sweep import Body, Field, Spread, Table, inertia_from_row, transform_from_numbers
from .topology import dof_bodies

T = TypeVar("T")
State = TypeVar("State")


def _add_states(a: Any, b: Any) -> Any:
    """The sum of two states: an algebra type by its own +, tuples element by element."""
    if type(a) is tuple:
        return tuple(_add_states(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, tuple):
        return a + b
    return add(a, b)


def _spread(tree: Any, size: int) -> Any:
    """Scalars of so many bodies, from those that may be the same for all."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (size, *x.shape[1:])), tree)


def _filled(values: Any, body: Body) -> Any:
    """The results of a step, with an entry for each body where they are constants."""
    return jax.tree.map(lambda x: x if jnp.ndim(x) else jnp.full_like(body.inertia.m, x), values)


def _on_lanes(state: Any, lanes: Sequence[int], size: int) -> Any:
    """The sums of states of children that stand on these lanes of `size`."""
    if lanes == tuple(range(size)):
        return state
    if size == 1:
        each = [jax.tree.map(lambda x, k=k: x[k : k + 1], state) for k in range(len(lanes))]
        return functools.reduce(_add_states, each)
    like = jax.tree.leaves(state)[0]

    def padded(x: Scalar) -> Scalar:
        if x is ZERO:
            return x
        x = jnp.full_like(like, x.value) if isinstance(x, Structural) else x
        nothing = jnp.zeros_like(x[:1])
        return jnp.concatenate([x[(at := lanes.index(k)) : at + 1] if k in lanes else nothing for k in range(size)])

    return jax.tree.map(padded, state, is_leaf=lambda x: isinstance(x, Structural))


def _body(joint: JointType, numbers: Numbers) -> Body:
    inertia = inertia_from_row([numbers.inertias[:, k] for k in range(10)])
    return Body(joint, numbers.axis, numbers.placement, inertia, numbers.x)


def _cut(numbers: Sequence[int]) -> list[Sequence[int]]:
    """The links, or bodies, of each piece of a result."""
    return [numbers[k : k + LINKS_OF_PIECE] for k in range(0, len(numbers), LINKS_OF_PIECE)]


def _products(a: jax.Array, b: jax.Array) -> jax.Array:
    """The products of matrices (n, 4, 4): a loop in the order in which a batch is stored, row by row of a matrix.

    The links of a body would be some hundred kernels otherwise, and each of their results be transposed.
    """
    return functools.reduce(jnp.add, (a[:, :, k, None] * b[:, k, None, :] for k in range(4)))


class UnrolledSweep(PerBody):
    """The sweep by groups of isomorphic bodies; each step is traced once for each type of joint."""

    unrolls = True

    def __init__(self, model: Model, q: jax.Array, of: tuple[Group, ...]) -> None:
        super().__init__(model, q, of)
        self._steps: dict[tuple[Any, ...], Callable[..., Any]] = {}

    def _run(self, g: int, kind: tuple[Any, ...], step: Callable[..., Any], *inputs: Any) -> Any:
        """One step on the bodies of a group as one kernel; a `kind` of step is traced once for each type of joint."""
        bodies = self.groups[g].bodies
        key = (*kind, self.tree.joint_types[bodies[0]], len(bodies))

        joint = self._joints[g]

        def on_bodies(numbers: Numbers, state: Any, *rest: Any) -> Any:
            body = _body(joint, kernel_inputs(numbers))
            return _filled(step(body, state, *kernel_inputs(rest)), body)

        return self._steps.setdefault(key, in_lanes(kernel(on_bodies)))(self._bodies[g], *inputs)

    def _by_group(self, inputs: Sequence[Any]) -> list[tuple[Any, ...]]:
        """What the bodies of each group get of the inputs."""

        def parts(x: Any) -> Sequence[Any]:
            return x.parts if isinstance(x, Field) else [jax.tree.map(lambda k: k[None], x)] * len(self.groups)

        columns = [parts(x) for x in inputs]
        return [tuple(column[g] for column in columns) for g in range(len(self.groups))]

    def outward(self, step: Callable[..., tuple[State, T]], root: State, *inputs: Any) -> Field[T]:
        states: dict[int, Any] = {-1: jax.tree.map(lambda x: x[None], root)}
        outs, given = [], self._by_group(inputs)
        carriers = {group.parent for group in self.groups}
        for g, group in enumerate(self.groups):
            size, is_leaf = len(group.bodies), g not in carriers

            def carried(body: Body, parent: Any, *rest: Any, size: int = size, is_leaf: bool = is_leaf) -> Any:
                state, out = step(body, *_spread((parent, *rest), size))
                return (None if is_leaf else state), out

            parent = states[group.parent]
            if group.parent >= 0 and len(self.groups[group.parent].bodies) > 1:
                parent = jax.tree.map(lambda x, lanes=group.lanes: rows_of(x, lanes), parent)
            states[g], out = self._run(g, ("out", step, is_leaf), carried, parent, *given[g])
            outs.append(out)
        return Field(tuple(outs))

    def inward(self, step: Callable[..., tuple[State, T]], zero: State, *inputs: Any) -> Field[T]:
        ups: list[Any] = [None] * len(self.groups)
        outs: list[Any] = [None] * len(self.groups)
        given = self._by_group(inputs)
        for g in reversed(range(len(self.groups))):
            size, is_root = len(self.groups[g].bodies), self.groups[g].parent < 0
            children = [k for k, group in enumerate(self.groups) if group.parent == g]
            lanes = tuple(self.groups[k].lanes for k in children)

            def summed(
                body: Body,
                ups: list[Any],
                *rest: Any,
                size: int = size,
                is_root: bool = is_root,
                lanes: tuple[tuple[int, ...], ...] = lanes,
            ) -> Any:
                carried = (_on_lanes(up, places, size) for up, places in zip(ups, lanes, strict=True))
                up, out = step(body, functools.reduce(_add_states, carried, zero), *_spread(rest, size))
                return (None if is_root else up), out

            above = [ups[k] for k in children]
            ups[g], outs[g] = self._run(g, ("in", step, is_root, lanes), summed, above, *given[g])
        return Field(tuple(outs))

    def map(self, step: Callable[..., T], *inputs: Any) -> Field[T]:
        def on(g: int, numbers: Numbers, *rest: Any) -> T:
            body = _body(self._joints[g], numbers)
            return _filled(step(body, *_spread(rest, len(self.groups[g].bodies))), body)

        rows = zip(self._bodies, self._by_group(inputs), strict=True)
        return self._together(BODIES_TOGETHER, on, [(body, *own) for body, own in rows])

    @staticmethod
    def _together(count: int, on: Callable[..., T], rows: Sequence[tuple[Any, ...]]) -> Field[T]:
        """`on(group's number, *inputs)` for every group, so many in one kernel."""

        def several(chosen: range, inputs: list[tuple[Any, ...]]) -> list[T]:
            return [on(g, *own) for g, own in zip(chosen, inputs, strict=True)]

        outs: list[T] = []
        for start in range(0, len(rows), count):
            chosen = range(len(rows))[start : start + count]
            outs += in_lanes(kernel(functools.partial(several, chosen)))([rows[g] for g in chosen])
        return Field(tuple(outs))

    def lanes(self, f: Callable[..., T]) -> Callable[..., T]:
        return in_lanes(f)

    def sum_subtrees(self, table: Table) -> jax.Array:
        tree = self.tree

        def totals(rows: jax.Array) -> list[jax.Array]:
            of_body = [rows[:, i] for i in range(tree.nb)]
            for i in reversed(tree.order):
                if (parent := tree.parents[i]) >= 0:
                    of_body[parent] = of_body[parent] + of_body[i]
            return of_body

        rows = in_lanes(jnp.stack)(table)
        return self._side_by_side(self.fused_map(totals)(rows)) if self.tree.nb else rows

    def sum_paths(self, table: Table) -> tuple[jax.Array, jax.Array]:
        tree = self.tree

        def totals(rows: jax.Array) -> list[jax.Array]:
            of_body = [jnp.zeros_like(rows[:, 0])] * tree.nb
            for k, i in enumerate(dof_bodies(tree)):
                of_body[i] = of_body[i] + rows[:, k]
            for i in tree.order:
                if (parent := tree.parents[i]) >= 0:
                    of_body[i] = of_body[i] + of_body[parent]
            return of_body

        rows = in_lanes(jnp.stack)(table)
        if not self.tree.nb:
            return rows, rows
        sums = self._side_by_side(self.fused_map(totals)(rows))
        return sums, self.of_parents(sums, (ZERO,) * len(table))

    @staticmethod
    def _side_by_side(columns: list[jax.Array]) -> jax.Array:
        return in_lanes(lambda columns: jnp.stack(columns, axis=1))(columns)

    def _numbers_of(self, rows: jax.Array, links: Sequence[int]) -> Callable[[Sequence[int]], Scalars]:
        """Of an array (n, 4, 4) for links the twelve numbers (R by rows, then p) of some of these."""
        flat = batch_last(in_lanes(lambda x: x.reshape(-1, *x.shape[3:]))(rows))
        entries = [*(4 * i + j for i in range(3) for j in range(3)), 3, 7, 11]
        row = {link: k for k, link in enumerate(links)}
        return lambda some: tuple(rows_of(flat, [16 * row[link] + entry for link in some]) for entry in entries)

    def split_poses(self, rows: jax.Array, links: Sequence[int]) -> Field[Scalars]:
        poses = self._numbers_of(rows, links)
        return Field(tuple(poses([self.tree.principal_links[i] for i in group.bodies]) for group in self.groups))

    def sum_links(self, rows: jax.Array, links: Sequence[int]) -> Field[Scalars]:
        tree, row = self.tree, {link: k for k, link in enumerate(links)}
        rows, placements = batch_first(rows), barrier(jnp.swapaxes(self.model.link_placements, 1, 2))
        totals = []
        for body, principal in enumerate(tree.principal_links):
            on = [k for k in links if tree.link_bodies[k] == body and k != principal]
            placed = _products(rows_of(rows, [row[k] for k in on]), rows_of(placements, on)) if on else ()
            own = [rows[row[principal]]] if principal in row else []
            totals.append(functools.reduce(jnp.add, [*own, *placed]))
        sums = barrier(jnp.stack(totals)) if totals else jnp.zeros((0, 4, 4), self.dtype)
        return self.split_poses(sums, tree.principal_links)

    def move_links(self, rates: Field[Transform], rows: jax.Array, links: Sequence[int]) -> Pieces:
        rows, pieces = batch_first(rows), []
        for body, run in itertools.groupby(range(len(links)), lambda k: self.tree.link_bodies[links[k]]):
            own = rows_of(rows, list(run))
            rate = batch_first(self._of_bodies(rates, [body], ZERO)) if body >= 0 else None
            pieces.append(jnp.zeros_like(own) if rate is None else _products(rate, own))
        return Pieces(tuple(pieces))

    def _of_link(self, poses: Field[Transform], link: int) -> tuple[Transform, int]:
        """The pose of a link and where in it its lane is, from the poses of the bodies."""
        g, lane = self._place.get(self.tree.link_bodies[link], (-1, 0))
        pose = poses.parts[g] if g >= 0 else IDENTITY
        if link in self.tree.principal_links:
            return pose, lane
        if g >= 0 and len(self.groups[g].bodies) > 1:
            pose = jax.tree.map(lambda x: rows_of(x, [lane]), pose)

        def placed(pose: Transform, numbers: list[Scalar]) -> Transform:
            return pose @ transform_from_numbers(numbers)

        return in_lanes(kernel(placed))(pose, self._numbers([self.tree.link_pattern[link]])), 0

    def link_transform(self, poses: Field[Transform], link: int) -> Transform:
        pose, lane = self._of_link(poses, link)
        return jax.tree.map(lambda x: x[lane], pose)

    def link_pose(self, poses: Field[Transform], link: int) -> jax.Array:
        return self._matrices([self._of_link(poses, link)])[0]

    def link_poses(self, poses: Field[Transform], links: Sequence[int]) -> Pieces:
        tree, principal = self.tree, set(self.tree.principal_links)
        bodies = sorted({tree.link_bodies[k] for k in links if k not in principal} - {-1})
        carriers: dict[int, jax.Array] = {}
        for some in _cut(bodies):
            carriers |= dict(zip(some, batch_first(self._of_bodies(poses, some)), strict=True))
        pieces: list[jax.Array] = []
        # Links that stand at one body, one after the other, or at the places of their bodies (None).
        for body, run in itertools.groupby(links, lambda k: None if k in principal else tree.link_bodies[k]):
            on = list(run)
            if body is None:
                pieces += [self._of_bodies(poses, [tree.link_bodies[k] for k in some]) for some in _cut(on)]
            else:
                placements = rows_of(self.model.link_placements, on)
                pieces.append(_products(carriers[body][None], placements) if body >= 0 else placements)
        return Pieces(tuple(pieces))

    def _of_bodies(self, transforms: Field[Transform], bodies: Sequence[int], corner: Scalar = ONE) -> jax.Array:
        places = (self._place[i] for i in bodies)
        return self._matrices([(transforms.parts[g], lane) for g, lane in places], corner)

    def _matrices(self, transforms: list[tuple[Transform, int]], corner: Scalar = ONE) -> jax.Array:
        entries: list[tuple[Scalar, int]] = []
        for T, lane in transforms:
            rows = [*((*row, p) for row, p in zip(T.R, T.p, strict=True)), (ZERO, ZERO, ZERO, corner)]
            entries += [(x, lane) for row in rows for x in row]
        return in_lanes(lambda x: x.reshape(-1, 4, 4, *x.shape[1:]))(self._join(entries))


class KernelSweep(UnrolledSweep):
    """The unrolled sweep within a kernel of a GPU, which is given the sines and cosines of all positions."""

    def __init__(self, model: Model, q: jax.Array, of: tuple[Group, ...], sines: tuple[jax.Array, jax.Array]) -> None:
        self._given = sines
        super().__init__(model, q, of)

    def elementwise(
        self, f: Callable[..., T], spread: Sequence[Spread], apart: bool = False, separate_use: bool = False
    ) -> Callable[..., T]:
        if not apart:
            return super().elementwise(f, spread, apart, separate_use)

        def on_each(*xs: Any) -> T:
            given = [jax.tree.map(each, x) for each, x in zip(spread, xs, strict=True)]
            function = self.apart(f)
            for _ in range(jax.tree.leaves(given)[0].ndim):
                function = jax.vmap(function)
            return function(*given)

        return on_each

    def apart(self, f: Callable[..., T]) -> Callable[..., T]:
        return gpu_kernel(f)

    def _sines(self, q: jax.Array) -> tuple[jax.Array, jax.Array]:
        return self._given
