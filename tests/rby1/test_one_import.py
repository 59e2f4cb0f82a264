"""Scripts for the SDK with one import changed: the same bytes on the wire, the same printed lines."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import rby1 as package
from rbydyn_jax.rby1 import builders, commands, dynamics
from tests.helpers import oracle
from tests.rby1.loopback import PATIENCE, Server

sdk: Any = oracle("rby1_sdk")
oracle("grpc")
MILLISECONDS = int(1000 * PATIENCE)
OURS = (package, builders)


@pytest.fixture(scope="module")
def urdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An RB-Y1 A that can do more, and whose head can do less, than the latest version."""
    path = tmp_path_factory.mktemp("robot") / "a.urdf"
    model = rb.robots.rby1a()
    upper = np.array(model.position_upper)
    upper[model.joint_index("right_arm_5")] = 3.0
    upper[model.joint_index("head_1")] = 0.5
    rb.save_urdf(rb.with_limits(model, position_upper=jnp.asarray(upper)), path)
    return path


@pytest.fixture(scope="module")
def server(urdf: Path) -> Iterator[Server]:
    server = Server(str(urdf))
    yield server
    server.close()


def connected(rby: Any, server: Server, model: str = "a") -> Any:
    robot = rby.create_robot(server.address, model)
    assert robot.connect(5, 1000) and robot.is_connected()
    return robot


def body(rby: Any, command: Any) -> Any:
    parts = rby.BodyComponentBasedCommandBuilder().set_right_arm_command(command)
    return rby.RobotCommandBuilder().set_command(rby.ComponentBasedCommandBuilder().set_body_command(parts))


def stop(rby: Any) -> Any:
    return rby.RobotCommandBuilder().set_command(rby.WholeBodyCommandBuilder().set_command(rby.StopCommandBuilder()))


def drive(rby: Any, robot: Any) -> None:
    """Forwards, sideways and round, each with the test that every script makes."""
    for linear, angular in (([0.1, 0], 0), ([0, 0.1], 0), ([0, 0], 0.1)):
        builder = rby.SE2VelocityCommandBuilder().set_minimum_time(1.0).set_velocity(linear, angular)
        command = rby.ComponentBasedCommandBuilder().set_mobility_command(builder)
        rv = robot.send_command(rby.RobotCommandBuilder().set_command(command), 10).get()
        if rv.finish_code != rby.RobotCommandFeedback.FinishCode.Ok:
            print("Error: Failed to conduct demo motion.")
        print(f"finish_code: {rv.finish_code}, {rv.status}, {rv.finish_code!r}")


def reach(rby: Any, robot: Any) -> None:
    """Dynamics from the connected robot at its state, and a stream of poses made of them, with feedback."""
    print(robot.model().model_name, len(robot.model().robot_joint_names))
    dyn_robot = robot.get_dynamics()
    state = dyn_robot.make_state(["base", "ee_right"], robot.model().robot_joint_names)
    position = robot.get_state().position
    state.set_q(position)
    state.set_tau(np.linspace(-1.0, 1.0, 24) / 3)  # uninitialized memory in the SDK
    dyn_robot.compute_forward_kinematics(state)
    T = dyn_robot.compute_transformation(state, 0, 1)
    print(np.round(T, 6).tolist(), repr(state), dyn_robot.get_dof())
    print(np.round(dyn_robot.compute_mass_matrix(state).diagonal(), 6), np.round(position, 3))
    print(np.round(dyn_robot.get_limit_q_upper(state), 6))
    stream = robot.create_command_stream(3)
    for dz in (0.0, 0.02):
        target = np.round(T, 4)
        target[2, 3] += dz
        builder = rby.CartesianImpedanceControlCommandBuilder().add_joint_limit("right_arm_3", -2.6, -0.5)
        target[:3, :3] = np.eye(3)
        first = stream.send_command(body(rby, builder.add_target("base", "ee_right", target, 1.0)), MILLISECONDS)
        print(first.finish_code, stream.request_feedback(MILLISECONDS).status)
    stream.cancel()


def watch(rby: Any, robot: Any) -> None:
    """The state, once and as a stream."""
    got = []
    robot.start_state_update(lambda state, _: got.append(np.round(state.position[:2], 3).tolist()), 10)
    state = robot.get_state()
    print(repr(state.velocity), state.joint_states[0].fet_state == rby.JointState.FETState.Unknown)
    robot.stop_state_update()


SCRIPTS = (drive, reach, watch)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_sends_and_prints_the_same(server: Server, script: Callable[[Any, Any], None], capsys):
    printed, sent = [], []
    for rby in (sdk, *OURS):
        robot = connected(rby, server)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the sideways velocity
            script(rby, robot)
        printed.append(capsys.readouterr().out)
        robot.send_command(stop(rby), 5).get()  # the last: what is reported before it is all
        events = [server.events.get(timeout=PATIENCE)]
        while not events[-1]["request"].endswith("1805"):
            events.append(server.events.get(timeout=PATIENCE))
        sent.append(events)
        robot.disconnect()
    assert printed[1] == printed[0] and printed[2] == printed[0] and printed[0]
    assert sent[1] == sent[0] and sent[2] == sent[0]
    assert len(sent[0]) > 1 or script is watch


