"""Algorithms about the world origin, in world axes: there, quantities of bodies add without being transformed.

Only the poses are found joint by joint. All else is arithmetic on tables with a column for each body or each degree of
freedom, sums along the paths from the root or over the subtrees, and products of each joint with its ancestors: the
program hardly grows with the robot.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..model.model import Model
from ..spatial.algebra import IDENTITY, NO_MOTION, O3, Force, Inertia, Motion, Sym3, Transform, Vec3
from ..xla.batch_last import broadcast_leading
from ..xla.fusion import barrier
from ..xla.layout import batch_first
from ..xla.structural import Scalars
from .coordinates import Coordinates
from .sweep import Body, Sweep, Table, inertia_from_row, transform_from_numbers
from .topology import ancestors, dof_bodies, masks

Rows = jax.Array | Sequence[jax.Array]


def pose_and_motions_step(body: Body, parent: Transform) -> tuple[Transform, tuple[Transform, tuple[Motion, ...]]]:
    """The pose of a body, and the columns of its motion subspace."""
    pose = parent @ body.transform
    return pose, (pose, tuple(pose.motion(s) for s in body.subspace))


def poses_and_motions(run: Sweep) -> tuple[Table, Table]:
    """The poses of all bodies (12, nb), and the columns of their motion subspaces (6, dofs)."""
    found = run.outward(pose_and_motions_step, IDENTITY)
    return run.table(found.select(lambda x: x[0]), 12), run.columns(found.select(lambda x: x[1]), 6)


class Moving(NamedTuple):
    """A robot in motion: tables of the bodies, but for S, whose columns are those of the degrees of freedom."""

    poses: Table
    S: Table
    V: jax.Array
    V0: jax.Array  # velocities of the parents
    A: jax.Array
    A0: jax.Array  # accelerations of the parents


class _Moved(NamedTuple):
    pose: Transform
    S: tuple[Motion, ...]
    V: Motion
    A: Motion


def _moving_step(
    body: Body, parent: tuple[Transform, Motion, Motion], v: Scalars, a: Scalars
) -> tuple[tuple[Transform, Motion, Motion], _Moved]:
    pose, V0, A0 = parent[0] @ body.transform, *parent[1:]
    S = tuple(pose.motion(s) for s in body.subspace)
    velocity, acceleration = V0, A0
    for s, rate, drive in zip(S, v, a, strict=True):
        velocity = velocity + s.scale(rate)
        acceleration = acceleration + V0.cross(s.scale(rate)) + s.scale(drive)
    return (pose, velocity, acceleration), _Moved(pose, S, velocity, acceleration)


def moving(run: Sweep, v: jax.Array | None, a: jax.Array | None) -> Moving:
    """The robot in motion; None stands for zero. Its base is accelerated against gravity."""
    # V must not be constants: those would have no batch.
    velocities = run.split_v(barrier(jnp.zeros(run.tree.nv, run.dtype)) if v is None else v)
    accelerations = run.split_v(a)
    base = Motion(O3, run.base_acceleration)
    found = run.outward(_moving_step, (IDENTITY, NO_MOTION, base), velocities, accelerations)
    V, A = run.table(found.select(lambda x: x.V), 6), run.table(found.select(lambda x: x.A), 6)
    V0, A0 = run.of_parents(V, NO_MOTION), run.of_parents(A, base)
    poses, S = run.table(found.select(lambda x: x.pose), 12), run.columns(found.select(lambda x: x.S), 6)
    return Moving(poses, S, V, V0, A, A0)


def per_dof(run: Sweep, table: Table) -> Table:
    """The columns of degrees of freedom, from those of the bodies."""
    sizes = [joint.nv for joint in run.tree.joints]
    if set(sizes) <= {1}:
        return table

    def spread(table: Table) -> jax.Array:
        rows = table if isinstance(table, jax.Array) else jnp.stack(table)
        columns = [rows[:, i : i + 1] for i in range(len(sizes))]
        repeated = (jnp.broadcast_to(x, (len(rows), n, *x.shape[2:])) for x, n in zip(columns, sizes, strict=True))
        return jnp.concatenate(list(repeated), axis=1)

    return run.lanes(spread)(table)


def of_joints(run: Sweep, table: Table) -> Table:
    """The columns of the bodies, from those of the degrees of freedom: the sums over each joint."""
    sizes = [joint.nv for joint in run.tree.joints]
    if set(sizes) <= {1}:
        return table
    starts = np.cumsum([0, *sizes])

    def summed(table: Table) -> jax.Array:
        rows = table if isinstance(table, jax.Array) else jnp.stack(table)
        parts = [rows[:, i:j].sum(axis=1, keepdims=True) for i, j in itertools.pairwise(starts)]
        return jnp.concatenate(parts, axis=1)

    return run.lanes(summed)(table)


def motion(table: Table) -> Motion:
    """The motions of six rows."""
    return Motion(Vec3(*table[:3]), Vec3(*table[3:6]))


def force(table: Table) -> Force:
    """The forces of six rows."""
    return Force(Vec3(*table[:3]), Vec3(*table[3:6]))


def pose(table: Table) -> Transform:
    """The transforms of twelve rows, R by rows before p."""
    return transform_from_numbers(tuple(table))


def inertia(table: Table) -> Inertia:
    """The inertias of ten rows, in the order of their entries."""
    return Inertia(table[0], Vec3(*table[1:4]), Sym3(*table[4:10]))


def total(run: Sweep, table: Table) -> jax.Array:
    """The sum of the columns of a table."""
    return run.lanes(lambda x: jnp.stack(list(x)).sum(axis=1))(table)


def inertias(run: Sweep, poses: Table) -> tuple[jax.Array, ...]:
    """The inertia of each body about the world origin (10, nb)."""
    return run.map_tables(lambda P, N: inertia_from_row(N).transform(pose(P)), poses, run.model.inertias.T)


class Composites(NamedTuple):
    """Composite bodies, each of which is all that a joint carries, and what moves them."""

    S: Table
    momenta: Table  # columns of I_c S: what each motion gives to all that its joint carries
    inertias: Table  # of the single bodies
    composite: Table


def composites(run: Sweep) -> Composites:
    """The composite bodies; columns of S and of momenta are those of the degrees of freedom."""
    poses, motions = poses_and_motions(run)
    own = inertias(run, poses)
    composite = run.sum_subtrees(own)
    momenta = run.map_tables(lambda S, C: inertia(C).apply(motion(S)), motions, per_dof(run, composite))
    return Composites(motions, momenta, own, composite)


def outside(run: Sweep, table: Table) -> jax.Array:
    """The table as an array with the batch in front, where matrices are written as they are handed out."""
    return batch_first(run.lanes(jnp.stack)(list(table)))


def outer(left: Rows, right: Rows) -> jax.Array:
    """The products [j, i] of column j of `left` with column i of `right`."""
    terms = [a[:, None] * b[None, :] for a, b in zip(left, right, strict=True)]
    return functools.reduce(jax.lax.add, terms)


# Below, all products of all joints are formed, and those along a path kept: faster than the kept ones one by one.


def symmetric_products(left: Rows, right: Rows, diagonal: jax.Array, below: np.ndarray, same: np.ndarray) -> jax.Array:
    """The products of each joint (left) with itself and its ancestors (right), and their transpose, plus a diagonal."""
    taken, lower, upper = below | np.tril(same), outer(left, right), outer(right, left)
    both = jnp.where(broadcast_leading(taken, lower), lower, jnp.where(broadcast_leading(taken.T, lower), upper, 0.0))
    return both + jnp.where(broadcast_leading(np.eye(len(taken), dtype=bool), lower), diagonal[:, None], 0.0)


def symmetric(run: Sweep, left: Table, right: Table, *, rotors: bool = True) -> jax.Array:
    """The symmetric matrix of the products of each joint (left) with itself and its ancestors (right).

    With `rotors`, their inertia is added on the diagonal.
    """
    below, same = masks(run.tree)
    diagonal = run.coordinates.armature if rotors else jnp.zeros(len(below), run.dtype)
    return _independent(run, symmetric_products(outside(run, left), outside(run, right), diagonal, below, same))


def unsymmetric(run: Sweep, lower: tuple[Table, Table], upper: tuple[Table, Table]) -> jax.Array:
    """The matrix of the products `lower` [j, i] of each joint with itself and its ancestors i, and `upper` [i, j]."""
    below, same = masks(run.tree)
    from_below, from_above = (outer(outside(run, left), outside(run, right)) for left, right in (lower, upper))
    full = jnp.where(below | same, from_below, jnp.where(below.T, from_above, 0.0))
    return _independent(run, full)


def second_order(model: Model, full: jax.Array) -> jax.Array:
    """The array (nv, rows, nv) of one over the degrees of freedom of all joints, which are its first and last axis."""
    gather = Coordinates(model).gather
    return jnp.moveaxis(gather(jnp.moveaxis(gather(full), 2, 0)), 0, 2) if model.tree.has_mimics else full


def _independent(run: Sweep, full: jax.Array) -> jax.Array:
    """A matrix for the independent velocities, from one for those of all joints."""
    gather = run.coordinates.gather
    return gather(gather(full).T).T if run.tree.has_mimics else full


def by_body(run: Sweep, moments: Sequence[jax.Array], forces: Sequence[jax.Array]) -> jax.Array:
    """The wrenches (6, nb n), body after body, of n on each.

    The rows of `moments` (3 n, nb) are the x of all wrenches, then the y and z. Those of `forces` are of the first
    wrenches only; the others are pure moments.
    """
    width = len(moments) // 3

    def in_order(rows: Sequence[jax.Array]) -> jax.Array:
        table = jnp.stack(list(rows))
        lanes = table.shape[2:]
        split = jnp.swapaxes(table.reshape(3, -1, *table.shape[1:]), 1, 2)
        padding = ((0, 0), (0, 0), (0, width - split.shape[2]), *((0, 0) for _ in lanes))
        return jnp.pad(split, padding).reshape(3, -1, *lanes)

    return jnp.concatenate([batch_first(run.lanes(in_order)(list(rows))) for rows in (moments, forces)])


def powers_of_carried(model: Model, motions: jax.Array, wrenches: jax.Array) -> jax.Array:
    """The powers (nv, nb n) of each joint's motion (6, dofs) with n wrenches on each body that it carries (6, nb n)."""
    tree = model.tree
    carried = ancestors(tree)[:, list(dof_bodies(tree))].T
    full = outer(motions, wrenches)
    full = jnp.where(np.repeat(carried, wrenches.shape[1] // tree.nb, axis=1), full, 0.0)
    return Coordinates(model).gather(full)
