r"""The derivatives of inverse dynamics as matrices, in world coordinates [Singh, Russell, Wensing 2022].

A joint moved along $s$ carries its subtree as one. Relative to the subtree, only the motion of the joint's parent has
changed: the velocity by $\dot\psi = V_p \times s$, the acceleration by
$\ddot\psi = A_p \times s + V_p \times \dot\psi$. The forces answer with the composite inertia $I$ and the composite
velocity product $2 B$, which add along the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..model.model import Model
from ..spatial._algebra import Force, Motion
from ._kernels import opaque
from ._traversal import Traversal, traverse
from ._world import (
    Table,
    at_origin,
    force,
    inertia,
    inertias,
    motion,
    of_owners,
    owners,
    pose,
    poses_and_motions,
    stage,
    sum_paths,
    sum_subtrees,
    symmetric,
    unsymmetric,
)
from .coriolis import VelocityProduct, velocities, velocity_product
from .mass_matrix import inverse_by_blocks


class _Moving(NamedTuple):
    """The robot in motion: tables of bodies, but for S and its rates, which are of degrees of freedom."""

    poses: Table
    S: Table
    rates: Table  # S v
    V: Table
    V0: Table  # of the parents
    inertias: tuple[Array, ...]
    momenta: tuple[Array, ...]


def _moving(run: Traversal, v: Array | None) -> _Moving:
    poses, motions = poses_and_motions(run)
    rates, V, V0 = velocities(run, motions, opaque(jnp.zeros(run.tree.nv, run.dtype)) if v is None else v)
    own = inertias(run, poses)
    momenta = stage(run, lambda C, V: inertia(C).apply(motion(V)), own, V)
    return _Moving(poses, motions, rates, V, V0, own, momenta)


def _accelerations(run: Traversal, moving: _Moving, a: Array | None) -> tuple[Table, Table]:
    """Those of the bodies and of their parents: sums of V_p x S v + S a along the path, from that of the base."""

    def added(S: Table, rates: Table, V0: Table, *a: Array) -> Motion:
        turned = motion(V0).cross(motion(rates))
        return turned + motion(S).scale(a[0]) if a else turned

    driven = () if a is None else (run.coordinates.spread_v(a),)
    steps = stage(run, added, moving.S, moving.rates, of_owners(run, moving.V0), *driven)
    base = jnp.concatenate([jnp.zeros(3, run.dtype), -run.model.gravity])[:, None]
    A, A0 = (total + base for total in sum_paths(run, steps, owners(run.tree)))
    return A, A0


def _taken(P: Table, C: Table, V: Table, A: Table, H: Table, *f: Table) -> Force:
    """The force that each body takes, about the world origin."""
    total = inertia(C).apply(motion(A)) + motion(V).cross_force(force(H))
    return total - pose(P).force(force(f[0])) if f else total


class _Variation(NamedTuple):
    r"""How the forces vary: $\partial\tau_j/\partial x_i$ is answers_j . changes_i where i carries j or is of its
    joint, and S_j . loads_i where j carries i."""

    S: Table
    answers: Table  # 9 rows: I s, 2 (B^T s).n
    changes: dict[str, Table]  # 9 rows for each of q and v
    loads: dict[str, Table]  # 6 rows for each of them


def _variation(run: Traversal, moving: _Moving, a: Array | None, f_ext: Array | None) -> _Variation:
    A, A0 = _accelerations(run, moving, a)

    def own(P: Table, C: Table, V: Table, A: Table, H: Table, *f: Table) -> tuple:
        return velocity_product(inertia(C), motion(V), force(H)), _taken(P, C, V, A, H, *f)

    def variations(S: Table, V0: Table, A0: Table, V: Table) -> tuple:
        s, v0 = motion(S), motion(V0)
        psi = v0.cross(s)
        return psi, motion(A0).cross(s) + v0.cross(psi), psi + motion(V).cross(s)

    def answers(S: Table, C: Table, changes: Table) -> tuple:
        s, I, B, F = motion(S), inertia(C), VelocityProduct.of_rows(C[10:22]), force(C[22:])  # noqa: E741
        psi, psi2, both = (motion(changes[k : k + 6]) for k in (0, 6, 12))
        of_q = B.apply(psi).scale(2.0) + I.apply(psi2) + s.cross_force(F)
        of_v = B.apply(s).scale(2.0) + I.apply(both)
        return I.apply(s), B.apply_transposed(s).n.scale(2.0), of_q, of_v

    # Each result of a stage is a loop of its own, which computes anew what it shares with others: hence these steps.
    f = () if f_ext is None else (f_ext.T,)
    loads = moving.inertias + stage(run, own, moving.poses, moving.inertias, moving.V, A, moving.momenta, *f)
    carried = of_owners(run, sum_subtrees(run, loads))
    changes = stage(run, variations, moving.S, *(of_owners(run, x) for x in (moving.V0, A0, moving.V)))
    found = stage(run, answers, moving.S, carried, changes)
    psi, psi2, both = changes[:3], changes[6:12], changes[12:]
    return _Variation(
        moving.S, found[:9], {"q": (*psi2, *psi), "v": (*both, *moving.S[:3])}, {"q": found[9:15], "v": found[15:]}
    )


def _matrix(run: Traversal, found: _Variation, wrt: str) -> Array:
    if wrt == "a":
        return symmetric(run, found.answers[:6], found.S)
    return unsymmetric(run, (found.answers, found.changes[wrt]), (found.S, found.loads[wrt]))


def _matrices(
    wrt: Sequence[str], run: Traversal, v: Array | None, a: Array | None, f_ext: Array | None
) -> tuple[Array, ...]:
    found = _variation(run, _moving(run, v), a, f_ext)
    return tuple(_matrix(run, found, name) for name in wrt)


def inverse_dynamics_matrices(
    model: Model, q: Array, v: Array | None, a: Array | None, f_ext: Array | None, *, wrt: Sequence[str]
) -> tuple[Float[Array, "nv nv"], ...]:
    """The derivatives of `newton_euler` with respect to those of q (as a velocity), v and a that are in `wrt`."""
    return traverse(model, partial(_matrices, wrt), at_origin(model, q), v, a, f_ext)


def _forward_matrices(run: Traversal, v: Array, tau: Array, f_ext: Array | None) -> tuple[Array, Array, Array]:
    moving = _moving(run, v)
    A, _ = _accelerations(run, moving, None)
    f = () if f_ext is None else (f_ext.T,)
    taken = stage(run, _taken, moving.poses, moving.inertias, moving.V, A, moving.momenta, *f)
    carried = of_owners(run, sum_subtrees(run, moving.inertias + taken))

    def answers(S: Table, C: Table) -> tuple:
        return inertia(C).apply(motion(S)), motion(S).dot(force(C[10:]))

    found = stage(run, answers, moving.S, carried)
    inverse = inverse_by_blocks(symmetric(run, found[:6], moving.S))
    a = inverse @ (tau - run.coordinates.gather(found[6]))
    varied = _variation(run, moving, a, f_ext)
    return _matrix(run, varied, "q"), _matrix(run, varied, "v"), inverse


def forward_dynamics_matrices(
    model: Model, q: Array, v: Array, tau: Array, f_ext: Array | None
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """The derivatives of `newton_euler` in q and v at the acceleration that `tau` causes, and the inverse of M."""
    return traverse(model, _forward_matrices, at_origin(model, q), v, tau, f_ext)
