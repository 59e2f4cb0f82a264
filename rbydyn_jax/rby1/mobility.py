"""The mobile base of the RB-Y1: maps between wheel speeds and planar motion.

A planar twist is [w, vx, vy], as in the SDK: the turning rate and the velocity of the base link, in its axes.
"""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array
from .._errors import ModelError
from .._jit import jit_public
from ..io.build import build_model
from ..io.builder import RobotBuilder
from ..io.restructure import attach
from ..model.edit import with_gravity
from ..model.model import Model, check_model
from ..model.tree import KinematicTree, MobileBase
from . import _wheels

PLANAR_BASE = "planar_base"


@jit_public()
def mobility_twist(model: Model, wheels: Float[Array, "w"]) -> Float[Array, "3"]:
    """The planar twist of the base for given wheel speeds, without slip.

    The speeds of four mecanum wheels may be inconsistent; the twist is then the least-squares fit.

    Args:
        model: The robot.
        wheels: Rates in the order of `model.tree.mobile_base.joints` [rad/s]: right, left; or front right, front left,
            rear right, rear left.

    Returns:
        [w, vx, vy] of the base link in its axes [rad/s, m/s].

    Raises:
        ModelError: The robot has no wheels of a known type.
        ShapeError: `wheels` does not have one rate for each wheel.

    Example:
        >>> from rbydyn_jax.rby1.mobility import mobility_twist
        >>> mobility_twist(robots.rby1a(), jnp.array([-1.0, -1.0])).tolist()  # axes to the right, radius 0.1 m
        [0.0, 0.1, 0.0]
    """
    base = _mobile_base(model)
    rates = check_array(wheels, "wheels", (len(base.joints),), "one for each wheel")
    return jnp.asarray(_to_base(base) @ _wheels.wheel_maps(base.kind, base.params)[0], rates.dtype) @ rates


@jit_public()
def wheel_velocities(model: Model, twist: Float[Array, "3"]) -> Float[Array, "w"]:
    """The wheel speeds for a planar twist of the base, without slip.

    Two wheels cannot move sideways; that part of the twist is ignored.

    Args:
        model: The robot.
        twist: [w, vx, vy] of the base link in its axes [rad/s, m/s].

    Returns:
        Rates in the order of `model.tree.mobile_base.joints` [rad/s].

    Raises:
        ModelError: The robot has no wheels of a known type.
        ShapeError: `twist` is not of shape (3,).

    Example:
        >>> from rbydyn_jax.rby1.mobility import wheel_velocities
        >>> wheel_velocities(robots.rby1a(), jnp.array([0.0, 0.1, 0.0])).tolist()
        [-1.0, -1.0]
    """
    base = _mobile_base(model)
    moved = check_array(twist, "twist", (3,))
    return jnp.asarray(_to_wheels(base), moved.dtype) @ moved


def with_planar_base(model: Model) -> Model:
    """The robot free to move in the plane z = 0, with a planar joint between the world and its root.

    Configurations start with [x, y, theta] of the root link in the world, velocities with [vx, vy, w] in its axes, and
    all algorithms treat base and joints as one: `jacobian` is that of the whole body. How the wheels turn with the base
    is up to `with_rolling_wheels` or `rolling_constraint`.

    Args:
        model: The robot, with a root that is fixed to the world.

    Returns:
        The robot with the joint ``planar_base``, and two links more than before: the root ``world``, and
            ``planar_base``.

    Raises:
        ModelError: The root moves already, a name is taken, or the model is traced.

    Example:
        >>> from rbydyn_jax.rby1.mobility import with_planar_base
        >>> robot = with_planar_base(robots.two_link_arm())
        >>> robot.joint_names
        ('planar_base', 'shoulder', 'elbow')
        >>> q = jnp.array([1.0, 2.0, jnp.pi / 2, 0.0, 0.0])  # the arm, 0.9 m long, points along y
        >>> link_pose(robot, q, "tool")[:2, 3].tolist()
        [1.0, 2.9]
    """
    model = check_model(model)
    if -1 not in model.tree.link_bodies:
        raise ModelError("the root of the robot moves already; with_planar_base needs a fixed root")
    builder = RobotBuilder(model.name).link("world").link(PLANAR_BASE)
    builder.planar(PLANAR_BASE, "world", PLANAR_BASE, axis=(0, 0, 1))
    carrier = build_model(builder.build_description(), dtype=model.inertias.dtype)
    moving = with_gravity(attach(carrier, PLANAR_BASE, model), model.gravity)
    return dataclasses.replace(moving, tree=dataclasses.replace(moving.tree, mobile_base=model.tree.mobile_base))


