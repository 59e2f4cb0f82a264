"""Sends commands and streams of commands through a robot of the SDK."""

from __future__ import annotations

import threading
import time
import warnings
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..._check import check_flag, check_integer, check_positive_number, check_sequence
from ..._errors import ArgumentError, CommandError, DtypeError, NotConnectedError, RbydynError, ShapeError
from ._sdk import Command
from .containers import ComponentBasedCommand, RobotCommand, WholeBodyCommand
from .joint import JogCommand, StopCommand
from .models import ModelDescription, described_by, model_description

if TYPE_CHECKING:
    from .feedback import RobotCommandFeedback

Sendable = RobotCommand | WholeBodyCommand | ComponentBasedCommand | JogCommand | StopCommand

_EARLY = 0.1  # of a period by which a command may be sent sooner after one that was late

# The SDK cancels a command as soon as nothing holds its handler. What is sent is held here until it is done, or the
# process ends.
_running: set[CommandHandle] = set()

_descriptions: weakref.WeakKeyDictionary[Any, ModelDescription] = weakref.WeakKeyDictionary()
_opened: weakref.WeakSet[Any] = weakref.WeakSet()  # robots that were connected once


class _Handle:
    """A running command or stream, with the methods of the SDK's handler."""

    _handler: Any

    def is_done(self) -> bool:
        """Whether it has ended, for any reason."""
        return self._handler.is_done()

    def wait(self) -> None:
        """Waits until it has ended."""
        self._handler.wait()

    def wait_for(self, timeout_ms: int) -> bool:
        """Waits until it has ended or the timeout has passed; returns whether it has ended.

        Args:
            timeout_ms: The time [ms].

        Raises:
            ArgumentError: The time is negative.
            DtypeError: It is not an integer.
        """
        return self._handler.wait_for(check_integer(timeout_ms, "timeout_ms", 0))

    def cancel(self) -> None:
        """Ends it: the command, or the stream with the command that was sent last."""
        self._handler.cancel()

    def __repr__(self) -> str:
        return repr(self._handler)

    def __str__(self) -> str:
        return str(self._handler)


class CommandHandle(_Handle):
    """A command that was sent. It continues if this object is garbage-collected; `cancel` and the end of the process
    end it.

    The methods are those of the SDK's handler, and errors of the connection are the SDK's `RuntimeError`.

    Args:
        handler: The handler that the SDK returned.

    Raises:
        DtypeError: It is not such a handler.
    """

    def __init__(self, handler: Any) -> None:
        self._handler = _checked(handler)
        _running.difference_update([h for h in tuple(_running) if h.is_done()])
        _running.add(self)

    def get(self) -> RobotCommandFeedback:
        """Waits until the command has ended, and returns its final feedback."""
        return _read(self._handler.get())

    def get_status(self) -> bool:
        """Whether the call to the robot succeeded."""
        return self._handler.get_status()


