r"""What a robot carries, estimated while it moves: recursive least squares of ten inertial parameters.

A payload on a link asks the joints for $J^T Y(V, A)\, \pi$, where $Y \pi$ is the force that a body of parameters
$\pi$ takes. Each sample adds its normal equations to those before; old ones fade.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_array, check_each, check_positive, check_positive_share
from .._errors import DtypeError
from .._jit import jit_public
from .._result import Result
from ..algorithms.arguments import arguments
from ..algorithms.inverse_dynamics import rnea
from ..algorithms.jacobians import jacobian
from ..algorithms.kinematics import link_pose
from ..model.configuration import qdot_from_v
from ..model.model import Model, check_model
from ..spatial import inertia, motion


class PayloadEstimate(Result):
    """An estimate with all that it was made from.

    Attributes:
        information: Sum of the normal matrices of the samples.
        vector: Sum of their right-hand sides.
        prior: What is known of each parameter before, as 1 / variance. It does not fade.
    """

    information: Float[Array, "10 10"]
    vector: Float[Array, "10"]
    prior: Float[Array, "10"]

    def _headline(self) -> str:
        if self.vector.ndim > 1:
            return ""
        return f"{self.mass:.4g} kg at [{', '.join(f'{x:.4g}' for x in self.center_of_mass)}] m"

    def _scaled(self) -> tuple[Array, Array]:
        """All information in units in which its diagonal is 1, and these: kg and kg m^2 are not compared."""
        every = self.information + jnp.vectorize(jnp.diag, signature="(n)->(n,n)")(self.prior)
        scale = 1.0 / jnp.sqrt(jnp.diagonal(every, axis1=-2, axis2=-1))
        return every * scale[..., :, None] * scale[..., None, :], scale

    @property
    def parameters(self) -> Float[Array, "10"]:
        """The ten parameters about the origin of the link in its axes, as in `Model.inertias`."""
        information, scale = self._scaled()
        return scale * jnp.linalg.solve(information, (scale * self.vector)[..., None])[..., 0]

    @property
    def covariance(self) -> Float[Array, "10 10"]:
        """Covariance of the parameters, for independent errors of the torques."""
        information, scale = self._scaled()
        return jnp.linalg.inv(information) * scale[..., :, None] * scale[..., None, :]

    @property
    def mass(self) -> Float[Array, ""]:
        """Mass [kg]."""
        return self.parameters[..., 0]

    @property
    def center_of_mass(self) -> Float[Array, "3"]:
        """Centre of mass in the axes of the link, from its origin [m]; NaN without mass."""
        found = self.parameters
        heavy = found[..., :1] > 0.0
        return jnp.where(heavy, found[..., 1:4] / jnp.where(heavy, found[..., :1], 1.0), jnp.nan)


@jit_public("link")
def payload_regressor(
    model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], a: Float[Array, "nv"], link: str | int
) -> Float[Array, "nv 10"]:
    r"""The matrix $J^T Y$ of the torques that a payload asks for: `rnea` with it less `rnea` without.

    Args:
        model: The robot; its inertias have no influence.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].
        link: The link that carries it, by name or index.

    Returns:
        A row for each velocity, a column for each of the ten parameters about the origin of the link in its axes.

    Raises:
        NameNotFoundError: There is no such link.
        ShapeError: An argument has another shape.

    Example:
        >>> from rbydyn_jax.estimation import payload_regressor
        >>> arm, q, still = robots.two_link_arm(), jnp.array([0.2, 0.4]), jnp.zeros(2)
        >>> payload_regressor(arm, q, still, still, "tool").shape
        (2, 10)
    """
    model, q, v, a = arguments(model, q=q, v=v, a=a)
    J, Jdot = jax.jvp(lambda x: jacobian(model, x, link, frame="local"), (q,), (qdot_from_v(model, q, v),))
    field = -model.gravity @ link_pose(model, q, link)[:3, :3]
    V, A = J @ v, J @ a + Jdot @ v + jnp.concatenate([jnp.zeros(3, q.dtype), field])

    def force(parameters: Array) -> Array:
        matrix = inertia.to_matrix(parameters)
        return matrix @ A + motion.cross_force(V, matrix @ V)

    return J.T @ jax.vmap(force)(jnp.eye(10, dtype=q.dtype)).T


def start_payload(
    model: Model, *, mass: Float[Array, ""] | float = 10.0, extent: Float[Array, ""] | float = 0.3
) -> PayloadEstimate:
    """The estimate before the first sample: nothing, give or take a body of the given size.

    Args:
        model: The robot.
        mass: Standard deviation of the mass [kg].
        extent: Size of the payload with its lever about the origin of the link [m]; the standard deviations of first
            moment and inertia are mass x extent and mass x extent^2.

    Raises:
        ArgumentError: A number is not positive.
        DtypeError: `model` is none, or an argument is no number.
    """
    model = check_model(model)
    for x, name in ((mass, "mass"), (extent, "extent")):
        check_positive(x, name)
    dtype = model.inertias.dtype
    m, r = (check_array(x, name, ()).astype(dtype) for x, name in ((mass, "mass"), (extent, "extent")))
    deviation = m * r ** jnp.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2], dtype)
    return PayloadEstimate(jnp.zeros((10, 10), dtype), jnp.zeros(10, dtype), deviation**-2)


@jit_public("link", noise=check_positive, forgetting=check_positive_share)
def observe_payload(
    model: Model,
    estimate: PayloadEstimate,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    a: Float[Array, "nv"],
    tau: Float[Array, "nv"],
    link: str | int,
    *,
    noise: Float[Array, "nv"] | float = 1.0,
    forgetting: Float[Array, ""] | float = 1.0,
) -> PayloadEstimate:
    r"""The estimate after one more sample of the motion and of the torques of a robot that carries something.

    Adds $(J^T Y)^T \Sigma^{-1} (J^T Y)$ and $(J^T Y)^T \Sigma^{-1} (\tau - \tau_{rnea})$, after the sums so far were
    multiplied by `forgetting`. At rest only mass and first moment are felt; the inertia then stays that of the prior. A
    sample that is not finite is skipped.

    Args:
        model: The robot without the payload.
        estimate: The estimate after the sample before.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].
        tau: Torques of the motors less those of damping and friction [N m, N].
        link: The link that carries the payload, by name or index.
        noise: Standard deviation of the torques, of each or of all [N m, N].
        forgetting: Weight of what is older, at most 1: a payload that changes is followed within about
            1 / (1 - forgetting) samples. What these do not feel goes back to the prior, which does not fade.

    Raises:
        ArgumentError: `noise` or `forgetting` is not positive, or `forgetting` above 1.
        DtypeError: `estimate` is not a `PayloadEstimate`.
        NameNotFoundError: There is no such link.
        ShapeError: An argument, or an array of `estimate`, has another shape.

    Example:
        Two postures at rest tell the mass of what hangs at the end of a pendulum of two links:

        >>> from rbydyn_jax.estimation import observe_payload, start_payload
        >>> arm, still = robots.double_pendulum(), jnp.zeros(2)
        >>> tip = arm.link_names[-1]
        >>> loaded, estimate = attach_payload(arm, tip, mass=2.0, com=jnp.array([0.0, 0.0, -0.1])), start_payload(arm)
        >>> for q in (jnp.array([0.2, 0.4]), jnp.array([1.2, -1.4])):
        ...     tau = gravity_forces(loaded, q)
        ...     estimate = observe_payload(arm, estimate, q, still, still, tau, tip, noise=1e-2)
        >>> round(float(estimate.mass), 2)
        2.0
    """
    model, q, v, a, tau = arguments(model, q=q, v=v, a=a, tau=tau)
    if not isinstance(estimate, PayloadEstimate):
        raise DtypeError(f"estimate must be a PayloadEstimate, got {type(estimate).__name__}")
    information = check_array(estimate.information, "estimate.information", (10, 10)).astype(q.dtype)
    vector = check_array(estimate.vector, "estimate.vector", (10,)).astype(q.dtype)
    prior = check_array(estimate.prior, "estimate.prior", (10,)).astype(q.dtype)
    deviation = check_each(noise, "noise", model.nv, "model.nv").astype(q.dtype)
    fading = check_array(forgetting, "forgetting", ()).astype(q.dtype)
    weights = deviation**-2
    Y = payload_regressor(model, q, v, a, link)
    error = tau - rnea(model, q, v, a)
    added = Y.T @ (weights[:, None] * Y), Y.T @ (weights * error)
    known = jnp.isfinite(added[0]).all() & jnp.isfinite(added[1]).all()
    information, vector = (
        jnp.where(known, fading * x + y, x) for x, y in zip((information, vector), added, strict=True)
    )
    return PayloadEstimate(information, vector, prior)
