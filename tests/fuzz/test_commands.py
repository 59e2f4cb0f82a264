"""`from_dict` of damaged dictionaries: a command that can be checked, or a typed error that says where."""

from __future__ import annotations

import random
import warnings
from typing import Any

import pytest

from rbydyn_jax import CommandError, DtypeError, NameNotFoundError, RbydynError, ShapeError
from rbydyn_jax.rby1.commands import JointPositionCommand, RobotCommand, SE2Velocity

from .commands import VALUES, mutate, nested


@pytest.mark.parametrize("seed", range(3))
def test_damaged_dictionaries_are_refused_or_give_commands(seed: int):
    made = refused = 0
    for k in range(1000):
        data = mutate(random.Random(f"{seed} {k}"))
        try:
            command = RobotCommand.from_dict(data)
        except RbydynError as error:
            assert str(error).strip()
            refused += 1
            continue
        made += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                command.validate("A")
            except CommandError as error:
                assert error.findings
    assert made > 20 and refused > 500


@pytest.mark.parametrize(
    "data, error, message",
    [
        ({"type": "SE2Velocity", "angular": 0.1}, DtypeError, "data lacks 'linear' of SE2Velocity"),
        ({"type": []}, DtypeError, "data must have the name of a type as 'type', got \\[\\]"),
        ({"type": "RobotCommand", "command": {"type": {}}}, DtypeError, "data.command must have the name"),
        ({"type": "RobotCommand", "command": {"type": "StopComand"}}, NameNotFoundError, "data.command.*StopCommand"),
        ({"type": "RobotCommand", "comand": 1}, NameNotFoundError, "RobotCommand \\(data\\).*'command'"),
        ({"type": "SE2Velocity", "linear": [1.0], "angular": 1}, ShapeError, "data: SE2Velocity.linear must"),
        ({"type": "SE2Velocity", "linear": [1.0, 0.0], "angular": 10**400}, DtypeError, "double-precision number"),
        ({"type": "SE2Velocity", "linear": [10**400, 0.5], "angular": 0}, DtypeError, "SE2Velocity.linear must be"),
        ({"type": "JointPositionCommand", "position": nested(500, 1.0)}, DtypeError, "nested deeper than 32"),
        (nested(500, None, "command"), DtypeError, "data.command.command.*nested deeper"),
        ([], DtypeError, "data must be a dictionary"),
    ],
)  # fmt: skip
def test_errors_say_where(data: Any, error: type[Exception], message: str):
    for cls in (RobotCommand, SE2Velocity, JointPositionCommand):
        with pytest.raises(error, match=message):
            cls.from_dict(data)


def test_every_value_for_every_type():
    for value in VALUES:
        for data in (value, {"type": "RobotCommand", "command": value}, {"type": value}):
            with pytest.raises(RbydynError):
                SE2Velocity.from_dict(data)
