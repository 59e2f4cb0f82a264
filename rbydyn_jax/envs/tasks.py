"""Tasks of the right arm of the RB-Y1: to reach points, and to lift what is in the hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import robots
from ..io.restructure import lock_joints
from ..model.model import Model, float_dtype
from .environment import Environment
from .parameters import Parameters

# From the shoulder to the wrist.
_SERVOS = {
    "stiffness": (400.0, 400.0, 300.0, 300.0, 100.0, 100.0, 60.0),  # [N m/rad]
    "damping": (40.0, 40.0, 20.0, 20.0, 5.0, 5.0, 3.0),  # [N m s/rad]
    "speed": (1.5,) * 7,  # [rad/s], less than each velocity limit
}
_READY = (-0.3, -0.6, 0.0, -1.4, 0.0, 0.0, 0.0)  # the forearm before the body, about level
_AROUND = (0.6, 0.4, 0.6, 0.6, 0.6, 0.6, 0.6)  # of 1000 goals in this box none has the arm touch the body
_HANGING = (0.0, -0.2, 0.0, -0.6, 0.0, 0.0, 0.0)
_RAISED = ((-0.6, -0.2, 0.0, -1.8, 0.0, 0.0, 0.0), (-0.6, -0.2, 0.0, -1.0, 0.0, 0.0, 0.0))
_DRY = 0.02  # largest dry friction, as a share of the largest torque


@cache
def _right_arm(dtype: np.dtype) -> Model:
    robot = robots.rby1a(dtype=dtype)
    return lock_joints(robot, {name: 0.0 for name in robot.joint_names if not name.startswith("right_arm_")})


def right_arm(dtype: Any = None) -> Model:
    """Returns the RB-Y1 A with all joints locked at zero but the seven of its right arm.

    Args:
        dtype: Type of its numbers; default is JAX's.

    Example:
        >>> envs.right_arm().joint_names[0], envs.right_arm().nv
        ('right_arm_0', 7)
    """
    return _right_arm(float_dtype(dtype))


def reach(dtype: Any = None, **options: Any) -> Environment:
    """Returns the task to bring the right hand of the RB-Y1 A to a random point before the body.

    Each episode has masses within 10 %, gains within 20 %, viscous friction up to 2 N m s/rad, and dry friction up to
    2 % of the largest torque.

    Args:
        dtype: Type of its numbers; default is JAX's.
        **options: Arguments of `Environment` that are to be others.

    Example:
        >>> env = envs.reach(max_steps_in_episode=100)
        >>> env.observation_size, env.action_size
        (27, 7)
    """
    model = right_arm(dtype)
    ready, around = (jnp.asarray(x, model.inertias.dtype) for x in (_READY, _AROUND))
    return _task(model, ready, (ready - around, ready + around), _range(model), options)


def lift(dtype: Any = None, **options: Any) -> Environment:
    """Returns the task to lift a payload of 0.5 to 3 kg in the right hand of the RB-Y1 A to a random height.

    The hand hangs beside the body, and is to come 0.36 to 0.64 m higher; where it is in the plane does not count. The
    policy does not know the payload, but sees how far the servos yield. All else varies as in `reach`.

    Args:
        dtype: Type of its numbers; default is JAX's.
        **options: Arguments of `Environment` that are to be others.

    Example:
        >>> envs.lift().axes.tolist()
        [0.0, 0.0, 1.0]
    """
    model = right_arm(dtype)
    hanging, *raised = (jnp.asarray(q, model.inertias.dtype) for q in (_HANGING, *_RAISED))
    options = {"axes": np.array([0.0, 0.0, 1.0])} | options
    return _task(model, hanging, tuple(raised), _range(model, payload=(0.5, 3.0)), options)


def _task(model: Model, start: Any, goals: Any, parameters: Any, options: dict[str, Any]) -> Environment:
    servos: dict[str, Any] = {name: np.array(values) for name, values in _SERVOS.items()}
    own = {"model": model, "hand": "ee_right", "start": start, "goals": goals, "parameters": parameters}
    return Environment(**(own | servos | options))


def _range(model: Model, payload: tuple[float, float] = (0.0, 0.0)) -> tuple[Parameters, Parameters]:
    n, dry = np.ones(model.nb), _DRY * model.effort_limit
    return (
        Parameters(masses=0.9 * n, damping=0.0 * n, friction=0.0 * dry, gains=0.8, payload=payload[0]),
        Parameters(masses=1.1 * n, damping=2.0 * n, friction=dry, gains=1.2, payload=payload[1]),
    )
