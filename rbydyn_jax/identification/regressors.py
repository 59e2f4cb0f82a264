r"""The dynamics as linear functions of the robot's parameters.

With a body's ten parameters $\pi_i$ (`INERTIAL_NAMES`: mass, first moment, inertia about the origin) the force that it
takes is $f_i = Y_i \pi_i$, and a joint that carries it has to give $S_j \cdot f_i$. The columns of $Y_i$ are a few
cross products each of the body's axes with its velocity and acceleration [Atkeson, An, Hollerbach 1986].
"""

from __future__ import annotations

import itertools

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._check import check_positive
from .._jit import jit_public
from ..algorithms.arguments import arguments
from ..algorithms.energy import sign_of_motion
from ..algorithms.kinematics import body_poses
from ..algorithms.rnea import weightless
from ..model.model import Model
from ..spatial.algebra import O3, Force, Transform, Vec3
from ..sweeps.plan import traverse
from ..sweeps.sweep import Sweep, Table
from ..sweeps.world_frame import by_body, motion, moving, outside, pose, powers_of_carried
from ..xla.structural import Scalar

INERTIAL_NAMES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""The parameters of a body, in the order of `Model.inertias` and of Pinocchio's `toDynamicParameters`."""

# The entries of the inertia in the order of `INERTIAL_NAMES`.
_ENTRIES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))


def _forces(at: Transform, w: Vec3, dw: Vec3, a: Vec3) -> tuple[Force, ...]:
    """The columns of Y: the forces, about the world origin, that a body of each unit parameter takes.

    `a` is the acceleration of the body's origin less gravity; all in world axes.
    """

    def about_world(n: Vec3, f: Vec3) -> Force:
        return Force(n + at.p.cross(f), f)

    axes = at.R.T
    turned = [w.cross(r) for r in axes]
    moments = [about_world(r.cross(a), dw.cross(r) + w.cross(c)) for r, c in zip(axes, turned, strict=True)]
    own_w, own_dw = at.R.apply_transposed(w), at.R.apply_transposed(dw)

    def inertia(i: int, j: int) -> Force:
        one = axes[i].scale(own_dw[j]) + turned[i].scale(own_w[j])
        return Force(one if i == j else one + axes[j].scale(own_dw[i]) + turned[j].scale(own_w[i]), O3)

    return about_world(O3, a), *moments, *(inertia(i, j) for i, j in _ENTRIES)


def _motions_and_wrenches(run: Sweep, v: Array | None, a: Array | None) -> tuple[Array, Array]:
    state = moving(run, v, a)

    def forces(P: Table, V: Table, A: Table) -> tuple[Scalar, ...]:
        at, v, a = pose(P), motion(V), motion(A)
        speed = v.v + v.w.cross(at.p)
        columns = _forces(at, v.w, a.w, a.v + a.w.cross(at.p) + v.w.cross(speed))
        moments = zip(*(column.n for column in columns), strict=True)
        return *itertools.chain(*moments), *itertools.chain(*zip(*(x.f for x in columns[:4]), strict=True))

    rows = run.map_tables(forces, state.poses, state.V, state.A)
    return outside(run, state.S), by_body(run, rows[:30], rows[30:])


def _torques(model: Model, q: Array, v: Array | None, a: Array | None) -> Array:
    if not model.nb:
        return jnp.zeros((0, 0), q.dtype)
    # The matrix is made outside of the sweep, which runs in tiles: it is written once, as it is handed out.
    motions, wrenches = traverse(model, _motions_and_wrenches, q, v, a, result="joint_matrix")
    return powers_of_carried(model, motions, wrenches)


