r"""The derivatives of inverse dynamics as matrices, in world coordinates [Singh, Russell, Wensing 2022].

A joint moved along $s$ carries its subtree as one. Relative to the subtree, only the motion of the joint's parent has
changed: the velocity by $\dot\psi = V_p \times s$, the acceleration by
$\ddot\psi = A_p \times s + V_p \times \dot\psi$. The forces answer with the composite inertia $I$ and the composite
velocity product $2 B$, which add along the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..model.model import Model
from ..spatial._algebra import Motion
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


def _matrices(
    wrt: Sequence[str], run: Traversal, v: Array | None, a: Array | None, f_ext: Array | None
) -> tuple[Array, ...]:
    poses, motions = poses_and_motions(run)
    rates, V, V0 = velocities(run, motions, opaque(jnp.zeros(run.tree.nv, run.dtype)) if v is None else v)

    def added(S: Table, rates: Table, V0: Table, *a: Array) -> Motion:
        turned = motion(V0).cross(motion(rates))
        return turned + motion(S).scale(a[0]) if a else turned

    # Accelerations are sums of V_p x S v + S a along the path, from that of the base.
    driven = () if a is None else (run.coordinates.spread_v(a),)
    steps = stage(run, added, motions, rates, of_owners(run, V0), *driven)
    base = jnp.concatenate([jnp.zeros(3, run.dtype), -run.model.gravity])[:, None]
    A, A0 = (total + base for total in sum_paths(run, steps, owners(run.tree)))

    def own(P: Table, C: Table, V: Table, A: Table, H: Table, *f: Table) -> tuple:
        I, v, momentum = inertia(C), motion(V), force(H)  # noqa: E741 - Featherstone's letter
        taken = I.apply(motion(A)) + v.cross_force(momentum)
        return velocity_product(I, v, momentum), (taken - pose(P).force(force(f[0])) if f else taken)

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
    loads = inertias(run, poses)
    momenta = stage(run, lambda C, V: inertia(C).apply(motion(V)), loads, V)
    loads += stage(run, own, poses, loads, V, A, momenta, *(() if f_ext is None else (f_ext.T,)))
    carried = of_owners(run, sum_subtrees(run, loads))
    changes = stage(run, variations, motions, *(of_owners(run, x) for x in (V0, A0, V)))
    found = stage(run, answers, motions, carried, changes)
    psi, psi2, both = changes[:3], changes[6:12], changes[12:]
    blocks = {
        "q": lambda: unsymmetric(run, (found[:9], (*psi2, *psi)), (motions, found[9:15])),
        "v": lambda: unsymmetric(run, (found[:9], (*both, *motions[:3])), (motions, found[15:])),
        "a": lambda: symmetric(run, found[:6], motions),
    }
    return tuple(blocks[name]() for name in wrt)


def inverse_dynamics_matrices(
    model: Model, q: Array, v: Array | None, a: Array | None, f_ext: Array | None, *, wrt: Sequence[str]
) -> tuple[Float[Array, "nv nv"], ...]:
    """The derivatives of `newton_euler` with respect to those of q (as a velocity), v and a that are in `wrt`."""
    return traverse(model, partial(_matrices, wrt), at_origin(model, q), v, a, f_ext)
