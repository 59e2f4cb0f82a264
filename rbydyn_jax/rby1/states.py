"""Logs of the states that an RB-Y1 reports, as arrays for the pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_sequence
from .._errors import ArgumentError, DtypeError, ModelError, ShapeError
from ..model.model import Model, check_model
from .commands.models import ModelDescription, model_description


class StateLog(NamedTuple):
    """States, a row for each, in the order of a model's joints and in its dtype.

    Attributes:
        t: Times since the first state [s].
        q: Positions [rad].
        v: Velocities [rad/s].
        tau: Torques of the motors as the robot reports them [N m].
        current: Currents of the motors [A].
    """

    t: Float[Array, "t"]
    q: Float[Array, "t nq"]
    v: Float[Array, "t nv"]
    tau: Float[Array, "t nv"]
    current: Float[Array, "t nv"]


def state_log(model: Model, states: Sequence[Any], description: ModelDescription | str = "A") -> StateLog:
    """The states that `robot.get_state()` or `start_state_update` gave, as arrays.

    Args:
        model: The robot; each of its joints is one of the RB-Y1, and may be a part of them (`submodel`).
        states: States of the SDK, or anything with `timestamp`, `position`, `velocity`, `torque` and `current`.
        description: Which RB-Y1 they come from: ``"A"``, ``"M"``, ``"UB"`` or a description.

    Raises:
        ArgumentError: The times do not increase, or there is no state.
        DtypeError: An element of `states` is not a robot state.
        ModelError: The model has a joint that the RB-Y1 has not.
        NameNotFoundError: There is no such RB-Y1.
        ShapeError: A state has another number of joints.

    Example:
        >>> from datetime import datetime
        >>> from types import SimpleNamespace
        >>> from rbydyn_jax.rby1.states import state_log
        >>> fields = dict.fromkeys(("position", "velocity", "torque", "current"), np.zeros(24))
        >>> state = SimpleNamespace(timestamp=datetime(2026, 1, 1), **fields)
        >>> state_log(robots.rby1a(), [state]).q.shape
        (1, 24)
    """
    model = check_model(model)
    rby1 = description if isinstance(description, ModelDescription) else model_description(description)
    names = rby1.robot_joint_names
    if missing := [name for name in model.joint_names if name not in names]:
        raise ModelError(f"joint {missing[0]!r} of the model is none of the RB-Y1 {description!r}")
    order = [names.index(name) for name in model.joint_names]
    rows: dict[str, list[np.ndarray]] = {field: [] for field in ("position", "velocity", "torque", "current")}
    times: list[datetime] = []
    for k, state in enumerate(check_sequence(states, "states", "states of the robot")):
        try:
            times.append(state.timestamp)
            values = {field: np.asarray(getattr(state, field), float) for field in rows}
        except (AttributeError, TypeError, ValueError):
            raise DtypeError(f"states[{k}] must be a state of the SDK, got {type(state).__name__}") from None
        for field, value in values.items():
            if value.shape != (len(names),):
                raise ShapeError(f"states[{k}].{field} must have shape ({len(names)},), got {value.shape}")
            rows[field].append(value[order])
    if not times:
        raise ArgumentError("states must have at least one state, got none")
    t = np.array([(x - times[0]).total_seconds() for x in times])
    if not (np.diff(t) > 0.0).all():
        late = int(np.argmin(np.diff(t) > 0.0)) + 1
        raise ArgumentError(f"states[{late}] is not later than the state before it")
    dtype = model.inertias.dtype
    return StateLog(jnp.asarray(t, dtype), *(jnp.asarray(np.array(x), dtype) for x in rows.values()))
