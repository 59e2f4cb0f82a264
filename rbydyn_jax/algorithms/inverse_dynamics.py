"""Inverse dynamics by the recursive Newton-Euler algorithm, and the forces that are special cases of it."""

from __future__ import annotations

from jaxtyping import Array, Float

from .._jit import jit_public
from .._result import Result
from ..model.model import Model
from ..sweeps.plan import traverse
from ..sweeps.sweep import Sweep
from .arguments import arguments
from .energy import damping_forces, friction_forces
from .rnea import joint_wrenches, newton_euler, weightless


@jit_public()
def rnea(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    a: Float[Array, "nv"],
    f_ext: Float[Array, "nb 6"] | None = None,
) -> Float[Array, "nv"]:
    r"""Inverse dynamics: $\tau = M(q)\, a + C(q, v)\, v + g(q) - \sum_i J_i^T f_i$.

    Recursive Newton-Euler algorithm, O(n) [Luh, Walker, Paul 1980; Featherstone 2008, table 5.1], with the inertia of
    the rotors (`model.armature`). Damping and friction are not part of it: see `damping_forces` and `friction_forces`.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].
        f_ext: Wrench [n; f] that acts on each body from outside, about its origin in its axes [N m, N]; see
            `external_wrenches`.

    Returns:
        Joint torques or forces [N m, N] in the order of `model.joint_names`.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        A 2 kg point mass on a horizontal arm of 0.5 m, accelerated by 1 rad/s^2, needs m g l + m l^2:

        >>> arm = robots.pendulum(mass=2.0, length=0.5)
        >>> round(float(rnea(arm, jnp.array([jnp.pi / 2]), jnp.zeros(1), jnp.ones(1))[0]), 4)
        10.31
    """
    model, q, v, a, f_ext = arguments(model, q=q, v=v, a=a, f_ext=f_ext)
    return newton_euler(model, q, v, a, f_ext)


@jit_public()
def bias_forces(
    model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], f_ext: Float[Array, "nb 6"] | None = None
) -> Float[Array, "nv"]:
    r"""Generalized forces that let the robot move without acceleration, $C(q, v)\, v + g(q) - \sum_i J_i^T f_i$.

    `rnea` with zero acceleration; O(n).

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        f_ext: External wrenches on the bodies, in body axes at the body origins; None is none.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        The torque that holds a pendulum of 2 kg and 0.5 m horizontally:

        >>> arm, q = robots.pendulum(mass=2.0, length=0.5), jnp.array([jnp.pi / 2])
        >>> round(float(bias_forces(arm, q, jnp.zeros(1))[0]), 6)
        9.81
    """
    model, q, v, f_ext = arguments(model, q=q, v=v, f_ext=f_ext)
    return newton_euler(model, q, v, None, f_ext)


@jit_public()
def gravity_forces(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nv"]:
    r"""Generalized forces that hold the robot still, $g(q) = \partial U / \partial q$.

    `rnea` of a robot at rest: every body accelerated by $-\mathbf{g}$; O(n) [Featherstone 2008, sec. 5.3].

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Returns:
        Joint torques or forces [N m, N].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        A 2 kg point mass on a horizontal arm of 0.5 m needs m g l:

        >>> arm = robots.pendulum(mass=2.0, length=0.5)
        >>> round(float(gravity_forces(arm, jnp.array([jnp.pi / 2]))[0]), 4)
        9.81
    """
    model, q = arguments(model, q=q)
    return newton_euler(model, q, None, None, None)


class InverseDynamicsTerms(Result):
    """The three parts of inverse dynamics.

    Attributes:
        inertial: M a [N m, N].
        coriolis: C v [N m, N].
        gravity: g [N m, N].
    """

    inertial: Float[Array, "nv"]
    coriolis: Float[Array, "nv"]
    gravity: Float[Array, "nv"]


@jit_public()
def inverse_dynamics_terms(
    model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], a: Float[Array, "nv"]
) -> InverseDynamicsTerms:
    r"""The parts $M a$, $C v$ and $g$ of which `rnea` returns the sum.

    Three runs of the recursive Newton-Euler algorithm, O(n).

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].

    Raises:
        ShapeError: An argument has another shape.

    Example:
        >>> arm, q = robots.pendulum(mass=2.0, length=0.5), jnp.array([jnp.pi / 2])
        >>> terms = inverse_dynamics_terms(arm, q, jnp.zeros(1), jnp.array([2.0]))
        >>> round(float(terms.inertial[0]), 6), round(float(terms.gravity[0]), 6)
        (1.0, 9.81)
    """
    model, q, v, a = arguments(model, q=q, v=v, a=a)
    floating = weightless(model)
    return InverseDynamicsTerms(
        inertial=newton_euler(floating, q, None, a, None),
        coriolis=newton_euler(floating, q, v, None, None),
        gravity=newton_euler(model, q, None, None, None),
    )


@jit_public()
def joint_reaction_wrenches(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    a: Float[Array, "nv"],
    f_ext: Float[Array, "nb 6"] | None = None,
) -> Float[Array, "nb 6"]:
    r"""Wrench [n; f] that goes through each joint onto its body, about the body's origin in its axes [N m, N].

    Its projection on the joint's motion subspace, plus the torque that turns the rotor, is `rnea`; what is left is
    borne by the bearings.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].
        f_ext: External wrenches on the bodies, in body axes at the body origins; None is none.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        The joint of a hanging pendulum carries its weight:

        >>> rest = jnp.zeros(1)
        >>> round(float(joint_reaction_wrenches(robots.pendulum(mass=2.0), rest, rest, rest)[0, 5]), 6)
        19.62
    """
    model, q, v, a, f_ext = arguments(model, q=q, v=v, a=a, f_ext=f_ext)

    def wrenches(run: Sweep, v: Array, a: Array, f_ext: Array | None) -> Array:
        through = joint_wrenches(run, v, a, f_ext)
        return run.table(through.select(lambda x: x[1]), 6).T

    return traverse(model, wrenches, q, v, a, f_ext)


def motor_torques(
    model: Model,
    q: Float[Array, "nq"],
    v: Float[Array, "nv"],
    a: Float[Array, "nv"],
    width: float | None = None,
) -> Float[Array, "nv"]:
    """The torques that the motors give on a motion: `rnea`, and what damping and friction take [N m, N].

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].
        a: Acceleration [rad/s^2, m/s^2].
        width: Of the smooth Coulomb friction; see `friction_forces`.

    Raises:
        ArgumentError: `width` is not positive.
        ShapeError: An argument has another shape.
    """
    return rnea(model, q, v, a) - damping_forces(model, v) - friction_forces(model, v, width=width)
