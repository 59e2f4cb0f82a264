r"""Distances as functions of the configuration, with their derivative rule.

When both shapes of a pair move as one, their distance stays. So its rate depends on how their bodies move against each
other, $\dot d = w \cdot (V_a - V_b)$, with twists about the world origin and the wrench $w = [\sum_k x_k \times s_k;
\sum_k s_k]$ of the slopes $s_k$ of the distance by the vectors $x_k$ of the first shape; the force sums over those that
are points. Distances are found with their wrenches. What is left is linear: a gradient adds the wrenches on each body,
and those of all that a joint carries, and takes their power on the motion of the joint.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..algorithms.kinematics import body_pose_step
from ..model.configuration import v_from_qdot
from ..model.model import Model
from ..shapes.base import Vector
from ..spatial.algebra import IDENTITY, Transform
from ..sweeps.plan import traverse
from ..sweeps.sweep import Field, Sweep
from ..sweeps.topology import ancestors, dof_bodies
from ..sweeps.world_frame import outer, per_dof, pose_and_motions_step
from ..xla.batch_last import broadcast_leading
from ..xla.layout import rows_of
from ..xla.transpose import LinearMap, apply_linear, is_zero, value_and_jvp
from .vectors import add, cross

Distance = Callable[[Any, Any], Array]
Wrench = tuple[Array, ...]
Bodies = tuple[tuple[int, int], ...]
Find = Callable[[Sweep, Field[Transform], Any, bool], Any]


def with_wrench(distance: Distance, points: int, directions: int) -> Callable[[Any, Any], tuple[Array, Wrench]]:
    """`distance` of two shapes, with the wrench of its slopes by what moves of the first."""

    def found(a: Any, b: Any) -> tuple[Array, Wrench]:
        d, pull_back = jax.vjp(lambda a: distance(a, b), a)
        (slopes,) = pull_back(jnp.ones_like(d))
        xs, by = jax.tree.leaves(a), jax.tree.leaves(slopes)
        zero = jnp.zeros_like(d)
        force: Vector = (zero, zero, zero)
        moment = force
        for k in range(0, 3 * (points + directions), 3):
            x, slope = (xs[k], xs[k + 1], xs[k + 2]), (by[k], by[k + 1], by[k + 2])
            moment = add(moment, cross(x, slope))
            force = add(force, slope) if k < 3 * points else force
        return d, (*moment, *force)

    return found


def distances_of(
    model: Model, q: Float[Array, "nq"], world: Any, find: Find, bodies: Sequence[Bodies], links: Iterable[int]
) -> tuple[Float[Array, "n"], ...]:
    """Distances of shapes whose bodies are known, in groups, each of which has a gradient of its own.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        world: Arrays on which the distances depend beside.
        find: `find(run, poses, world, wrenches)` returns the distances (n,) for the poses of the bodies, or a pair of
            these and their wrenches, six arrays (n,).
        bodies: For each distance of each group the bodies of both shapes; -1 is the world.
        links: The links on which the shapes are.
    """
    links, ends = list(links), np.cumsum([len(group) for group in bodies]).tolist()

    def grouped(x: Array) -> tuple[Array, ...]:
        return tuple(rows_of(x, range(end - len(group), end)) for group, end in zip(bodies, ends, strict=True))

    def plain(model: Model, q: Array, world: Any) -> tuple[Array, ...]:
        def alone(run: Sweep, world: Any) -> tuple[Array, ...]:
            return grouped(find(run, run.outward(body_pose_step, IDENTITY), world, False))

        return traverse(model, alone, q, world, links=links)

    def with_motions(run: Sweep, world: Any) -> tuple[tuple[Array, ...], list[Wrench], Array]:
        swept = run.outward(pose_and_motions_step, IDENTITY)
        d, wrenches = find(run, swept.select(lambda x: x[0]), world, True)
        motions = run.columns(swept.select(lambda x: x[1]), 6)
        return grouped(d), list(zip(*map(grouped, wrenches), strict=True)), motions

    @jax.custom_jvp
    def distances(model: Model, q: Array, world: Any) -> tuple[Array, ...]:
        return plain(model, q, world)

    @partial(distances.defjvp, symbolic_zeros=True)
    def _(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        (model, q, world), (d_model, d_q, d_world) = primals, tangents
        if not is_zero((d_model, d_world)):  # sizes, places on links, obstacles
            return value_and_jvp(plain, primals, tangents)
        found, wrenches, motions = traverse(model, with_motions, q, world, links=links)
        arguments = (v_from_qdot(model, q, d_q),)
        rates = [
            apply_linear(_Rates(group), (model, q, motions, of_group), arguments, [d.shape])[0]
            for group, d, of_group in zip(bodies, found, wrenches, strict=True)
        ]
        return found, tuple(rates)

    return distances(model, q, world)


def _push_forward(bodies: Bodies, run: Sweep, motions: Array, wrenches: Wrench, v: Array) -> Array:
    speeds = run.coordinates.spread_v(v)
    own = run.map_tables(lambda S, v: tuple(x * v for x in S), motions, speeds)
    twists, _ = run.sum_paths(own)
    count = run.tree.nb

    def rates(twists: Array, wrenches: Wrench) -> Array:
        twists = jnp.concatenate([twists, jnp.zeros_like(twists[:, :1])], axis=1)  # the world is at rest
        places = ([count if i < 0 else i for i in side] for side in zip(*bodies, strict=True))
        first, second = (twists[:, np.array(side)] for side in places)
        return _product(list(wrenches), list(first - second))

    return run.lanes(rates)(twists, wrenches)


def _pull_back(bodies: Bodies, run: Sweep, motions: Array, wrenches: Wrench, rates: Array) -> Array:
    count = run.tree.nb
    signs = _signs(bodies, count)

    def on_bodies(wrenches: Wrench, rates: Array) -> list[Array]:
        scaled = jnp.stack([w * rates for w in wrenches])
        columns = []
        for i in range(count):
            # Columns stay matrices while they are summed: XLA moves a reshape past one sum in each round of its passes.
            total = jnp.zeros_like(scaled[:, :1])
            for k in np.flatnonzero(signs[:, i]):
                total = total + scaled[:, k : k + 1] if signs[k, i] > 0 else total - scaled[:, k : k + 1]
            columns.append(total[:, 0])
        return columns

    columns = run.fused_map(on_bodies)(wrenches, rates)
    total = run.sum_subtrees(run.lanes(lambda x: jnp.stack(x, axis=1))(columns))

    def powers(S: Array, F: Array) -> Array:
        return _product(list(S), list(F))

    return run.coordinates.gather(run.fused_map(powers)(motions, per_dof(run, total)))


def _product(motions: Sequence[Array], forces: Sequence[Array]) -> Array:
    """The powers of forces on motions, of six rows each."""
    return functools.reduce(jax.lax.add, map(jax.lax.mul, motions, forces))


def _signs(bodies: Bodies, count: int) -> np.ndarray:
    """For each distance and body 1 for that of the first shape, -1 for that of the second."""
    signs = np.zeros((len(bodies), count + 1))
    rows = np.arange(len(bodies))
    first, second = (np.array(side, int) for side in zip(*bodies, strict=True))
    np.add.at(signs, (rows, first), 1.0)
    np.add.at(signs, (rows, second), -1.0)
    return signs[:, :-1]


@dataclass(frozen=True)
class _Rates(LinearMap):
    """Velocities to rates of distances; the parameters are the model, q, the joints' motions and the wrenches."""

    bodies: Bodies
    transposed: bool = False

    def apply(self, parameters: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        model, q, *rest = parameters
        run = partial(_pull_back if self.transposed else _push_forward, self.bodies)
        return (traverse(model, run, q, *rest, *arguments),)

    def transpose(self) -> LinearMap:
        return _Rates(self.bodies, not self.transposed)

    def matrix(self, parameters: tuple[Any, ...]) -> list[list[Array]]:
        model, q, *rest = parameters
        found = traverse(model, partial(_gradients, self.bodies), q, *rest)
        return [[found.T if self.transposed else found]]


def _gradients(bodies: Bodies, run: Sweep, motions: Array, wrenches: Wrench) -> Array:
    moves = _signs(bodies, run.tree.nb) @ ancestors(run.tree)[:, list(dof_bodies(run.tree))]

    def products(S: Array, wrenches: Wrench) -> Array:
        every = outer(wrenches, list(S))
        return every * broadcast_leading(moves, every).astype(every.dtype)

    return run.coordinates.gather(run.lanes(products)(motions, wrenches).T).T
