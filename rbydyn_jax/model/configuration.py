"""Configurations as points of a manifold: neutral, random, integrate, difference and the rates of coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from .._check import check_array, check_key, known
from .._errors import ArgumentError
from .._jit import jit_public
from ..joints import JointType
from .model import Model, check_model


def _checked(model: Model, **arrays: Array) -> list[Array]:
    check_model(model)
    sizes = {"q": (model.nq, "model.nq"), "v": (model.nv, "model.nv")}
    checked = []
    for name, x in arrays.items():
        size, meaning = sizes["q" if name.startswith("q") else "v"]
        checked.append(check_array(x, name, (size,), meaning))
    return checked


def _independent(model: Model) -> list[tuple[JointType, slice, slice]]:
    tree = model.tree
    return [
        (joint, tree.q_slices[i], tree.v_slices[i]) for i, joint in enumerate(tree.joints) if tree.mimics[i] is None
    ]


def _is_line(joint: JointType) -> bool:
    return type(joint).integrate is JointType.integrate


def is_vector_space(model: Model) -> bool:
    """Whether configurations add up, and their rates are the velocities."""
    return all(_is_line(joint) for joint, _, _ in _independent(model))


def _by_joint(model: Model, on_joint: Callable[[JointType, slice, slice], Any]) -> Any:
    """Assembles a vector, or several, joint by joint; joints side by side that move on lines are taken as one."""
    runs: list[tuple[JointType, slice, slice]] = []
    for joint, qs, vs in _independent(model):
        if runs and _is_line(joint) and _is_line(runs[-1][0]):
            line, q_before, v_before = runs.pop()
            joint, qs, vs = line, slice(q_before.start, qs.stop), slice(v_before.start, vs.stop)
        runs.append((joint, qs, vs))
    found = [on_joint(*run) for run in runs or [(JointType(), slice(0, 0), slice(0, 0))]]
    return found[0] if len(found) == 1 else jax.tree.map(lambda *xs: jnp.concatenate(xs), *found)


def neutral(model: Model) -> Float[Array, "nq"]:
    """The configuration in which every joint's transform is the identity (mimic joints aside).

    Example:
        >>> neutral(robots.double_pendulum()).tolist()
        [0.0, 0.0]
    """
    _checked(model)
    pieces = [joint.neutral() for joint, _, _ in _independent(model)]
    return jnp.asarray(np.concatenate(pieces) if pieces else np.zeros(0), model.inertias.dtype)


@jit_public()
def random_configuration(model: Model, key: PRNGKeyArray) -> Float[Array, "nq"]:
    """A random configuration within the position limits.

    Uniform between the limits, in [-pi, pi] without limits, and within 2 pi of a single limit; rotations are uniform on
    the sphere of quaternions; floating joints within 1 m of the origin.

    Args:
        model: The robot.
        key: A key of `jax.random`.

    Raises:
        DtypeError: `key` is no key.

    Example:
        >>> arm = robots.two_link_arm()
        >>> q = random_configuration(arm, jax.random.key(0))
        >>> bool(((arm.position_lower <= q) & (q <= arm.position_upper)).all())
        True
    """
    _checked(model)
    key = check_key(key)
    low, high = model.position_lower, model.position_upper
    no_low, no_high = ~jnp.isfinite(low), ~jnp.isfinite(high)
    low, high = (
        jnp.where(no_low, jnp.where(no_high, -jnp.pi, high - 2 * jnp.pi), low),
        jnp.where(no_high, jnp.where(no_low, jnp.pi, low + 2 * jnp.pi), high),
    )
    q = jax.random.uniform(key, (model.nq,), low.dtype, low, high)
    for k, (joint, qs, _) in enumerate(_independent(model)):
        if not _is_line(joint):
            q = q.at[qs].set(joint.random(jax.random.fold_in(key, k), low[qs], high[qs]))
    return q


@jit_public()
def integrate(model: Model, q: Float[Array, "nq"], dv: Float[Array, "nv"]) -> Float[Array, "nq"]:
    r"""The configuration $q \oplus dv$ reached from `q` at constant velocity `dv` in one second.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        dv: Velocity times time [rad, m].

    Raises:
        ShapeError: An argument has another shape.

    Example:
        A ball joint is turned by pi about x:

        >>> ball = RobotBuilder("ball").link("world").link("ball", 1.0, inertia=0.1)
        >>> ball = build_model(ball.spherical("joint", "world", "ball"))
        >>> q = integrate(ball, neutral(ball), jnp.array([jnp.pi, 0.0, 0.0]))
        >>> bool(jnp.allclose(q, jnp.array([0.0, 1.0, 0.0, 0.0]), atol=1e-6))
        True
    """
    q, dv = _checked(model, q=q, dv=dv)
    return _by_joint(model, lambda j, qs, vs: j.integrate(q[qs], dv[vs]))


def drift(model: Model, v: Float[Array, "nv"]) -> Float[Array, "nv"]:
    """What is added to the rate of `v` to give the acceleration in axes that do not turn with the joints."""
    return _by_joint(model, lambda j, qs, vs: j.drift(v[vs]))


def glide(
    model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"], t: Array
) -> tuple[Float[Array, "nq"], Float[Array, "nv"]]:
    """Configuration and velocity after the time t at the velocity `v`, constant in axes that do not turn.

    A floating base moves in a straight line while it turns, which `integrate` leads along a helix.
    """
    return _by_joint(model, lambda j, qs, vs: j.glide(q[qs], v[vs], t))


@jit_public()
def difference(model: Model, q0: Float[Array, "nq"], q1: Float[Array, "nq"]) -> Float[Array, "nv"]:
    r"""The velocity $q_1 \ominus q_0$ from `q0` to `q1` in one second: `integrate(model, q0, difference)` is `q1`.

    Args:
        model: The robot.
        q0: Start [rad, m].
        q1: End [rad, m].

    Raises:
        ShapeError: An argument has another shape.

    Example:
        >>> difference(robots.double_pendulum(), jnp.array([1.0, 2.0]), jnp.array([1.5, 1.0])).tolist()
        [0.5, -1.0]
    """
    q0, q1 = _checked(model, q0=q0, q1=q1)
    return _by_joint(model, lambda j, qs, vs: j.difference(q0[qs], q1[qs]))


@jit_public()
def normalize(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nq"]:
    """The same configuration with renormalized quaternions.

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> ball = RobotBuilder("ball").link("world").link("ball", 1.0, inertia=0.1)
        >>> ball = build_model(ball.spherical("joint", "world", "ball"))
        >>> normalize(ball, jnp.array([2.0, 0.0, 0.0, 0.0])).tolist()
        [1.0, 0.0, 0.0, 0.0]
    """
    (q,) = _checked(model, q=q)
    return _by_joint(model, lambda j, qs, vs: j.normalize(q[qs]))


@jit_public()
def clamp(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nq"]:
    """The configuration moved inside the position limits, coordinate by coordinate.

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> clamp(with_limits(robots.pendulum(), position_upper=jnp.array([1.5])), jnp.array([2.0])).tolist()
        [1.5]
    """
    (q,) = _checked(model, q=q)
    lower, upper = model.position_lower.astype(q.dtype), model.position_upper.astype(q.dtype)
    # At a limit the slope is that of the side inside; `jnp.clip` takes the mean of both.
    return jnp.where(q < lower, lower, jnp.where(q > upper, upper, q))


def check_within_limits(model: Model, q: Array, name: str) -> None:
    """Checks that a configuration, if it is known, is within the position limits.

    Raises:
        ArgumentError: A coordinate is beyond them, or not a number.
    """
    within = known(((model.position_lower <= q) & (q <= model.position_upper)).astype(int))
    if within is not None and not within.all():
        k = int(np.argmin(within))
        joint, low, high = model.tree.q_names[k], model.position_lower[k], model.position_upper[k]
        limits = f"[{float(low):g}, {float(high):g}]"
        raise ArgumentError(f"{name}[{k}] of joint {joint!r} must be within {limits}, got {float(q[k]):g}")


@jit_public()
def qdot_from_v(model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, "nq"]:
    """Time derivative of the configuration's coordinates at velocity `v` [rad/s, m/s].

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].

    Raises:
        ShapeError: An argument has another shape.

    Example:
        >>> ball = RobotBuilder("ball").link("world").link("ball", 1.0, inertia=0.1)
        >>> ball = build_model(ball.spherical("joint", "world", "ball"))
        >>> qdot_from_v(ball, neutral(ball), jnp.array([1.0, 0.0, 0.0])).tolist()
        [0.0, 0.5, 0.0, 0.0]
    """
    q, v = _checked(model, q=q, v=v)
    return _by_joint(model, lambda j, qs, vs: j.qdot_from_v(q[qs], v[vs]))


@jit_public()
def v_from_qdot(model: Model, q: Float[Array, "nq"], qdot: Float[Array, "nq"]) -> Float[Array, "nv"]:
    """Velocity at which the configuration's coordinates change by `qdot` per second; the inverse of `qdot_from_v`.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        qdot: Time derivative of `q`.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        >>> ball = RobotBuilder("ball").link("world").link("ball", 1.0, inertia=0.1)
        >>> ball = build_model(ball.spherical("joint", "world", "ball"))
        >>> v_from_qdot(ball, neutral(ball), jnp.array([0.0, 0.5, 0.0, 0.0])).tolist()
        [1.0, 0.0, 0.0]
    """
    q, qdot = _checked(model, q=q, qdot=qdot)
    return _by_joint(model, lambda j, qs, vs: j.v_from_qdot(q[qs], qdot[qs]))
