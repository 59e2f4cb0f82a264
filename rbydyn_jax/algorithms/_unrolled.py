"""The traversal that takes the bodies one by one, one CPU kernel for each step, without what is structurally zero."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..model.model import Model
from ..model.tree import IS_MINUS_ONE, IS_ONE, IS_ZERO
from ..spatial._algebra import IDENTITY, MINUS_ONE, O3, ONE, ZERO, ZERO_MAT3, Force, Motion, Scalar, Transform, Vec3
from ._body import Body, Coordinates, add_states, inertia_from_row, transform_from_numbers
from ._kernels import kernel, opaque
from ._lanes import in_lanes
from ._layout import Rows, batch_last, join, take_scalars
from ._limbs import Blocks, limbs, owners
from ._trigonometry import sincos

_CONSTANTS = {IS_ZERO: ZERO, IS_ONE: ONE, IS_MINUS_ONE: MINUS_ONE}


class Unrolled:
    """The traversal of the bodies one by one. A per-body value is a list with one pytree of scalars for each."""

    def __init__(self, model: Model, q: jax.Array) -> None:
        self.model, self.tree = model, model.tree
        self.coordinates = Coordinates(model)
        self._leaves = (model.geometry, model.inertias)
        self._x = self._positions(self.coordinates.spread_q(q))

    def _positions(self, q: jax.Array) -> list[tuple]:
        """For each joint: its coordinates, and the sine and cosine of those that are angles."""
        sine, cosine = sincos(q) if any(j.angles for j in self.tree.joints) else (q, q)
        q, sine, cosine = batch_last(q), batch_last(sine), batch_last(cosine)
        starts = np.cumsum([0, *(j.nq for j in self.tree.joints)]).tolist()
        return [
            tuple(
                (Rows(sine, (start + k,)), Rows(cosine, (start + k,))) if k in joint.angles else Rows(q, (start + k,))
                for k in range(joint.nq)
            )
            for start, joint in zip(starts, self.tree.joints, strict=False)
        ]

    @staticmethod
    def _numbers(geometry: jax.Array, pattern: Sequence[int]) -> list[Scalar]:
        return [geometry[k] if k >= 0 else _CONSTANTS[k] for k in pattern]

    def _body(self, i: int, leaves: tuple, x: tuple) -> Body:
        geometry, inertias = leaves
        return Body(
            joint=self.tree.joints[i],
            axis=Vec3(*self._numbers(geometry, self.tree.axis_pattern[i])),
            placement=transform_from_numbers(self._numbers(geometry, self.tree.placement_pattern[i])),
            inertia=inertia_from_row([inertias[i, k] for k in range(10)]),
            x=tuple(tuple(y.scalars[0] for y in x_k) if isinstance(x_k, tuple) else x_k.scalars[0] for x_k in x),
        )

    def _run(self, i: int, step: Callable, *inputs: Any) -> Any:
        """One step on body `i` as one kernel."""

        def on_body(leaves: tuple, x: tuple, *rest: Any) -> Any:
            return step(self._body(i, leaves, x), *take_scalars(rest))

        return kernel(on_body)(self._leaves, self._x[i], *inputs)

    def _by_joint(self, x: jax.Array) -> list[Rows]:
        x, starts = batch_last(x), np.cumsum([0, *self.coordinates.sizes]).tolist()
        return [Rows(x, tuple(range(a, b))) for a, b in itertools.pairwise(starts)]

    def split_v(self, v: jax.Array) -> list[Rows]:
        """The velocities (or accelerations, or forces) of each joint."""
        return self._by_joint(self.coordinates.spread_v(v))

    def split_armature(self) -> list[Rows]:
        """The rotor inertia of each joint."""
        return self._by_joint(self.coordinates.armature)

    def shared(self, value: Any) -> list:
        """The same value for every body."""
        return [value] * self.tree.nb

    def nothing(self) -> list:
        """A per-body value of which there is none."""
        return self.shared(None)

    def constants(self, values: Sequence[int]) -> list[Scalar]:
        """Constants 0, 1 or -1 for each body."""
        return [(ZERO, ONE, MINUS_ONE)[k] for k in values]

    def item(self, values: list, k: int) -> list:
        """The k-th element of each body's tuple."""
        return [None if x is None else x[k] for x in values]

    def no_v(self) -> list[tuple]:
        """Joint velocities that are structurally zero."""
        return [(ZERO,) * j.nv for j in self.tree.joints]

    def split_wrenches(self, f: jax.Array) -> list[Force]:
        """The rows of a (nb, 6) array of wrenches."""
        f = batch_last(f.reshape(-1))
        scalars = [f[k] for k in range(f.shape[0])]
        return [
            Force(Vec3(*scalars[6 * i : 6 * i + 3]), Vec3(*scalars[6 * i + 3 : 6 * i + 6])) for i in range(self.tree.nb)
        ]

    def _poses(self, T: jax.Array) -> list[Rows]:
        T = batch_last(in_lanes(lambda x: x.reshape(-1, *x.shape[3:]))(T))
        entries = [*(4 * i + j for i in range(3) for j in range(3)), 3, 7, 11]
        return [Rows(T, tuple(16 * k + entry for entry in entries)) for k in range(len(self.tree.link_names))]

    def split_poses(self, T: jax.Array) -> list[Rows]:
        """The twelve numbers (R by rows, then p) of the pose of each body, from those of the links."""
        poses = self._poses(T)
        return [poses[link] for link in self.tree.principal_links]

    def sum_links(self, f: Callable, *links: jax.Array) -> list:
        """For each body the sum of `f` over its links; of each (n_links, 4, 4) array `f` gets a link's transform."""

        def total(given: list) -> Any:
            return functools.reduce(add_states, (f(*(transform_from_numbers(x.scalars) for x in xs)) for xs in given))

        per_link = list(zip(*(self._poses(x) for x in links), strict=True))
        of_body = [[k for k, body in enumerate(self.tree.link_bodies) if body == i] for i in range(self.tree.nb)]
        return [kernel(total)([per_link[k] for k in links]) for links in of_body]

    def move_links(self, f: Callable, motions: list, T: jax.Array) -> jax.Array:
        """`f(motion of its body, pose)` for each link, (n_links, 4, 4); a link of the world does not move."""

        def change(motion: Motion, pose: Rows) -> Transform:
            return f(motion, transform_from_numbers(pose.scalars))

        still = Transform(ZERO_MAT3, O3)
        bodies, run = self.tree.link_bodies, kernel(change)
        changes = [run(motions[i], x) if i >= 0 else still for i, x in zip(bodies, self._poses(T), strict=True)]
        return self._matrices(changes, corner=ZERO)

    def outward(self, step: Callable, root: Any, *inputs: list, bodies: Sequence[int] | None = None) -> list:
        """`step(body, parent_state, *inputs) -> (state, out)` from the root to the leaves; returns the outs."""
        states: dict[int, Any] = {-1: root}
        outs: list[Any] = [None] * self.tree.nb
        wanted = self.tree.order if bodies is None else bodies
        carriers = {self.tree.parents[i] for i in wanted}
        for i in wanted:

            def carried(body: Body, *rest: Any, is_leaf: bool = i not in carriers) -> Any:
                state, out = step(body, *rest)
                return (None if is_leaf else state), out

            states[i], outs[i] = self._run(i, carried, states[self.tree.parents[i]], *(x[i] for x in inputs))
        return outs

    def inward(self, step: Callable, zero: Any, *inputs: list) -> list:
        """`step(body, sum_of_children, *inputs) -> (up, out)` from the leaves to the root; returns the outs."""
        ups: dict[int, Any] = {}
        outs: list[Any] = [None] * self.tree.nb
        for i in reversed(self.tree.order):
            children = [ups.pop(c) for c in self.tree.children[i]]

            def summed(body: Body, children: list, *rest: Any, is_root: bool = self.tree.parents[i] < 0) -> Any:
                total = zero
                for up in children:
                    total = add_states(total, up)
                up, out = step(body, total, *rest)
                return (None if is_root else up), out

            ups[i], outs[i] = self._run(i, summed, children, *(x[i] for x in inputs))
        return outs

    def each(
        self,
        step: Callable,
        *inputs: list,
        bodies: Sequence[int] | None = None,
        default: Callable[[int], Any] | None = None,
    ) -> list:
        """`step(body, *inputs) -> out` on every body; on those left out, `default(nv of its joint)`."""
        outs = [None if default is None else default(joint.nv) for joint in self.tree.joints]
        for i in range(self.tree.nb) if bodies is None else bodies:
            outs[i] = self._run(i, step, *(x[i] for x in inputs))
        return outs

    def at(self, values: list, body: int) -> Any:
        """The value of one body."""
        return values[body]

    def stack_v(self, values: list) -> jax.Array:
        """The array (nv,) of the scalars of each joint."""
        return self.coordinates.gather(self.join([x for per_joint in values for x in per_joint]))

    def join(self, scalars: Sequence[Scalar]) -> jax.Array:
        """The 1-D array of scalars."""
        return join(scalars, self.dtype)

    @property
    def dtype(self) -> jnp.dtype:
        """The dtype of the computation."""
        return self.model.inertias.dtype

    def stack_columns(self, values: list, width: int) -> jax.Array:
        """The array (width, nv) of a tuple of flat columns (one for each degree of freedom) for each joint."""
        full = self.columns(values, width)
        return self.coordinates.gather(full.T).T if self.tree.has_mimics else full

    def stack_bodies(self, values: list, width: int) -> jax.Array:
        """The array (nb, width) of a flat sequence for each body."""
        return self.join([x for row in values for x in row]).reshape(self.tree.nb, width)

    def lanes(self, f: Callable) -> Callable:
        """`f`, which works on the arrays of all bodies at once, on their leading axes."""
        return in_lanes(f)

    def stage(self, f: Callable) -> Callable:
        """The same, apart from what comes before and after."""
        return in_lanes(kernel(f))

    @property
    def blocks(self) -> Blocks:
        """Those of the degrees of freedom, for matrices."""
        return limbs(self.tree)

    def sum_subtrees(self, table: Sequence[jax.Array]) -> jax.Array:
        """For each body the sum of the columns of it and of all that it carries; `table` has a row (nb,) for each."""

        def totals(rows: jax.Array) -> list:
            of_body = [rows[:, i] for i in range(self.tree.nb)]
            for i in reversed(self.tree.order):
                if (parent := self.tree.parents[i]) >= 0:
                    of_body[parent] = of_body[parent] + of_body[i]
            return of_body

        rows = in_lanes(jnp.stack)(table)
        return self._side_by_side(self.stage(totals)(rows)) if self.tree.nb else rows

    def sum_paths(self, table: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
        """For each body the sum of the columns of it and of its ancestors, and of its ancestors alone; `table` has
        rows with a number for each degree of freedom."""

        def totals(rows: jax.Array) -> list:
            of_body = [jnp.zeros_like(rows[:, 0])] * self.tree.nb
            for k, i in enumerate(owners(self.tree)):
                of_body[i] = of_body[i] + rows[:, k]
            for i in self.tree.order:
                if (parent := self.tree.parents[i]) >= 0:
                    of_body[i] = of_body[i] + of_body[parent]
            return of_body

        def of_parents(of_body: list) -> jax.Array:
            return jnp.stack([of_body[p] if p >= 0 else jnp.zeros_like(of_body[0]) for p in self.tree.parents], axis=1)

        rows = in_lanes(jnp.stack)(table)
        if not self.tree.nb:
            return rows, rows
        of_body = self.stage(totals)(rows)
        return self._side_by_side(of_body), in_lanes(of_parents)(of_body)

    @staticmethod
    def _side_by_side(columns: list) -> jax.Array:
        return in_lanes(lambda columns: jnp.stack(columns, axis=1))(columns)

    def columns(self, values: list, width: int) -> jax.Array:
        """The array (width, dofs of all joints) of a tuple of columns, one for each degree of freedom of a joint."""
        return self.table([column for per_joint in values for column in per_joint], width)

    def table(self, columns: Sequence, width: int) -> jax.Array:
        """The array (width, number of columns) of flat sequences, such as one for each body."""
        joined = self.join([column[k] for k in range(width) for column in columns])
        table = in_lanes(lambda x: x.reshape(width, len(columns), *x.shape[1:]))(joined)
        return opaque(table)  # or XLA joins the rows of a part of it once more

    def _link_transform(self, geometry: jax.Array, pose: Transform, link: int) -> Transform:
        return pose @ transform_from_numbers(self._numbers(geometry, self.tree.link_pattern[link]))

    def link_transform(self, poses: list, link: int) -> Transform:
        """The pose of one link, from the poses of the bodies."""
        body = self.tree.link_bodies[link]
        pose = poses[body] if body >= 0 else IDENTITY
        if link in self.tree.principal_links:
            return pose
        return kernel(lambda g, pose: self._link_transform(g, pose, link))(self.model.geometry, pose)

    def link_poses(self, poses: list) -> jax.Array:
        """The array (n_links, 4, 4) of all links, from the poses of the bodies."""
        return self._matrices([self.link_transform(poses, k) for k in range(len(self.tree.link_names))])

    def link_matrix(self, poses: list, link: int) -> jax.Array:
        """The 4x4 matrix of one link, from the poses of the bodies."""
        return self._matrices([self.link_transform(poses, link)])[0]

    def _matrices(self, transforms: list[Transform], corner: Scalar = ONE) -> jax.Array:
        flat: list[Scalar] = []
        for T in transforms:
            for row, p in zip(T.R, T.p, strict=True):
                flat += [*row, p]
            flat += [ZERO, ZERO, ZERO, corner]
        return in_lanes(lambda x: x.reshape(-1, 4, 4, *x.shape[1:]))(self.join(flat))
