"""``rbydyn ik``: a configuration that brings a link to a pose."""

from __future__ import annotations

import json
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from .._errors import ArgumentError
from ..engines.conventions import joint_values
from ..planning import IkStatus, PositionGoal, solve_ik
from ..spatial import quaternions, se3
from ..spatial import rpy as roll_pitch_yaw
from .source import load


def ik(
    robot: str,
    link: str,
    position: Sequence[float],
    *,
    quaternion: Sequence[float] | None = None,
    rpy: Sequence[float] | None = None,
    clearance: float | None = None,
    q0: Sequence[float] | None = None,
    seed: int = 0,
    as_json: bool = False,
) -> int:
    """Prints a configuration within the limits; returns 0 if it is a solution, 1 if none was found.

    Args:
        robot: A file or a name.
        link: The link.
        position: Where its origin is to be, in the world [m].
        quaternion: Its orientation (w, x, y, z); default is any.
        rpy: Its orientation as roll, pitch and yaw [rad]; default is any.
        clearance: Minimum distance of the collision shapes [m]; default is any.
        q0: The first start; default is a random one.
        seed: Seed of the random starts.
        as_json: Whether to print a JSON document instead of a table.

    Raises:
        ArgumentError: The quaternion is zero.
        ModelError: No joint moves the link, or there is a clearance and the robot has no collision shapes.
        NameNotFoundError: There is no such robot or link.
        ParseError: The file describes no robot.
        ShapeError: `q0` has another number of values than the configuration.
    """
    with jax.enable_x64(True):
        model = load(robot)
        place, options = jnp.array(position), {"clearance": clearance, "key": jax.random.key(seed)}
        options["q0"] = None if q0 is None else jnp.array(q0)
        if quaternion is None and rpy is None:
            result = solve_ik(model, goals=[PositionGoal(link, place)], **options)
        else:
            if quaternion is not None and not np.any(quaternion):
                raise ArgumentError("quaternion must not be zero")
            turned = roll_pitch_yaw.to_matrix(jnp.array(rpy)) if quaternion is None else None
            R = quaternions.to_matrix(jnp.array(quaternion)) if turned is None else turned
            result = solve_ik(model, link, se3.from_R_p(R, place), **options)
        solved = bool(result.solved)
    q = np.asarray(result.q)
    if as_json:
        numbers = ("position_error", "orientation_error", "distance")
        given = {name: getattr(result, name) for name in numbers}
        facts = {
            "name": model.name,
            "status": IkStatus(int(result.status)).name,
            "q": q.tolist(),
            "joints": {name: x.tolist() for name, x in zip(model.joint_names, joint_values(model, q), strict=True)},
            **{name: float(x) for name, x in given.items() if x is not None},
        }
        print(json.dumps(facts, indent=2))
    else:
        print(result)
        print(f"q = {','.join(f'{x:.9g}' for x in q)}")
    return 0 if solved else 1
