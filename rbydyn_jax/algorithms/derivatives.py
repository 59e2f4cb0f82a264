r"""First derivatives of inverse and forward dynamics as matrices, in world coordinates [Singh, Russell, Wensing 2022].

A joint moved along $s$ carries its subtree as one. Relative to the subtree, only the motion of the joint's parent has
changed: the velocity by $\dot\psi = V_p \times s$, the acceleration by
$\ddot\psi = A_p \times s + V_p \times \dot\psi$. The forces answer with the composite inertia $I$ and the composite
velocity product $2 B$, which add along the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jit import jit_public
from .._result import Result
from ..model.model import Model
from ..spatial.algebra import Force
from ..sweeps.block_matrix import inverse, mass_matrix, refined_solve
from ..sweeps.plan import traverse
from ..sweeps.sweep import Sweep, Table
from ..sweeps.world_frame import (
    Moving,
    force,
    inertia,
    inertias,
    motion,
    moving,
    per_dof,
    pose,
    symmetric,
    unsymmetric,
)
from ..xla.batch_last import matrix_major
from ..xla.layout import batch_first
from .arguments import arguments
from .coriolis import VelocityProduct, velocity_product


def _loads(run: Sweep, state: Moving, f_ext: Array | None) -> tuple[Array, ...]:
    """Of each body about the world origin: its inertia, its velocity product, and the force that it takes."""

    def loads(C: Table, P: Table, V: Table, A: Table, *f: Table) -> tuple[VelocityProduct, Force]:
        I, v = inertia(C), motion(V)  # noqa: E741 - Featherstone's letter
        momentum = I.apply(v)
        taken = I.apply(motion(A)) + v.cross_force(momentum)
        return velocity_product(I, v, momentum), taken - pose(P).force(force(f[0])) if f else taken

    own = inertias(run, state.poses)
    f = () if f_ext is None else (f_ext.T,)
    return own + run.map_tables(loads, own, state.poses, state.V, state.A, *f)


class _Variation(NamedTuple):
    r"""How the forces vary: $\partial\tau_j/\partial x_i$ is answers_j . changes_i where i carries j or is of its
    joint, and S_j . loads_i where j carries i."""

    S: Table
    answers: Table  # 9 rows: I s, 2 (B^T s).n
    changes: dict[str, Table]  # 9 rows for each of q and v
    loads: dict[str, Table]  # 6 rows for each of them


def _variation(run: Sweep, state: Moving, carried: Table) -> _Variation:
    """`carried` are the loads of the subtrees."""

    def variations(S: Table, V0: Table, A0: Table, V: Table) -> tuple[Any, ...]:
        s, v0 = motion(S), motion(V0)
        psi = v0.cross(s)
        return psi, motion(A0).cross(s) + v0.cross(psi), psi + motion(V).cross(s)

    def answers(S: Table, C: Table, changes: Table) -> tuple[Any, ...]:
        s, I, B, F = motion(S), inertia(C), VelocityProduct.of_rows(C[10:22]), force(C[22:])  # noqa: E741
        psi, psi2, both = (motion(changes[k : k + 6]) for k in (0, 6, 12))
        of_q = B.apply(psi).scale(2.0) + I.apply(psi2) + s.cross_force(F)
        of_v = B.apply(s).scale(2.0) + I.apply(both)
        return I.apply(s), B.apply_transposed(s).n.scale(2.0), of_q, of_v

    carried = per_dof(run, carried)
    changes = run.map_tables(variations, state.S, *(per_dof(run, x) for x in (state.V0, state.A0, state.V)))
    found = run.map_tables(answers, state.S, carried, changes)
    psi, psi2, both = changes[:3], changes[6:12], changes[12:]
    return _Variation(
        state.S, found[:9], {"q": (*psi2, *psi), "v": (*both, *state.S[:3])}, {"q": found[9:15], "v": found[15:]}
    )


def _matrix(run: Sweep, found: _Variation, wrt: str) -> Array:
    if wrt == "a":
        return symmetric(run, found.answers[:6], found.S)
    return unsymmetric(run, (found.answers, found.changes[wrt]), (found.S, found.loads[wrt]))


def _forces(run: Sweep, state: Moving, carried: Table, a: Array | None) -> Array:
    """The generalized forces of `rnea`."""
    own = run.map_tables(lambda S, F: (motion(S).dot(force(F)),), state.S, per_dof(run, carried[22:]))
    forces = run.coordinates.gather(own[0])
    return forces if a is None else forces + run.model.armature * a


def _matrices(
    wrt: Sequence[str], run: Sweep, v: Array | None, a: Array | None, f_ext: Array | None
) -> tuple[Array, ...]:
    state = moving(run, v, a)
    carried = run.sum_subtrees(_loads(run, state, f_ext))
    found = _variation(run, state, carried)
    return tuple(_forces(run, state, carried, a) if name == "tau" else _matrix(run, found, name) for name in wrt)


def inverse_dynamics_matrices(
    model: Model, q: Array, v: Array | None, a: Array | None, f_ext: Array | None, *, wrt: Sequence[str]
) -> tuple[Array, ...]:
    """The derivatives of `newton_euler` by those of q (as a velocity), v and a that are in `wrt`; itself for "tau"."""
    return traverse(model, partial(_matrices, wrt), q, v, a, f_ext, result="joint_matrix")


def _forward_matrices(run: Sweep, v: Array, tau: Array, f_ext: Array | None) -> tuple[Array, Array, Array]:
    state = moving(run, v, None)
    loads = _loads(run, state, f_ext)
    carried = run.sum_subtrees(loads)

    def answers(S: Table, C: Table) -> tuple[Any, ...]:
        return inertia(C).apply(motion(S)), motion(S).dot(force(C[22:]))

    found = run.map_tables(answers, state.S, per_dof(run, carried))
    M = mass_matrix(run, found[:6], state.S)
    M_inverse = inverse(run, M).dense(run)
    a = refined_solve(run, M, M_inverse, tau - run.coordinates.gather(found[6]))
    driven = run.map_tables(lambda S, a: motion(S).scale(a), state.S, run.coordinates.spread_v(a))
    A, A0 = run.sum_paths(driven)
    gained = run.sum_subtrees(run.map_tables(lambda C, A: inertia(C).apply(motion(A)), loads[:10], A))

    def accelerated(A: Table, A0: Table, old_A: Table, old_A0: Table, gained: Table, F: Table) -> tuple[Any, ...]:
        return motion(old_A) + motion(A), motion(old_A0) + motion(A0), force(F) + force(gained)

    rows = run.map_tables(accelerated, A, A0, state.A, state.A0, gained, carried[22:])
    state = state._replace(A=rows[:6], A0=rows[6:12])
    varied = _variation(run, state, (*carried[:22], *rows[12:]))
    M_inverse = run.lanes(matrix_major)(M_inverse)

    def moved(wrt: str) -> Array:
        return jnp.matmul(M_inverse, batch_first(-_matrix(run, varied, wrt)), precision=jax.lax.Precision.HIGHEST)

    return moved("q"), moved("v"), M_inverse


def forward_dynamics_matrices(
    model: Model, q: Array, v: Array, tau: Array, f_ext: Array | None
) -> tuple[Float[Array, "nv nv"], Float[Array, "nv nv"], Float[Array, "nv nv"]]:
    """The derivatives of the acceleration with respect to q (as a velocity), v and tau: the last is M^-1."""
    return traverse(model, _forward_matrices, q, v, tau, f_ext, result="joint_matrix")


class RneaDerivatives(Result):
    """Derivatives of `rnea`: a row for each force, a column for each velocity direction.

    Attributes:
        dtau_dq: Along `integrate(model, q, dv)` [N m/rad, N/m].
        dtau_dv: With respect to the velocity [N m s/rad, N s/m].
        dtau_da: With respect to the acceleration: the mass matrix [kg m^2, kg m, kg].
    """

    dtau_dq: Float[Array, "nv nv"]
    dtau_dv: Float[Array, "nv nv"]
    dtau_da: Float[Array, "nv nv"]


class AbaDerivatives(Result):
    """Derivatives of `aba`: a row for each acceleration, a column for each velocity direction or force.

    Attributes:
        da_dq: Along `integrate(model, q, dv)` [1/s^2].
        da_dv: With respect to the velocity [1/s].
        da_dtau: With respect to the forces: the inverse of the mass matrix [1/(kg m^2), 1/(kg m), 1/kg].
    """

    da_dq: Float[Array, "nv nv"]
    da_dv: Float[Array, "nv nv"]
    da_dtau: Float[Array, "nv nv"]


@jit_public()
def rnea_derivatives(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    a: Float[Array, "nv"],
    f_ext: Float[Array, "nb 6"] | None = None,
) -> RneaDerivatives:
    r"""The derivatives $\partial\tau/\partial q$, $\partial\tau/\partial v$, $\partial\tau/\partial a = M$ of `rnea`.

    Analytic, in world coordinates [Singh, Russell, Wensing 2022]. Along q they are in tangent coordinates, along
    `integrate(model, q, dv)`, also for quaternion joints; `f_ext` is held constant in the axes of the bodies.

    `jax.grad`, `jax.jacfwd`, `jax.jacrev` and so on of `rnea` use the same formulas, with respect to the coordinates q
    themselves; the gradient of a scalar takes two passes over the tree, and no matrix.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].
        f_ext: External wrenches on the bodies, in body axes at the body origins; None is none.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        The torque m g l sin(q) of a pendulum has the derivative m g l cos(q):

        >>> arm = robots.pendulum(mass=2.0, length=0.5)
        >>> still = jnp.zeros(1)
        >>> round(float(rnea_derivatives(arm, still, still, still).dtau_dq[0, 0]), 4)
        9.81
    """
    model, q, v, a, f_ext = arguments(model, q=q, v=v, a=a, f_ext=f_ext)
    return RneaDerivatives(*inverse_dynamics_matrices(model, q, v, a, f_ext, wrt=("q", "v", "a")))


@jit_public()
def aba_derivatives(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    tau: Float[Array, "nv"],
    f_ext: Float[Array, "nb 6"] | None = None,
) -> AbaDerivatives:
    r"""The derivatives $\partial a/\partial q$, $\partial a/\partial v$, $\partial a/\partial\tau = M^{-1}$ of `aba`.

    From those of inverse dynamics at the acceleration $a = M^{-1} (\tau - c)$: $\partial a/\partial x = -M^{-1}\,
    \partial\,\mathrm{rnea}/\partial x$ [Carpentier and Mansard 2018]. Along q they are in tangent coordinates; `f_ext`
    is held constant in the axes of the bodies. O(n^3), nearly all of it products of matrices.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        tau: Joint torques or forces [N m, N].
        f_ext: External wrenches on the bodies, in body axes at the body origins; None is none.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        A pendulum that hangs swings back with -g / l per radian:

        >>> arm = robots.pendulum(mass=2.0, length=0.5)
        >>> still = jnp.zeros(1)
        >>> round(float(aba_derivatives(arm, still, still, still).da_dq[0, 0]), 4)
        -19.62
    """
    model, q, v, tau, f_ext = arguments(model, q=q, v=v, tau=tau, f_ext=f_ext)
    return AbaDerivatives(*forward_dynamics_matrices(model, q, v, tau, f_ext))