@jit_public()
def with_rolling_wheels(model: Model, v: Float[Array, "nv"]) -> Float[Array, "nv"]:
    """The velocity `v` of a robot on a planar base, its wheel speeds replaced by those of rolling without slip.

    Args:
        model: A robot of `with_planar_base`.
        v: Velocity [rad/s, m/s]; its entries for the wheels do not matter.

    Raises:
        ModelError: The robot has no planar base, or no wheels that are known.
        ShapeError: `v` is not of shape `(model.nv,)`.
    """
    model = check_model(model)
    v = check_array(v, "v", (model.nv,), "model.nv")
    base, wheels = _coordinates(model.tree)
    return v.at[wheels].set(wheel_velocities(model, v[base]))


@jit_public()
def rolling_constraint(model: Model) -> Float[Array, "m nv"]:
    """The constraint matrix A of rolling without slip, A v = 0, for a robot on a planar base.

    A row for each wheel: its rate minus that of `wheel_velocities`. Two wheels have one row more: the sideways velocity
    of their middle. What is left of the motion of base and wheels are two degrees of freedom, or three with mecanum
    wheels.

    Args:
        model: A robot of `with_planar_base`.

    Raises:
        ModelError: The robot has no planar base, or no wheels that are known.
    """
    model = check_model(model)
    base, wheels = _coordinates(model.tree)
    mobile = _mobile_base(model)
    count = len(wheels)
    sideways = _to_mobile(mobile)[2:] if mobile.kind == "differential" else np.zeros((0, 3))
    A = np.zeros((count + len(sideways), model.nv))
    A[np.arange(count), wheels] = 1.0
    A[:, base] = np.concatenate([-_to_wheels(mobile), sideways])
    return jnp.asarray(A, model.inertias.dtype)


@jit_public()
def rolling_motions(model: Model) -> Float[Array, "nv k"]:
    """The velocities of rolling without slip, as columns: a basis of the solutions of `rolling_constraint`.

    First those of the base with its wheels: for two wheels 1 rad/s about the middle between them, and 1 m/s forward;
    for mecanum wheels also 1 m/s to the left. Then 1 rad/s or 1 m/s of each other coordinate. These are the `motions`
    of `planning.differential_ik`.

    Args:
        model: A robot of `with_planar_base`.

    Raises:
        ModelError: The robot has no planar base, or no wheels that are known.

    Example:
        >>> from rbydyn_jax.rby1.mobility import rolling_constraint, rolling_motions, with_planar_base
        >>> robot = with_planar_base(robots.rby1a())  # 22 joints, 2 wheels, 3 coordinates of the base
        >>> motions = rolling_motions(robot)
        >>> motions.shape, bool(jnp.allclose(rolling_constraint(robot) @ motions, 0.0, atol=1e-6))
        ((27, 24), True)
    """
    model = check_model(model)
    base, wheels = _coordinates(model.tree)
    mobile = _mobile_base(model)
    twists = _to_base(mobile)[:, : 2 if mobile.kind == "differential" else 3]
    others = np.setdiff1d(np.arange(model.nv), np.concatenate([base, wheels]))
    count = twists.shape[1]
    motions = np.zeros((model.nv, count + len(others)))
    motions[base, :count] = twists
    motions[wheels, :count] = _to_wheels(mobile) @ twists
    motions[others, count + np.arange(len(others))] = 1.0
    return jnp.asarray(motions, model.inertias.dtype)


def _mobile_base(model: Model) -> MobileBase:
    base = check_model(model).tree.mobile_base
    if base is None or base.kind not in ("differential", "mecanum"):
        has = "no mobile base" if base is None else f"a mobile base of the unknown kind {base.kind!r}"
        raise ModelError(f"robot {model.tree.name!r} has {has}; differential and mecanum wheels are known")
    return base


def _coordinates(tree: KinematicTree) -> tuple[np.ndarray, np.ndarray]:
    """Indices in v of [w, vx, vy] of the base and of the wheel speeds."""
    if PLANAR_BASE not in tree.joint_names:
        raise ModelError(f"robot {tree.name!r} has no planar base; with_planar_base(model) gives it one")
    x = tree.v_slices[tree.joint_index(PLANAR_BASE)].start
    wheels = [] if tree.mobile_base is None else [tree.joint_index(name) for name in tree.mobile_base.joints]
    return np.array([x + 2, x, x + 1]), np.array([tree.v_slices[k].start for k in wheels], int)


def _to_base(base: MobileBase) -> np.ndarray:
    """Planar twists of the frame between the wheels to those of the base link."""
    return _wheels.planar_adjoint(np.array(base.origin).reshape(4, 4))


def _to_mobile(base: MobileBase) -> np.ndarray:
    """Planar twists of the base link to those of the frame between the wheels."""
    return _wheels.planar_adjoint(np.linalg.inv(np.array(base.origin).reshape(4, 4)))


def _to_wheels(base: MobileBase) -> np.ndarray:
    """Planar twists of the base link to wheel speeds."""
    return _wheels.wheel_maps(base.kind, base.params)[1] @ _to_mobile(base)