class CommandStream(_Handle):
    """A stream of commands, each of which replaces the one before; `create_command_stream` opens one.

    The methods are those of the SDK's stream handler, and errors of the connection are the SDK's `RuntimeError`, in
    `follow` a `NotConnectedError`, which is one too. Several threads may use one stream: each sends its command when
    the one before is answered. When the connection breaks while a command is being sent, the SDK may return the answer
    to the command before, once; `is_done` tells.

    Args:
        handler: The stream handler that the SDK returned.
        model: Robot to check against.

    Raises:
        DtypeError: `handler` is none, or `model` no description.
        NameNotFoundError: There is no such robot.
    """

    def __init__(self, handler: Any, model: ModelDescription | str) -> None:
        self._handler = _checked(handler)
        self._model = model if isinstance(model, ModelDescription) else model_description(model)
        self._turn = threading.Lock()  # the SDK refuses a command before the last one is answered

    def send_command(self, command: Sendable, timeout_ms: int = 1000, *, strict: bool = True) -> RobotCommandFeedback:
        """Sends a command, and returns the first feedback on it.

        Args:
            command: The command.
            timeout_ms: How long to wait for the answer [ms].
            strict: Check the command first; False sends anything that the SDK accepts.

        Raises:
            ArgumentError: The time is negative.
            CommandError: The command is invalid.
            DtypeError: `command` is of a type that cannot be sent, `timeout_ms` not an integer, or `strict` neither
                True nor False.
        """
        timeout = check_integer(timeout_ms, "timeout_ms", 0)
        builder = _sendable(command).to_sdk(self._model, strict=strict)
        with self._turn:
            return _read(self._handler.send_command(builder, timeout))

    def follow(
        self, commands: Sequence[Sendable], period: float, timeout_ms: int = 1000, *, strict: bool = True
    ) -> RobotCommandFeedback:
        """Sends commands one after the other, one in each period, and returns the first feedback on the last.

        It returns at the end of the last period, so that the commands of another call come in time. All are checked and
        converted before the first is sent. Commands that follow each other without a pause, such as those of
        `to_commands`, have a `minimum_time` of one period. After a command that was sent late, none is sent sooner than
        nine tenths of the period after the one before, or the robot would have to move faster. Where an answer comes
        after the next command was due, all commands that follow are late.

        Args:
            commands: The commands.
            period: Time from one to the next [s].
            timeout_ms: How long to wait for each answer [ms].
            strict: Check the commands first.

        Raises:
            ArgumentError: There is no command, the period is not positive, or the timeout negative.
            CommandError: A command is invalid, and named, such as ``commands[3]``; nothing was sent.
            DtypeError: An argument is of another type, or a value of a command is traced.
            NotConnectedError: A command was not answered in time, or the stream ended; the message says at which.

        Warns:
            UserWarning: The last command was sent more than one period late, so that the robot has waited; the message
                says how long answers took. If that is not long, this computer was late.
        """
        step, timeout = check_positive_number(period, "period"), check_integer(timeout_ms, "timeout_ms", 0)
        given = check_sequence(commands, "commands", "RobotCommand")
        strict = check_flag(strict, "strict")
        if not given:
            raise ArgumentError("commands must hold at least one")
        builders = [_numbered(command, f"commands[{k}]", self._model, strict) for k, command in enumerate(given)]
        answer, slowest = None, 0.0
        with self._turn:
            due = start = time.monotonic()
            sent = start - step
            for k, builder in enumerate(builders):
                due = max(due, time.monotonic() - _EARLY * step)
                time.sleep(max(0.0, due - time.monotonic()))
                while (now := time.monotonic()) < sent + (1.0 - _EARLY) * step:
                    pass  # not asleep, or a computer that wakes late would never catch up
                sent, due = now, due + step
                try:
                    answer = self._handler.send_command(builder, timeout)
                except RuntimeError as error:
                    raise NotConnectedError(f"commands[{k}] was not answered: {error}") from error
                slowest = max(slowest, time.monotonic() - sent)
            time.sleep(max(0.0, due - time.monotonic()))  # the SDK needs a moment to notice that a stream has ended
            if self.is_done():
                raise NotConnectedError(f"commands[{len(builders) - 1}] was not answered: the stream ended")
        late = sent - start - (len(builders) - 1) * step
        if late > step:
            message = f"the last command was sent {late:.3f} s late; answers took up to {slowest:.3f} s of {step} s"
            warnings.warn(message, stacklevel=2)
        return _read(answer)

    def request_feedback(self, timeout_ms: int = 1000) -> RobotCommandFeedback:
        """Requests feedback on the last command.

        Args:
            timeout_ms: How long to wait for the answer [ms].

        Raises:
            ArgumentError: The time is negative.
            DtypeError: It is not an integer.
        """
        timeout = check_integer(timeout_ms, "timeout_ms", 0)
        with self._turn:
            return _read(self._handler.request_feedback(timeout))


def send(
    robot: Any,
    command: Sendable,
    priority: int = 1,
    *,
    model: ModelDescription | str | None = None,
    strict: bool = True,
) -> CommandHandle:
    """Checks a command against the robot and sends it; the same command may be sent any number of times.

    Args:
        robot: A robot of `rby1_sdk` or of `rbydyn_jax.rby1.builders`, connected.
        command: A `RobotCommand`, or what one can hold, or a builder of `rbydyn_jax.rby1.builders` of such.
        priority: A command replaces another of the same or lower priority.
        model: Robot to check against; default are the limits of the connected robot's own model, or those of the latest
            version of its kind where it has none.
        strict: Check the command first; False sends anything that the SDK accepts.

    Returns:
        A handle of the running command, which continues if the handle is dropped.

    Raises:
        CommandError: The command is invalid.
        DtypeError: An argument is of another type, or a value is traced.
        MissingExtraError: The SDK is not installed.
        NotConnectedError: The robot is not connected. A connection that has just been lost shows in `handle.get()`.
    """
    priority, strict = check_integer(priority, "priority"), check_flag(strict, "strict")
    robot, kind = _connected(robot)
    against = (own_description(robot, kind) if strict else kind) if model is None else model
    builder = _sendable(command).to_sdk(against, strict=strict)
    return CommandHandle(robot.send_command(builder, priority))


