"""The SDK's builders by name, on top of `rbydyn_jax.rby1.commands`: only the import of a script changes.

`import rbydyn_jax.rby1.builders as rby`, or `import rbydyn_jax.rby1 as rby`, instead of `import rby1_sdk as rby`. A
builder may be reused: a parent copies its current command. Setters accept what the SDK accepts, raise a `TypeError` for
what it rejects, and return the builder; `build` returns the command. They refuse what the SDK would make numbers of:
truth values, and in arrays strings, None, complex numbers and other objects; NumPy's floats where an integer is to be;
and bytes as a name. Robots of `create_robot` accept these builders, check them before they are sent against the limits
of the connected robot, and do not end the process if they are not connected; their `get_dynamics` returns a robot of
`rby1.dynamics`. All other names come from the SDK.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .._errors import DtypeError, NotConnectedError, ShapeError
from . import commands
from .commands import ModelDescription, model_description
from .commands._kinds import Child, Children, Flag, Kind, shown
from .commands._node import Node, kinds
from .commands._sdk import Command, JogTarget, load_sdk
from .commands.containers import Wrapper
from .commands.sending import was_connected

if TYPE_CHECKING:
    from . import dynamics as dynamics
    from . import math as math

# Arguments that the SDK names otherwise than its messages.
_ARGUMENTS = {
    "transformation": "T",
    "translation_weight": "weight",
    "rotation_weight": "weight",
    "joint_stiffness": "stiffness",
    "joint_damping_ratio": "damping_ratio",
    "joint_torque_limit": "torque_limit",
}


_OURS = ("dynamics", "math")  # modules of the SDK that this library has, too


class Builder:
    """Base of all builders: each call replaces the command that it holds with a changed one.

    Args:
        *args: What to call `set_command` with, for a builder that holds one command.
        **kwargs: The same by name.

    Raises:
        DtypeError: It is the base itself, or has arguments that it does not take.
    """

    _type: ClassVar[type[Command]]

    def __init_subclass__(cls, builds: type[Command]) -> None:
        cls._type = builds
        for field, kind in kinds(builds).items():
            setter = _setter(field, kind)
            setter.__qualname__ = f"{cls.__name__}.{setter.__name__}"
            setattr(cls, setter.__name__, setter)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if type(self) is Builder:
            raise DtypeError("Builder builds no command: call that of one, such as JointPositionCommandBuilder")
        self._command = self._type()
        if args or kwargs:
            if not issubclass(self._type, Wrapper):
                raise DtypeError(f"{type(self).__name__}() takes no arguments")
            self.set_command(*args, **kwargs)

    def build(self) -> Any:
        """Returns the command."""
        return self._command

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._command!r})"

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]: ...


def _setter(field: str, kind: Kind) -> Callable[..., Any]:
    types = (kind.type,) if isinstance(kind, Children) else kind.types if isinstance(kind, Child) else ()
    if types and not issubclass(types[0], Command | JogTarget):
        record: type = types[0]
        signature = inspect.signature(record)
        many = isinstance(kind, Children)

        def read(old: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            part = record(*args, **kwargs)
            return (*old, part) if many else part
    else:
        jogs = bool(types) and issubclass(types[0], JogTarget)
        names = [_builder_name(t) for t in types] or [_ARGUMENTS.get(field, field)]
        parameter = inspect.Parameter(names[0], inspect.Parameter.POSITIONAL_OR_KEYWORD)
        signature, many = inspect.Signature([parameter]), False

        def read(old: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            renamed = {names[0] if name in names else name: value for name, value in kwargs.items()}
            value = signature.bind(*args, **renamed).arguments[names[0]]
            if isinstance(kind, Flag):
                return _truth(value, names[0])
            if jogs and isinstance(value, int | np.number) and not isinstance(value, float):
                raise DtypeError(f"{names[0]} must be a float, or what to jog to, got {type(value).__name__}")
            return _value(value, names[0])

    def setter(self: Builder, *args: Any, **kwargs: Any) -> Builder:
        try:
            value = read(getattr(self._command, field), args, kwargs)
            self._command = self._command.replace(**{field: value})
        except ShapeError as error:
            raise DtypeError(str(error)) from error
        return self

    setter.__name__ = f"add_{field.removesuffix('s')}" if many else f"set_{field}"
    setter.__doc__ = f"Sets `{field}` of the command and returns the builder."
    setter.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return setter


def _builder_name(cls: type[Node]) -> str:
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
    return f"{name}_builder" if issubclass(cls, Command) else name


def _value(value: Any, name: str) -> Any:
    if value is None:
        raise DtypeError(f"{name} must not be None")
    return value.build() if isinstance(value, Builder) else value


def _truth(value: Any, name: str) -> bool:
    """Whether a value counts as true, for those that have `__bool__`: None and numbers, but no strings and no lists."""
    try:
        if hasattr(type(value), "__bool__"):
            return bool(value)
    except (TypeError, ValueError):  # of an array of several numbers, or one that is traced
        pass
    raise DtypeError(f"{name} must be True or False, got {shown(value)}")


class CommandHeaderBuilder(Builder, builds=commands.CommandHeader):
    """Builds a `CommandHeader`."""


class JointPositionCommandBuilder(Builder, builds=commands.JointPositionCommand):
    """Builds a `JointPositionCommand`."""


class JointGroupPositionCommandBuilder(Builder, builds=commands.JointGroupPositionCommand):
    """Builds a `JointGroupPositionCommand`."""


class JointImpedanceControlCommandBuilder(Builder, builds=commands.JointImpedanceControlCommand):
    """Builds a `JointImpedanceControlCommand`."""


class JointVelocityCommandBuilder(Builder, builds=commands.JointVelocityCommand):
    """Builds a `JointVelocityCommand`."""


class SE2VelocityCommandBuilder(Builder, builds=commands.SE2VelocityCommand):
    """Builds an `SE2VelocityCommand`."""


class GravityCompensationCommandBuilder(Builder, builds=commands.GravityCompensationCommand):
    """Builds a `GravityCompensationCommand`."""


class CartesianCommandBuilder(Builder, builds=commands.CartesianCommand):
    """Builds a `CartesianCommand`."""


class CartesianImpedanceControlCommandBuilder(Builder, builds=commands.CartesianImpedanceControlCommand):
    """Builds a `CartesianImpedanceControlCommand`."""


class ImpedanceControlCommandBuilder(Builder, builds=commands.ImpedanceControlCommand):
    """Builds an `ImpedanceControlCommand`."""


class OptimalControlCommandBuilder(Builder, builds=commands.OptimalControlCommand):
    """Builds an `OptimalControlCommand`."""


class StopCommandBuilder(Builder, builds=commands.StopCommand):
    """Builds a `StopCommand`."""


class JogCommandBuilder(Builder, builds=commands.JogCommand):
    """Builds a `JogCommand`."""

    AbsolutePosition = commands.AbsolutePosition
    RelativePosition = commands.RelativePosition
    OneStep = commands.OneStep


class ArmCommandBuilder(Builder, builds=commands.ArmCommand):
    """Builds an `ArmCommand`."""


class TorsoCommandBuilder(Builder, builds=commands.TorsoCommand):
    """Builds a `TorsoCommand`."""


class HeadCommandBuilder(Builder, builds=commands.HeadCommand):
    """Builds a `HeadCommand`."""


class MobilityCommandBuilder(Builder, builds=commands.MobilityCommand):
    """Builds a `MobilityCommand`."""


class BodyComponentBasedCommandBuilder(Builder, builds=commands.BodyComponentBasedCommand):
    """Builds a `BodyComponentBasedCommand`."""


class BodyCommandBuilder(Builder, builds=commands.BodyCommand):
    """Builds a `BodyCommand`."""


class ComponentBasedCommandBuilder(Builder, builds=commands.ComponentBasedCommand):
    """Builds a `ComponentBasedCommand`."""


class WholeBodyCommandBuilder(Builder, builds=commands.WholeBodyCommand):
    """Builds a `WholeBodyCommand`."""


class RobotCommandBuilder(Builder, builds=commands.RobotCommand):
    """Builds a `RobotCommand`.

    Example:
        >>> import rbydyn_jax.rby1.builders as rby
        >>> nod = rby.JointPositionCommandBuilder().set_position([0.0, 0.3]).set_minimum_time(1.0)
        >>> command = rby.RobotCommandBuilder(rby.ComponentBasedCommandBuilder().set_head_command(nod)).build()
        >>> command.command.head_command.command
        JointPositionCommand(position=[0.0, 0.3], minimum_time=1.0)
    """


def Model_A() -> ModelDescription:
    """The RB-Y1 A."""
    return model_description("A")


def Model_M() -> ModelDescription:
    """The RB-Y1 M."""
    return model_description("M")


def Model_UB() -> ModelDescription:
    """The RB-Y1 UB."""
    return model_description("UB")


class Robot:
    """A robot of the SDK that accepts the builders of this module and delegates everything else.

    Args:
        sdk_robot: A robot of the SDK.
    """

    # What the SDK's robot can be asked before it is connected.
    _OFFLINE = ("connect", "model")

    def __init__(self, sdk_robot: Any) -> None:
        self.sdk_robot = sdk_robot

    def is_connected(self) -> bool:
        """Whether the robot answers; the SDK's own reports a lost connection only after a failed call."""
        if self.sdk_robot.is_connected():
            try:
                self.sdk_robot.get_robot_info()
            except RuntimeError:
                return False
            return True
        return False

    def send_command(self, builder: Any, priority: int = 1, *, strict: bool = True) -> commands.CommandHandle:
        """Sends a command, or that of a builder; see `rbydyn_jax.rby1.commands.send`."""
        return commands.send(self, builder, priority, strict=strict)

    def create_command_stream(self, priority: int = 1) -> commands.CommandStream:
        """Opens a stream; see `rbydyn_jax.rby1.commands.create_command_stream`."""
        return commands.create_command_stream(self, priority)

    def get_dynamics(self, urdf_model: str = "") -> dynamics.Robot:
        """The dynamics of the robot from its own model, or from another one: a robot of `rby1.dynamics`.

        Args:
            urdf_model: The text or the path of a URDF, which needs no connection.

        Raises:
            ModelError: The model does not have the joints of this kind of robot.
            NotConnectedError: No model is given, and the robot is not connected.
            ParseError: The model cannot be read.
        """
        from . import dynamics  # not above: builders need none

        text = urdf_model or self.get_robot_model()
        load = dynamics.load_robot_from_urdf_data if "<" in text else dynamics.load_robot_from_urdf
        kinds = {"A": dynamics.Robot_24, "M": dynamics.Robot_26, "UB": dynamics.Robot_18}
        return kinds[self.sdk_robot.model().model_name](load(text, "base"))

    def __getattr__(self, name: str) -> Any:
        if name == "sdk_robot" or name.startswith("_"):  # while a copy is made, there is none yet
            raise AttributeError(name)
        if name not in self._OFFLINE and not was_connected(self.sdk_robot):
            raise NotConnectedError(f"{name} needs a connection: call connect(), which returns whether it worked")
        return getattr(self.sdk_robot, name)

    def __repr__(self) -> str:
        return self._printed(repr)

    def __str__(self) -> str:
        return self._printed(str)

    def _printed(self, form: Callable[[Any], str]) -> str:
        """As the SDK prints it, which ends the process before the robot is connected and raises after it is lost."""
        if self.sdk_robot.is_connected():
            with contextlib.suppress(RuntimeError):
                return form(self.sdk_robot)
        return f"Robot(model={self.sdk_robot.model().model_name!r}, connected=False)"


def create_robot(address: str, model_name: str) -> Robot:
    """A robot at an address, to be connected.

    Args:
        address: Host and port.
        model_name: ``"a"``, ``"m"`` or ``"ub"``.

    Raises:
        DtypeError: The address is no str.
        MissingExtraError: The SDK is not installed.
        NameNotFoundError: There is no such model.
    """
    if not isinstance(address, str):
        raise DtypeError(f"address must be a str, host and port, got {type(address).__name__}")
    return Robot(load_sdk().create_robot(address, model_description(model_name).model_name.lower()))


def create_robot_a(address: str) -> Robot:
    """An RB-Y1 A at an address."""
    return create_robot(address, "a")


def create_robot_m(address: str) -> Robot:
    """An RB-Y1 M at an address."""
    return create_robot(address, "m")


def create_robot_ub(address: str) -> Robot:
    """An RB-Y1 UB at an address."""
    return create_robot(address, "ub")


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    if name in _OURS:
        return importlib.import_module(f"..{name}", __name__)
    if name.endswith("Feedback") and hasattr(commands, name):
        return getattr(commands, name)
    return getattr(load_sdk(), name)
