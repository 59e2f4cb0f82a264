"""Our builders against the SDK's: names, arguments and what they take."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
import warnings
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rbydyn_jax import CommandError, DtypeError, MissingExtraError, NameNotFoundError
from rbydyn_jax.rby1 import builders as facade
from rbydyn_jax.rby1 import commands as c
from tests.helpers import oracle, untyped

sdk: Any = oracle("rby1_sdk")
NAMES = [name for name in dir(sdk) if name.endswith("Builder")]


def methods(cls: type) -> set[str]:
    return {name for name in dir(cls) if name.startswith(("set_", "add_"))}


def arguments(cls: type, method: str) -> list[list[str]]:
    """The names of the arguments of each overload of one of the SDK's methods."""
    signatures = re.findall(rf"{method}\(self: [^,)]*(?:, (.*?))?\) -> ", getattr(cls, method).__doc__)
    return [re.findall(r"(\w+): ", text) for text in signatures]


def accepts(call: Callable[[], Any]) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_methods_and_arguments_have_the_names_of_the_sdk(name: str):
    theirs, ours = getattr(sdk, name), getattr(facade, name)
    assert methods(ours) == methods(theirs)
    for method in methods(theirs):
        overloads = arguments(theirs, method)
        assert overloads
        if len(overloads) == 1:
            assert list(inspect.signature(getattr(ours, method)).parameters) == overloads[0]
        for overload in overloads if method == "set_command" and name != "JogCommandBuilder" else ():
            child = overload[0]
            cls = next(n for n in NAMES if re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", n).lower() == child)
            assert isinstance(ours(**{child: getattr(facade, cls)()}), ours)
            assert getattr(ours(), method)(**{child: getattr(facade, cls)()})


@pytest.mark.parametrize("name", NAMES)
def test_builders_take_the_builders_that_the_sdk_takes(name: str):
    taken = 0
    for child in NAMES:
        pairs = [(getattr(module, name), getattr(module, child)) for module in (sdk, facade)]
        assert len({accepts(lambda p=p: p[0](p[1]())) for p in pairs}) == 1, child
        for method in methods(pairs[0][0]):
            got = {accepts(lambda p=p, m=method: getattr(p[0](), m)(p[1]())) for p in pairs}
            assert len(got) == 1, (method, child)
            taken += got == {True}
    assert taken or name == "CommandHeaderBuilder"


class Answer:
    """What counts as true or false, or raises."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __bool__(self) -> bool:
        return bool(self.answer)


# The SDK makes numbers of bools, and integers of numpy's floats; here these are errors.
VALUES = (
    1, 1.5, np.float32(2), np.int64(3), 2.5 + 1j, None, "1", [1.0, 2.0], (1, 2, 3), [], np.ones(3, np.float32),
    np.ones((3, 1)), np.ones((1, 3)), np.ones((2, 2)), np.eye(4), np.eye(4).tolist(), [[1.0], [2.0, 3.0]],
    ["torso_1"], ("torso_1",), {"a": 1}, object(), True, np.nan, 0, 4.0, np.float64(4), np.bool_(False), "",
    {"torso_1"}, np.array(["torso_1", "torso_2"]), np.array([["torso_1"]]), np.array(["torso_1", 1], object),
    np.zeros(0), np.ma.masked_array(["torso_1", "torso_2"], mask=[False, True]), iter(["torso_1"]),
    Answer(True), Answer(np.zeros(2)), np.array([1]),
)  # fmt: skip
FLAGS = ("set_on", "set_reset_reference")


@pytest.mark.parametrize("name", NAMES)
def test_setters_refuse_the_types_that_the_sdk_refuses(name: str):
    theirs, ours = getattr(sdk, name), getattr(facade, name)
    for method in methods(theirs):
        overloads = arguments(theirs, method)
        if len(overloads) != 1 or len(overloads[0]) != 1:
            continue
        for value in VALUES:
            got = accepts(lambda v=value, m=method: getattr(ours(), m)(v))
            if isinstance(value, bool | np.bool_) and method not in FLAGS:
                assert not got, (method, value)
            elif method == "set_patience" and isinstance(value, np.floating):
                assert not got
            else:
                assert got == accepts(lambda v=value, m=method: getattr(theirs(), m)(v)), (method, value)


def examples() -> dict[str, list[doctest.Example]]:
    """The examples in the documentation of the SDK's builders that run with the SDK, by what they are an example of."""
    found = {}
    for name in NAMES:
        cls = getattr(sdk, name)
        for method in ("", *sorted(methods(cls))):
            text = inspect.cleandoc((getattr(cls, method) if method else cls).__doc__ or "")
            parsed = doctest.DocTestParser().get_examples(text)
            if parsed and not failure(parsed, sdk):
                found[f"{name}.{method}"] = parsed
    return found


class AnyRobot:
    """Stands in for the robot of the examples, and checks what ours are told to send."""

    def send_command(self, builder: Any, priority: int = 1) -> AnyRobot:
        if isinstance(builder, facade.Builder):
            builder.build().validate("A")
        return self


def failure(parsed: list[doctest.Example], rby: Any) -> str:
    names = {"rby": rby, "np": np, "robot": AnyRobot()}
    for example in parsed:
        try:
            exec(example.source.replace("rby1_sdk as rby", "numpy"), names)
        except Exception as error:
            return f"{error!r} in {example.source}"
    return ""


EXAMPLES = examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_runs_of_the_documentation_of_the_sdk_runs(name: str):
    assert failure(EXAMPLES[name], facade) == ""


def test_the_documentation_of_the_sdk_has_examples():
    assert len(EXAMPLES) > 15


def test_calls_with_too_many_too_few_or_unknown_arguments_are_type_errors():
    builder = facade.JointPositionCommandBuilder()
    for call in (
        lambda: builder.set_position(),
        lambda: builder.set_position([1.0], [2.0]),
        lambda: builder.set_position(angle=[1.0]),
        lambda: builder.set_command_header(facade.StopCommandBuilder()),
        lambda: facade.CartesianCommandBuilder().add_target("base", "ee_right", np.eye(4)),
        lambda: facade.CartesianCommandBuilder().add_target("base", "ee_right", np.eye(4), None, 1.0, 1.0),
        lambda: facade.JointPositionCommandBuilder([1.0]),
        lambda: facade.ArmCommandBuilder(joint_velocity_command_builder=facade.JointVelocityCommandBuilder()),
        lambda: facade.RobotCommandBuilder().set_command(facade.ArmCommandBuilder()),
    ):
        with pytest.raises(TypeError):
            call()
    assert builder.build() == c.JointPositionCommand()


def test_a_builder_holds_a_command_and_what_it_is_put_into_takes_what_it_says_then():
    leaf = facade.JointPositionCommandBuilder()
    assert leaf.set_position([0.25, 0.5]) is leaf
    head = facade.HeadCommandBuilder(leaf)
    leaf.set_minimum_time(2.0)
    assert head.build() == c.HeadCommand(c.JointPositionCommand(position=np.array([0.25, 0.5])))
    assert leaf.build() == c.JointPositionCommand(position=np.array([0.25, 0.5]), minimum_time=2.0)
    assert repr(leaf) == f"JointPositionCommandBuilder({leaf.build()!r})"
    assert facade.HeadCommandBuilder(leaf.build()).build().command == leaf.build()


@pytest.mark.parametrize("value", [True, False, 1, 0, None, 2.5, np.bool_(True), np.zeros(1), Answer(True)])
def test_a_switch_is_what_python_takes_a_value_for(value: Any):
    assert facade.GravityCompensationCommandBuilder().set_on(value).build().on is bool(value)


def test_a_jog_says_which_numbers_it_takes():
    with pytest.raises(DtypeError, match="must be a float, or what to jog to, got int"):
        facade.JogCommandBuilder().set_command(4)
    with pytest.raises(DtypeError, match="must be a float, or what to jog to, got float32"):
        facade.JogCommandBuilder().set_command(np.float32(4))
    assert facade.JogCommandBuilder().set_command(4.0).build().command.value == 4.0


def test_names_of_joints_may_be_an_array():
    builder = facade.JointGroupPositionCommandBuilder().set_joint_names(np.array(["torso_1", "torso_2"]))
    assert builder.build().joint_names == ("torso_1", "torso_2")


@pytest.mark.parametrize(
    "vector", [range(2), array("d", [0.0, 1.0]), array("i", [0, 1]), memoryview(array("f", [0.0, 1.0]))]
)
def test_vectors_may_be_ranges_and_buffers(vector: Any):
    sdk.JointPositionCommandBuilder().set_position(vector)
    position = facade.JointPositionCommandBuilder().set_position(vector).build().position
    np.testing.assert_array_equal(position, [0.0, 1.0])


def test_a_step_of_a_jog_is_a_direction():
    """In the SDK OneStep(-0.05), which its documentation calls a step backward, is a step forward."""
    assert sdk.JogCommandBuilder.OneStep(-0.05).value() is True
    with pytest.raises(DtypeError, match=r"OneStep\.value must be True or False, got -0.05"):
        untyped(facade.JogCommandBuilder.OneStep)(-0.05)


def test_what_is_not_here_comes_from_the_sdk():
    assert facade.Color is sdk.Color
    assert facade.JogCommandFeedback is c.JogCommandFeedback
    assert facade.Model_UB().robot_joint_names == tuple(sdk.Model_UB().robot_joint_names)
    assert facade.Model_A().model_name == "A" and facade.Model_M().model_name == "M"
    with pytest.raises(AttributeError):
        _ = facade.no_such_name
    with pytest.raises(NameNotFoundError, match="zzz"):
        facade.create_robot("127.0.0.1:1", "zzz")


def test_without_the_extra_commands_are_made_and_checked_and_no_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "rby1_sdk", None)
    command = facade.JointPositionCommandBuilder().set_position([0.0, 2.0]).build()
    with pytest.raises(CommandError, match="head_1"):
        command.validate("A", "head")
    for call in (command.to_sdk, lambda: facade.create_robot_ub("127.0.0.1:1"), lambda: facade.Color):
        with pytest.raises(MissingExtraError, match=r"rbydyn_jax\[rby1\]"):
            call()


def test_importing_needs_neither_the_sdk_nor_grpc():
    code = (
        "import sys; sys.modules['rby1_sdk'] = sys.modules['grpc'] = sys.modules['google.protobuf'] = None\n"
        "import rbydyn_jax.rby1.builders as rby\n"
        "print(rby.StopCommandBuilder().build())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "StopCommand()\n"


def test_the_base_of_builders_builds_nothing():
    with pytest.raises(DtypeError, match="Builder builds no command"):
        facade.Builder()


def test_importing_builders_imports_little_more_than_jax():
    """It takes less than 0.1 s after JAX, as long as it needs neither Equinox nor the algorithms."""
    code = (
        "import sys, jax; import rbydyn_jax.rby1.builders as rby\n"
        "print([n for n in sys.modules if n.split('.')[0] in ('equinox', 'jaxtyping', 'rby1_sdk')])\n"
        "print(sorted({n.split('.')[1] for n in sys.modules if n.startswith('rbydyn_jax.')}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[]\n['_check', '_errors', '_extras', '_lazy', '_process', 'rby1']\n"