@pytest.mark.parametrize("rby", OURS)
def test_dynamics_are_ours_and_of_the_robots_own_model(server: Server, urdf: Path, rby: Any):
    assert rby.dynamics is dynamics and rby.math is package.math
    robot = connected(rby, server)
    for found in (robot.get_dynamics(), robot.get_dynamics(urdf.read_text()), robot.get_dynamics(str(urdf))):
        assert isinstance(found, dynamics.Robot_24)
        names = found.get_joint_names()
        limits = found.get_limit_q_upper(found.make_state([], names))
        assert limits[names.index("right_arm_5")] == 3.0
        assert found.model.joint_names == tuple(names)
    offline = rby.create_robot_ub("127.0.0.1:1")
    with pytest.raises(rb.ModelError, match="18 joints"):
        offline.get_dynamics(urdf.read_text())
    with pytest.raises(rb.NotConnectedError):
        offline.get_dynamics()


def head(position: float) -> commands.ComponentBasedCommand:
    nod = commands.JointPositionCommand(position=np.array([0.0, position]))
    return commands.ComponentBasedCommand(head_command=nod)


def test_limits_are_those_of_the_connected_robot(server: Server):
    for robot in (connected(sdk, server), connected(builders, server)):
        wrist = commands.JointPositionCommand(position=np.array([0.0, 0, 0, 0, 0, 2.9, 0]))
        parts = commands.BodyComponentBasedCommand(right_arm_command=wrist)
        commands.send(robot, commands.ComponentBasedCommand(body_command=parts)).get()
        server.received()
        with pytest.raises(rb.CommandError, match=r"head_1.* between .* and 0\.5 rad, got 1"):
            commands.send(robot, head(1.0))
        stream = commands.create_command_stream(robot)
        with pytest.raises(rb.CommandError, match="head_1"):
            stream.send_command(head(1.0))
        stream.cancel()
        commands.send(robot, head(1.0), model="A").get()  # the latest version
        server.received()


def test_a_model_that_cannot_be_read_is_not_silent():
    class Robot:
        def is_connected(self) -> bool:
            return True

        def model(self) -> Any:
            return commands.model_description("A")

        def get_robot_model(self) -> str:
            return "<robot name='r'><link name='trunk'/></robot>"

    with pytest.warns(UserWarning, match="own model cannot be read"), pytest.raises(rb.CommandError):
        commands.send(Robot(), head(9.0))


PAIRS = (
    (commands.FinishCode, sdk.RobotCommandFeedback.FinishCode),
    (commands.CommandStatus, sdk.RobotCommandFeedback.Status),
    (dynamics.MobileBaseType, sdk.dynamics.MobileBaseType),
    (dynamics.GeomType, sdk.dynamics.GeomType),
)


@pytest.mark.parametrize("ours, theirs", PAIRS)
def test_enumerations_are_the_sdks(ours: Any, theirs: Any):
    """In both directions, as keys, printed; and members of different enumerations stay different."""
    assert set(theirs.__members__) == set(ours.__members__)
    for name, other in theirs.__members__.items():
        mine = ours[name]
        assert mine == other and other == mine and not mine != other and not other != mine
        assert hash(mine) == hash(other) and {other: 1}[mine] == {mine: 1}[other] == 1
        assert (str(mine), f"{mine}", repr(mine)) == (str(other), f"{other}", repr(other))
        assert (int(mine), mine.name, mine.value) == (int(other), other.name, other.value)
        assert mine == ours(mine.value) and other == theirs(other.value)
        assert mine != int(mine) and other != int(other) and mine != name and other != name
        for ours_2, theirs_2 in PAIRS:
            for n, unlike in theirs_2.__members__.items():
                assert (mine == unlike) is (unlike == mine) is (theirs is theirs_2 and n == name)
                assert (other == ours_2[n]) is (theirs is theirs_2 and n == name)


def test_every_enumeration_of_the_sdk_is_mirrored_or_comes_from_it():
    """Those without a twin here are the SDK's own classes under our imports."""
    mirrored = {theirs for _, theirs in PAIRS}
    found = 0
    for owner in [sdk, *(getattr(sdk, n) for n in dir(sdk) if n[0] != "_"), *vars(sdk.dynamics).values()]:
        for name in dir(owner):
            theirs = getattr(owner, name, None)
            if isinstance(theirs, type) and hasattr(theirs, "__members__") and theirs not in mirrored:
                found += 1
                for rby in OURS:
                    assert getattr(getattr(rby, owner.__name__), name) is theirs
    assert found >= 7


@pytest.mark.ci
def test_the_sdk_imported_first_or_last():
    """Members agree in whatever order the two are imported, as soon as a command has been made for the SDK."""
    names = ("rby1_sdk as sdk", "rbydyn_jax.rby1.commands as c")
    for first in (f"import {names[0]}, {names[1]}", f"import {names[1]}, {names[0]}"):
        code = (
            f"{first}\nc.StopCommand().to_sdk()\nF = sdk.RobotCommandFeedback.FinishCode\n"
            "print(F.Ok == c.FinishCode.Ok, c.FinishCode.Ok == F.Ok, F.Ok == c.FinishCode.Canceled)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
        assert done.stdout == "True True False\n"


def test_a_server_that_dies_in_the_middle(urdf: Path):
    """The stream ends with the SDK's error at once; a command that runs, too; nothing hangs."""
    messages = []
    for rby in (sdk, builders):
        server = Server(str(urdf))
        robot = connected(rby, server)
        stream = robot.create_command_stream(1)
        stream.send_command(stop(rby), MILLISECONDS)
        running = robot.send_command(stop(rby), 9)
        server.next("stream")
        server.received()
        server.close()
        assert running.wait_for(MILLISECONDS) and stream.wait_for(MILLISECONDS)
        with pytest.raises(RuntimeError) as ended:
            stream.send_command(stop(rby), MILLISECONDS)
        with pytest.raises(RuntimeError):
            running.get()
        messages.append(str(ended.value))
    assert messages[0] == messages[1]