def create_command_stream(
    robot: Any, priority: int = 1, *, model: ModelDescription | str | None = None
) -> CommandStream:
    """Opens a stream of commands.

    Args:
        robot: A robot of `rby1_sdk` or of `rbydyn_jax.rby1.builders`, connected.
        priority: A command replaces another of the same or lower priority.
        model: Robot to check against; default are the limits of the connected robot's own model, or those of the latest
            version of its kind where it has none.

    Raises:
        DtypeError: `robot` is not a robot of the SDK, `priority` not an integer, or `model` no description.
        NameNotFoundError: There is no such model.
        NotConnectedError: The robot is not connected.
    """
    priority = check_integer(priority, "priority")
    robot, kind = _connected(robot)
    against = own_description(robot, kind) if model is None else model
    return CommandStream(robot.create_command_stream(priority), against)


def _connected(robot: Any) -> tuple[Any, str]:
    """A connected robot of the SDK, and its model."""
    robot = getattr(robot, "sdk_robot", robot)  # one of rbydyn_jax.rby1.builders has it inside
    try:
        connected, name = was_connected(robot), robot.model().model_name
    except (AttributeError, TypeError):  # TypeError: it cannot be hashed
        raise DtypeError(f"robot must be one of rby1_sdk.create_robot, got {type(robot).__name__}") from None
    if not connected:
        raise NotConnectedError("the robot is not connected: call robot.connect(), which returns whether it worked")
    return robot, name


def was_connected(robot: Any) -> bool:
    """Whether a robot of the SDK was ever connected: without that, calls end the process.

    After that they return or raise, and a connection that was lost comes back with the server.
    """
    if robot not in _opened and robot.is_connected():
        _opened.add(robot)
    return robot in _opened


def own_description(robot: Any, kind: str) -> ModelDescription:
    """The description of a connected robot of the SDK: its kind, with the limits of its own URDF, asked for once."""
    known = _descriptions.get(robot)
    if known is None:
        try:
            urdf = robot.get_robot_model()
        except RuntimeError:  # the robot does not tell
            urdf = ""
        try:
            known = described_by(kind, urdf) if urdf else model_description(kind)
        except RbydynError as error:
            warnings.warn(
                f"the robot's own model cannot be read, limits are those of the latest: {error}", stacklevel=3
            )
            known = model_description(kind)
        if urdf or robot.is_connected():  # otherwise it is asked again
            _descriptions[robot] = known
    return known


def _read(feedback: Any) -> RobotCommandFeedback:
    from .feedback import read_feedback  # not above, see the package

    return read_feedback(feedback)


def _checked(handler: Any) -> Any:
    if not callable(getattr(handler, "is_done", None)):
        raise DtypeError(f"handler must be one of the SDK's, got {type(handler).__name__}")
    return handler


def _numbered(command: Any, name: str, model: ModelDescription, strict: bool) -> Any:
    """A builder of the SDK for one of several commands; errors say which one is wrong."""
    sendable = _sendable(command, name)
    try:
        return sendable.to_sdk(model, strict=strict)
    except CommandError as error:
        raise CommandError([replace(f, source=f"{name}: {f.source}") for f in error.findings]) from None
    except (DtypeError, ShapeError) as error:
        raise type(error)(f"{name}: {error}") from None


def _sendable(command: Any, name: str = "command") -> RobotCommand:
    if not isinstance(command, Command) and hasattr(command, "build"):
        command = command.build()  # one of rbydyn_jax.rby1.builders
    if not isinstance(command, Command):
        raise DtypeError(f"{name} must be a RobotCommand or what one can hold, got {type(command).__name__}")
    return command if isinstance(command, RobotCommand) else RobotCommand(command)