@jit_public()
def torque_regressor(
    model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], a: Float[Array, "nv"]
) -> Float[Array, "nv p"]:
    r"""The matrix $Y(q, v, a)$ of the inertial parameters: $Y \pi + \mathrm{diag}(a)\,\text{armature}$ is `rnea`.

    $Y_{ji} = S_j^T Y_i$ where joint j carries body i, and zero elsewhere; in world coordinates, O(n d) nonzero blocks
    [Atkeson, An, Hollerbach 1986]. The parameters are `model.inertias.reshape(-1)`: ten for each body, in the order of
    `INERTIAL_NAMES`, about the body's origin in its axes. Pinocchio's `computeJointTorqueRegressor` has the same ten in
    the same order, body after body in the order of its joints.

    Args:
        model: The robot; its inertias have no influence.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].

    Returns:
        A row for each velocity, ten columns for each body.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        >>> from rbydyn_jax.identification import torque_regressor
        >>> arm = robots.double_pendulum()
        >>> q, v, a = jnp.array([0.3, -0.7]), jnp.array([0.5, 1.1]), jnp.array([2.0, -1.0])
        >>> Y = torque_regressor(arm, q, v, a)
        >>> bool(jnp.allclose(Y @ arm.inertias.reshape(-1), rnea(arm, q, v, a), atol=1e-5))
        True
    """
    model, q, v, a = arguments(model, q=q, v=v, a=a)
    return _torques(model, q, v, a)


def actuator_regressor(
    model: Model, v: Float[Array, "nv"], a: Float[Array, "nv"], width: Float[Array, ""] | float | None = None
) -> Float[Array, "nv p"]:
    r"""The columns of the drives' parameters, $[\mathrm{diag}(a), \mathrm{diag}(v), \mathrm{diag}(\mathrm{sign}\,v)]$.

    They belong to `model.armature`, `model.damping` and `model.friction`, so that with `torque_regressor` the torque
    that the motors give is $[Y, Y_d]\,[\pi, \text{armature}, \text{damping}, \text{friction}]$.

    Args:
        model: The robot.
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].
        width: None for sign(v); a velocity > 0 [rad/s, m/s] for tanh(v / width), as in `friction_forces`.

    Returns:
        A row for each velocity, three columns for each.

    Raises:
        ArgumentError: `width` is not positive.
        ShapeError: An argument has another shape.

    Example:
        >>> from rbydyn_jax.identification import actuator_regressor
        >>> actuator_regressor(robots.pendulum(), jnp.array([-0.5]), jnp.array([2.0])).tolist()
        [[2.0, -0.5, -1.0]]
    """
    model, v, a = arguments(model, v=v, a=a)
    if width is not None:
        check_positive(width, "width")
    return jnp.concatenate([jnp.diag(a), jnp.diag(v), jnp.diag(sign_of_motion(v, width))], axis=1)


@jit_public()
def momentum_regressor(model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, "nv p"]:
    r"""The matrix of the generalized momentum: $M(q)\, v = Y \pi + \mathrm{diag}(v)\,\text{armature}$.

    With it parameters are identified without accelerations: between two times the momentum changes by the integral of
    $\tau + C^T v - g$. It is `torque_regressor` at rest without gravity, with v as the acceleration.

    Args:
        model: The robot; its inertias have no influence.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].

    Returns:
        A row for each velocity, ten columns for each body: see `torque_regressor`.

    Raises:
        ShapeError: An argument has another shape.
    """
    model, q, v = arguments(model, q=q, v=v)
    return _torques(weightless(model), q, None, v)


@jit_public()
def energy_regressor(model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, "2 p"]:
    r"""The rows of kinetic and potential energy: $Y \pi = [T, U]$, but for the rotors' $\frac12 v^T
    \mathrm{diag}(\text{armature})\, v$.

    With them parameters are identified from the work of the torques. $T = \frac12 v^T Y_p$ with `momentum_regressor`,
    $U = -\sum_i g \cdot (m_i p_i + R_i h_i)$, zero at the origin.

    Args:
        model: The robot; its inertias have no influence.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].

    Returns:
        Two rows, ten columns for each body: see `torque_regressor`.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        >>> from rbydyn_jax.identification import energy_regressor
        >>> bob = robots.pendulum(mass=2.0, length=0.5)
        >>> energies = energy_regressor(bob, jnp.zeros(1), jnp.ones(1)) @ bob.inertias.reshape(-1)
        >>> [round(float(x), 3) for x in energies]  # m l^2 w^2 / 2, and -m g l
        [0.25, -9.81]
    """
    model, q, v = arguments(model, q=q, v=v)
    poses, g = body_poses(model, q), model.gravity
    moments = jnp.einsum("bij,i->bj", poses[:, :3, :3], -g)
    potential = jnp.concatenate([poses[:, :3, 3] @ -g[:, None], moments, jnp.zeros((model.nb, 6), q.dtype)], axis=1)
    return jnp.stack([0.5 * v @ momentum_regressor(model, q, v), potential.reshape(-1)])
