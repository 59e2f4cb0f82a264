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

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..model.model import Model
from ..spatial._algebra import Force
from ._layout import batch_first
from ._traversal import Traversal, traverse
from ._world import (
    Moving,
    Table,
    at_origin,
    force,
    inertia,
    inertias,
    motion,
    moving,
    of_owners,
    owners,
    pose,
    stage,
    sum_paths,
    sum_subtrees,
    symmetric,
    unsymmetric,
)
from .coriolis import VelocityProduct, velocity_product
from .mass_matrix import inverse_by_blocks


class _Bodies(NamedTuple):
    """Inertias of the bodies and their momenta."""

    inertias: tuple[Array, ...]
    momenta: tuple[Array, ...]


def _bodies(run: Traversal, state: Moving) -> _Bodies:
    own = inertias(run, state.poses)
    return _Bodies(own, stage(run, lambda C, V: inertia(C).apply(motion(V)), own, state.V))


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


def _variation(run: Traversal, state: Moving, bodies: _Bodies, f_ext: Array | None) -> _Variation:
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
    loads = bodies.inertias + stage(run, own, state.poses, bodies.inertias, state.V, state.A, bodies.momenta, *f)
    carried = of_owners(run, sum_subtrees(run, loads))
    changes = stage(run, variations, state.S, *(of_owners(run, x) for x in (state.V0, state.A0, state.V)))
    found = stage(run, answers, state.S, carried, changes)
    psi, psi2, both = changes[:3], changes[6:12], changes[12:]
    return _Variation(
        state.S, found[:9], {"q": (*psi2, *psi), "v": (*both, *state.S[:3])}, {"q": found[9:15], "v": found[15:]}
    )


def _matrix(run: Traversal, found: _Variation, wrt: str) -> Array:
    if wrt == "a":
        return symmetric(run, found.answers[:6], found.S)
    return unsymmetric(run, (found.answers, found.changes[wrt]), (found.S, found.loads[wrt]))


def _matrices(
    wrt: Sequence[str], run: Traversal, v: Array | None, a: Array | None, f_ext: Array | None
) -> tuple[Array, ...]:
    state = moving(run, v, a)
    found = _variation(run, state, _bodies(run, state), f_ext)
    return tuple(_matrix(run, found, name) for name in wrt)


def inverse_dynamics_matrices(
    model: Model, q: Array, v: Array | None, a: Array | None, f_ext: Array | None, *, wrt: Sequence[str]
) -> tuple[Float[Array, "nv nv"], ...]:
    """The derivatives of `newton_euler` with respect to those of q (as a velocity), v and a that are in `wrt`."""
    return traverse(model, partial(_matrices, wrt), at_origin(model, q), v, a, f_ext, parts=True)


def _forward_matrices(run: Traversal, v: Array, tau: Array, f_ext: Array | None) -> tuple[Array, Array, Array]:
    state = moving(run, v, None)
    bodies = _bodies(run, state)
    f = () if f_ext is None else (f_ext.T,)
    taken = stage(run, _taken, state.poses, bodies.inertias, state.V, state.A, bodies.momenta, *f)
    carried = of_owners(run, sum_subtrees(run, bodies.inertias + taken))

    def answers(S: Table, C: Table) -> tuple:
        return inertia(C).apply(motion(S)), motion(S).dot(force(C[10:]))

    found = stage(run, answers, state.S, carried)
    inverse = inverse_by_blocks(symmetric(run, found[:6], state.S))
    a = inverse @ (tau - run.coordinates.gather(found[6]))
    driven = stage(run, lambda S, a: motion(S).scale(a), state.S, run.coordinates.spread_v(a))
    A, A0 = sum_paths(run, driven, owners(run.tree))
    state = state._replace(A=state.A + A, A0=state.A0 + A0)
    varied = _variation(run, state, bodies, f_ext)
    lost = jnp.concatenate([_matrix(run, varied, "q"), _matrix(run, varied, "v")], axis=1)
    moved = -jnp.matmul(inverse, batch_first(lost), precision=jax.lax.Precision.HIGHEST)
    return moved[:, : run.tree.nv], moved[:, run.tree.nv :], 0.5 * (inverse + inverse.T)


def forward_dynamics_matrices(
    model: Model, q: Array, v: Array, tau: Array, f_ext: Array | None
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """The derivatives of the acceleration with respect to q (as a velocity), v and tau: the last is M^-1."""
    return traverse(model, _forward_matrices, at_origin(model, q), v, tau, f_ext, parts=True)
