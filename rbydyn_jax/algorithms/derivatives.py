"""First derivatives of inverse and forward dynamics, as matrices."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float

from .._check import jit_public
from ..model.model import Model
from .arguments import arguments
from .derivative_matrices import forward_dynamics_matrices, inverse_dynamics_matrices


class RneaDerivatives(eqx.Module):
    """Derivatives of `rnea`: a row for each force, a column for each velocity direction.

    `dtau_dq` [N m/rad, ...] is that along `integrate(model, q, dv)`, `dtau_dv` that with respect to the velocity, and
    `dtau_da` that with respect to the acceleration, the mass matrix.
    """

    dtau_dq: Float[Array, "nv nv"]
    dtau_dv: Float[Array, "nv nv"]
    dtau_da: Float[Array, "nv nv"]


class AbaDerivatives(eqx.Module):
    """Derivatives of `aba`: a row for each acceleration, a column for each velocity direction or force.

    `da_dq` is that along `integrate(model, q, dv)`, `da_dv` that with respect to the velocity, and `da_dtau` that with
    respect to the forces, the inverse of the mass matrix.
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
