"""Converts commands to builders of the SDK, fresh at each call, because passing a builder on empties it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jax
import numpy as np

from ..._check import check_flag
from ..._errors import ShapeError
from ..._extras import require
from .._enumerations import introduce
from ._node import Node, concrete, fields_set, kinds
from .models import ModelDescription


def load_sdk() -> ModuleType:
    """The SDK, imported when it is first needed.

    Raises:
        MissingExtraError: It is not installed.
    """
    sdk = require("rby1_sdk", "rby1", "talking to an RB-Y1")
    introduce(sdk)
    return sdk


class Command(Node):
    """Base of the classes that the SDK has builders for."""

    def to_sdk(self, model: str | ModelDescription | None = None, *, component: str = "", strict: bool = True) -> Any:
        """Returns a fresh builder of the SDK.

        Args:
            model: Robot to check against, see `validate`.
            component: Part of the robot to check against.
            strict: Check the command first; False converts anything that the SDK accepts.

        Raises:
            CommandError: Something is wrong with the command.
            DtypeError: A value is traced.
            MissingExtraError: The SDK is not installed.
            ShapeError: It is a batch of commands.
        """
        sdk = load_sdk()
        if check_flag(strict, "strict"):
            self.validate(model, component)
        return _builder(self, sdk)


class JogTarget(Node):
    """Base of the targets of a jog command."""


def _builder(command: Command, sdk: ModuleType) -> Any:
    builder = getattr(sdk, f"{type(command).__name__}Builder")()
    for name, value in fields_set(command).items():
        if isinstance(value, tuple) and isinstance(value[0], Node):
            for part in value:
                getattr(builder, f"add_{name.removesuffix('s')}")(**_arguments(part))
        elif isinstance(value, Command):
            getattr(builder, f"set_{name}")(_builder(value, sdk))
        elif isinstance(value, JogTarget):
            target = getattr(sdk.JogCommandBuilder, type(value).__name__)
            builder.set_command(target(*_arguments(value).values()))
        elif isinstance(value, Node):
            getattr(builder, f"set_{name}")(**_arguments(value))
        else:
            getattr(builder, f"set_{name}")(_argument(value, command, name))
    return builder


def _arguments(part: Node) -> dict[str, Any]:
    return {name: _argument(getattr(part, name), part, name) for name in kinds(type(part))}


def _argument(value: Any, part: Node, name: str) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, np.ndarray | jax.Array):
        array, axes = concrete(value, f"{type(part).__name__}.{name}"), kinds(type(part))[name].axes
        if array.ndim > axes:
            batch = array.shape[: array.ndim - axes]
            raise ShapeError(f"{type(part).__name__}.{name} is of a batch {batch} of commands: send them one by one")
        return float(array) if array.ndim == 0 else array
    return value
