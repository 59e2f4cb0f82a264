"""What the real client of the SDK sends for each command, and how feedback is read, over a connection to 127.0.0.1."""

from __future__ import annotations

import copy
import dataclasses
import gc
import json
import queue
import re
import time
import typing
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rbydyn_jax import CommandError, DtypeError, NotConnectedError
from rbydyn_jax.rby1 import builders as facade
from rbydyn_jax.rby1 import commands as c
from tests.helpers import oracle, untyped
from tests.rby1.loopback import PATIENCE, Server
from tests.rby1.samples import HEADER, all_commands, jog, joint_impedance, pose
from tests.rby1.wire import FEEDBACKS, REQUESTS, message_classes

sdk: Any = oracle("rby1_sdk")
oracle("grpc")
ANSWERED, LEFT_RUNNING = 7, 9  # priorities to which the server has a special answer
COMMANDS = all_commands()
REQUEST = message_classes(REQUESTS)["Request"]
RESPONSE = message_classes(FEEDBACKS)["Response"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="module")
def robot(server: Server) -> Any:
    robot = sdk.create_robot(server.address, "a")
    assert robot.connect(5, 1000)
    return robot


def finished(handle: c.CommandHandle) -> c.RobotCommandFeedback:
    assert handle.wait_for(int(1000 * PATIENCE))
    return handle.get()


def parse(data: bytes) -> Any:
    """A request, of which the table knows every field."""
    message = REQUEST.FromString(data)
    size = message.ByteSize()
    message.DiscardUnknownFields()
    assert message.ByteSize() == size, "the SDK sent a field that is not in the table"
    return message


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def assert_sent(message: Any, node: Any) -> None:
    """Every field of the dataclass is in the message, and nothing else."""
    present = {field.name: value for field, value in message.ListFields()}
    if isinstance(node, c.OptimalControlCommand):
        assert present.pop("velocity_tracking_gain").value == 0.0  # the SDK always sends it
    for name in type(node).__dataclass_fields__:
        value = getattr(node, name)
        if value is None or (isinstance(value, tuple) and not value):
            continue
        if isinstance(value, c.AbsolutePosition | c.RelativePosition | c.OneStep):
            target = {"AbsolutePosition": "absolute_position", "RelativePosition": "relative_position"}
            assert present.pop(target.get(type(value).__name__, "one_step")) == value.value
        elif name == "command":
            assert_sent(present.pop(snake(type(value).__name__)), value)
        elif name in present:
            assert_value(present.pop(name), value)
        else:
            assert np.all(np.asarray(value) == 0), f"{name} is missing"  # proto3 leaves out a scalar of 0
    assert not present


def assert_value(got: Any, value: Any) -> None:
    kind = got.DESCRIPTOR.name if hasattr(got, "DESCRIPTOR") else ""
    if kind == "Duration":
        assert got.seconds + got.nanos * 1e-9 == value
    elif kind in ("DoubleValue", "BoolValue", "Int32Value"):
        assert got.value == value
    elif kind in ("Vec2", "Vec3"):
        assert [getattr(got, axis) for axis in "xyz"[: len(value)]] == list(value)
    elif kind == "SE3Pose":
        euler = [got.euler.z, got.euler.y, got.euler.x]
        np.testing.assert_allclose(Rotation.from_euler("ZYX", euler).as_matrix(), value[:3, :3], rtol=0, atol=1e-12)
        assert [got.position.x, got.position.y, got.position.z] == value[:3, 3].tolist()
    elif kind:
        assert_sent(got, value)
    elif isinstance(value, tuple) and not isinstance(value[0], str):
        assert len(got) == len(value)
        for part, node in zip(got, value, strict=True):
            assert_sent(part, node)
    elif isinstance(value, np.ndarray | tuple):
        assert list(got) == list(value)
    else:
        assert got == value


@pytest.mark.parametrize("name", COMMANDS)
def test_what_arrives_is_what_the_dataclass_says_each_time_it_is_sent(server: Server, robot: Any, name: str):
    command = COMMANDS[name]
    feedback = finished(c.send(robot, command, 3))
    data = server.received()
    message = parse(data)
    assert message.priority == 3
    assert_sent(message.robot_command, command)
    assert feedback.status is c.CommandStatus.Finished and feedback.finish_code is c.FinishCode.Ok
    finished(c.send(robot, command, 3))
    assert server.received() == data
    finished(c.send(robot, c.RobotCommand.from_dict(json.loads(json.dumps(command.to_dict()))), 3))
    assert server.received() == data


def test_every_command_type_is_sent():
    leaves = {kind for text in COMMANDS.values() for kind in re.findall(r"(\w+Command)\(", repr(text))}
    assert {f"{name}Builder" for name in leaves} | {"CommandHeaderBuilder"} == {
        n for n in dir(sdk) if n.endswith("Builder")
    }


def test_only_what_is_set_is_sent(server: Server, robot: Any):
    command = c.ComponentBasedCommand(head_command=c.JointPositionCommand(position=np.array([0.0, 0.5])))
    finished(c.send(robot, command))
    message = parse(server.received()).robot_command
    assert_sent(message, c.RobotCommand(command))
    assert [field.name for field, _ in message.component_based_command.ListFields()] == ["head_command"]


def test_strict_false_sends_what_the_sdk_accepts(server: Server, robot: Any):
    nonsense = c.JointImpedanceControlCommand(
        position=np.array([1.0, 2.0]), stiffness=np.array([-5.0]), damping_ratio=5.0
    )
    command = c.ComponentBasedCommand(body_command=c.BodyComponentBasedCommand(right_arm_command=nonsense))
    with pytest.raises(CommandError, match="right_arm"):
        c.send(robot, command)
    finished(c.send(robot, command, strict=False))
    assert_sent(parse(server.received()).robot_command, c.RobotCommand(command))


def test_a_limit_is_that_of_the_robot_or_of_another_description(server: Server, robot: Any):
    command = c.ComponentBasedCommand(head_command=c.JointPositionCommand(position=np.array([0.0, 2.0])))
    with pytest.raises(CommandError, match=r"joint 'head_1': position must be between -1\.57 and 1\.57 rad, got 2"):
        c.send(robot, command)
    model = c.model_description("A")
    wide = model.__class__(**{**vars(model), "position_upper": (4.0,) * model.robot_dof})
    finished(c.send(robot, command, model=wide))
    server.received()


def test_a_command_runs_on_when_its_handle_is_dropped(server: Server, robot: Any):
    handle = c.send(robot, jog(0.0 - 1.0), LEFT_RUNNING)
    server.received()
    reference = weakref.ref(handle)
    del handle
    gc.collect()
    with pytest.raises(queue.Empty):
        server.events.get(timeout=0.5)
    handle = reference()
    assert handle is not None and not handle.is_done()
    handle.cancel()
    server.next("cancelled")
    assert handle.wait_for(int(1000 * PATIENCE))
    with pytest.raises(RuntimeError, match="CANCELLED"):
        handle.get()
    assert not handle.get_status()


def test_the_sdk_itself_cancels_a_command_whose_handler_is_dropped(server: Server, robot: Any):
    """Shows that the test above could fail."""
    handler = robot.send_command(COMMANDS["stop"].to_sdk(), LEFT_RUNNING)
    server.received()
    del handler
    gc.collect()
    server.next("cancelled")


def test_handles_are_let_go_when_their_commands_are_done(server: Server, robot: Any):
    handle = c.send(robot, COMMANDS["stop"])
    finished(handle)
    reference = weakref.ref(handle)
    del handle
    finished(c.send(robot, COMMANDS["stop"]))
    gc.collect()
    assert reference() is None
    server.received()
    server.received()


def test_the_longest_time_is_sent(server: Server, robot: Any):
    longest = 315_576_000_000  # google/protobuf/duration.proto
    head = c.JointPositionCommand(minimum_time=longest, command_header=c.CommandHeader(longest))
    finished(c.send(robot, c.ComponentBasedCommand(head_command=head)))
    sent = parse(server.received()).robot_command.component_based_command.head_command.joint_position_command
    assert sent.minimum_time.seconds == sent.command_header.control_hold_time.seconds == longest


def test_a_stream_sends_commands_one_after_the_other(server: Server, robot: Any):
    stream = c.create_command_stream(robot, 4)
    commands = [COMMANDS["right_arm-JointImpedanceControlCommand"], COMMANDS["stop"], COMMANDS["stop"]]
    sent = []
    for command in commands:
        assert stream.send_command(command, int(1000 * PATIENCE)).finish_code is c.FinishCode.Ok
        sent.append(bytes.fromhex(server.next("stream")["request"]))
        assert_sent(parse(sent[-1]).robot_command, command)
    assert [parse(data).priority for data in sent] == [4, 0, 0]
    assert sent[1] == sent[2]
    assert stream.request_feedback(int(1000 * PATIENCE)).status is c.CommandStatus.Finished
    server.next("stream")
    with pytest.raises(CommandError, match="damping_ratio"):
        stream.send_command(c.ComponentBasedCommand(body_command=joint_impedance("body").replace(damping_ratio=2.0)))
    assert not stream.is_done()
    stream.cancel()
    assert stream.wait_for(int(1000 * PATIENCE)) and stream.is_done()


@pytest.mark.filterwarnings("ignore:the last command was sent")  # late: so it is where the machine is busy
def test_a_stream_follows_a_motion(server: Server, robot: Any):
    head = c.JointPositionCommand(minimum_time=0.02)
    positions = [np.array([0.1 * k, 0.0]) for k in range(4)]
    commands = [c.RobotCommand(c.ComponentBasedCommand(head_command=head.replace(position=x))) for x in positions]
    stream = c.create_command_stream(robot, 4)
    start = time.monotonic()
    assert stream.follow(commands, 0.02, int(1000 * PATIENCE)).finish_code is c.FinishCode.Ok
    assert time.monotonic() - start >= 0.06  # never early
    for command in commands:
        assert_sent(parse(bytes.fromhex(server.next("stream")["request"])).robot_command, command)


@pytest.mark.filterwarnings("ignore:the last command was sent")  # late: so it is where the machine is busy
@pytest.mark.parametrize("count", [3, 6])
def test_a_stream_that_breaks_is_no_success(server: Server, robot: Any, count: int):
    """The server ends it at the third command, which the SDK may answer as the one before."""
    stream = c.create_command_stream(robot, 8)
    with pytest.raises(NotConnectedError, match=rf"commands\[[2-{count - 1}]\] was not answered: ") as info:
        stream.follow([COMMANDS["stop"]] * count, 0.05, 1000)
    for _ in range(3):
        server.next("stream")
    assert str(info.value).endswith(str(info.value.__cause__ or "the stream ended"))


def leaf_paths(message: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    below = [f for f in message.DESCRIPTOR.fields if f.name.endswith("_command")]
    if not below:
        yield path
    for field in below:
        yield from leaf_paths(getattr(message, field.name), (*path, field.name))


PATHS = list(leaf_paths(RESPONSE().feedback))


def fill(message: Any, numbers: Iterator[int]) -> None:
    """Gives every field of a message, the header of which says that it has ended, a number of its own."""
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated:
            values = getattr(message, field.name)
            for _ in range(2):
                fill(values.add(), numbers) if field.message_type else values.append(next(numbers))
        elif field.message_type:
            fill(getattr(message, field.name), numbers)
        else:
            number = next(numbers)
            setattr(message, field.name, f"joint {number}" if field.type == field.TYPE_STRING else number)


def expected(message: Any, cls: Any) -> Any:
    """The dataclass that says what the message does."""
    hints = typing.get_type_hints(cls)
    fields: dict[str, Any] = {"valid": True} if "valid" in hints else {}
    for field, value in message.ListFields():
        hint = hints[field.name]
        if field.is_repeated:
            part = typing.get_args(hint)[:1]
            values = [expected(v, part[0]) if field.message_type else v for v in value]
            fields[field.name] = c.feedback.Values(values) if part else np.array(values)
        else:
            fields[field.name] = expected(value, hint) if field.message_type else hint(value)
    return cls(**fields)


@pytest.mark.parametrize("path", PATHS, ids="-".join)
def test_feedback_is_read_whole(server: Server, robot: Any, path: tuple[str, ...]):
    response = RESPONSE()
    response.feedback.status, response.feedback.finish_code = 2, 3
    part = response.feedback
    for i, name in enumerate(path):
        part = getattr(part, name)
        part.command_header.finished = i % 2 == 0
    fill(part, iter(range(1, 100)))
    server.answer(response.SerializeToString())
    feedback = finished(c.send(robot, COMMANDS["stop"], ANSWERED))
    server.received()
    assert feedback == expected(response.feedback, c.RobotCommandFeedback)
    assert hash(feedback) == hash(feedback) and feedback != c.RobotCommandFeedback()
    assert all(name in repr(feedback) for name in path)
    if path[-1] != "stop_command":
        assert "stop_command" not in repr(feedback)


def assert_printed_alike(mine: Any, theirs: Any) -> int:
    """Values that are no branches are printed like the SDK's and equal to them; returns how many there are."""
    count = 0
    for name in type(mine).__dataclass_fields__:
        ours, its = getattr(mine, name), getattr(theirs, name)
        if hasattr(ours, "valid"):
            count += assert_printed_alike(ours, its) if ours.valid else 0
        elif not dataclasses.is_dataclass(ours) and not (isinstance(ours, tuple) and dataclasses.is_dataclass(ours[0])):
            assert str(ours) == str(its) and f"{ours}" == f"{its}" and np.all(ours == its), name
            count += 1
    return count


@pytest.mark.parametrize("path", PATHS, ids="-".join)
def test_values_of_feedback_are_printed_like_the_sdks(server: Server, robot: Any, path: tuple[str, ...]):
    response = RESPONSE()
    part = response.feedback
    for name in path:
        part = getattr(part, name)
    fill(part, iter(range(1, 100)))
    server.answer(response.SerializeToString())
    stop = sdk.RobotCommandBuilder().set_command(sdk.WholeBodyCommandBuilder().set_command(sdk.StopCommandBuilder()))
    theirs = robot.send_command(stop, ANSWERED).get()
    server.received()
    assert assert_printed_alike(c.read_feedback(theirs), theirs) >= len(path)


def arm(rby: Any) -> Any:
    return (
        rby.JointImpedanceControlCommandBuilder()
        .set_command_header(rby.CommandHeaderBuilder().set_control_hold_time(3.0))
        .set_position(np.zeros(7))
        .set_stiffness(np.full(7, 50.0))
        .set_damping_ratio(0.7)
        .set_torque_limit(np.full(7, 60.0))
        .set_velocity_limit(np.full(7, np.pi))
        .set_acceleration_limit(np.full(7, 2.0))
        .set_minimum_time(1.0)
    )


def body(rby: Any, leaf: Any) -> Any:
    return rby.RobotCommandBuilder().set_command(rby.ComponentBasedCommandBuilder().set_body_command(leaf))


def both_arms(rby: Any) -> Any:
    parts = rby.BodyComponentBasedCommandBuilder().set_right_arm_command(arm(rby)).set_left_arm_command(arm(rby))
    return body(rby, rby.BodyCommandBuilder(body_component_based_command_builder=parts))


def poses(rby: Any) -> Any:
    builder = rby.CartesianCommandBuilder().set_minimum_time(2.0).set_stop_position_tracking_error(1e-3)
    builder.add_target("base", "ee_right", pose(1), 0.3, 0.6, acceleration_limit_scaling=1.0)
    builder.add_target(
        ref_link_name="base",
        link_name="ee_left",
        T=pose(2),
        linear_velocity_limit=0.3,
        angular_velocity_limit=0.6,
        acceleration_limit_scaling=0.5,
    )
    builder.add_joint_position_target("right_arm_2", 0.1, velocity_limit=1.0)
    builder.set_stop_orientation_tracking_error(1e-3).set_stop_joint_position_tracking_error(1e-2)
    return body(rby, builder)


def soft_poses(rby: Any) -> Any:
    builder = (
        rby.CartesianImpedanceControlCommandBuilder()
        .add_target("base", "ee_right", pose(3), linear_velocity_limit=1.0, angular_acceleration_limit=2.0)
        .add_joint_limit("right_arm_3", -2.5, -0.5)
        .set_joint_stiffness(stiffness=np.full(7, 80))
        .set_joint_damping_ratio(damping_ratio=1)
        .set_joint_torque_limit(torque_limit=[30] * 7)
        .set_nullspace_joint_target(np.zeros((7, 1)), np.ones(7))
        .set_reset_reference(False)
    )
    return body(rby, rby.BodyComponentBasedCommandBuilder().set_right_arm_command(rby.ArmCommandBuilder(builder)))


def torso(rby: Any, builder: Any) -> Any:
    return body(rby, rby.BodyComponentBasedCommandBuilder().set_torso_command(rby.TorsoCommandBuilder(builder)))


def group(rby: Any) -> Any:
    builder = rby.JointGroupPositionCommandBuilder().set_joint_names(["torso_5"]).set_position([0.2])
    return torso(rby, builder.set_velocity_limit([1]).set_acceleration_limit((1.0,)).set_minimum_time(1))


def spring(rby: Any) -> Any:
    builder = rby.ImpedanceControlCommandBuilder().set_reference_link_name("base").set_link_name("ee_right")
    builder.set_transformation(T=pose(4)).set_translation_weight([100, 100, 100]).set_rotation_weight(weight=np.ones(3))
    return torso(rby, builder.set_damping_ratio(1.0))


def optimal(rby: Any) -> Any:
    builder = rby.OptimalControlCommandBuilder().add_cartesian_target("base", "ee_right", pose(5), 1, 0.1)
    builder.set_center_of_mass_target("base", np.array([0.0, 0.0, 0.5]), 1.0)
    builder.add_joint_position_target(joint_name="torso_1", target_position=0.3, weight=0.2).set_patience(5)
    builder.set_velocity_limit_scaling(0.5).set_acceleration_limit_scaling(0.5).set_error_scaling(2)
    return body(rby, builder.set_stop_cost(1e-2).set_min_delta_cost(1e-4))


def gravity(rby: Any) -> Any:
    return body(rby, rby.GravityCompensationCommandBuilder().set_on(True))


def drive(rby: Any) -> Any:
    builder = rby.SE2VelocityCommandBuilder().set_velocity(np.array([0.1, 0.0]), 0.2).set_minimum_time(1)
    builder.set_acceleration_limit(linear=[1, 1], angular=1)
    return rby.RobotCommandBuilder(rby.ComponentBasedCommandBuilder().set_mobility_command(builder))


def wheels_and_head(rby: Any) -> Any:
    wheels = rby.JointVelocityCommandBuilder().set_velocity([1, -1]).set_acceleration_limit([1, 1])
    nod = rby.JointPositionCommandBuilder().set_position(np.array([[0.1], [0.2]]))
    parts = rby.ComponentBasedCommandBuilder().set_mobility_command(rby.MobilityCommandBuilder(wheels))
    return rby.RobotCommandBuilder(parts.set_head_command(rby.HeadCommandBuilder(nod)))


def step(rby: Any) -> Any:
    jog = rby.JogCommandBuilder().set_joint_name("right_arm_0").set_velocity_limit(1.0)
    return rby.RobotCommandBuilder().set_command(jog.set_command(rby.JogCommandBuilder.OneStep(True)))


def turn(rby: Any) -> Any:
    jog = rby.JogCommandBuilder().set_joint_name("right_arm_0").set_acceleration_limit(1)
    return rby.RobotCommandBuilder(jog.set_command(rby.JogCommandBuilder.RelativePosition(0.1)))


def stop(rby: Any) -> Any:
    return rby.RobotCommandBuilder().set_command(rby.WholeBodyCommandBuilder().set_command(rby.StopCommandBuilder()))


SCRIPTS = (
    both_arms, poses, soft_poses, group, spring, optimal, gravity, drive, wheels_and_head, step, turn, stop
)  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_for_the_sdk_sends_the_same_through_our_builders(server: Server, script: Callable[[Any], Any]):
    sent = []
    for rby in (sdk, facade):
        robot = rby.create_robot(server.address, "a")
        assert robot.connect(5, 1000)
        feedback = robot.send_command(script(rby), 1).get()
        assert feedback.finish_code == rby.RobotCommandFeedback.FinishCode.Ok
        assert feedback.status == rby.RobotCommandFeedback.Status.Finished
        sent.append(server.received())
    assert sent[0] == sent[1]
    assert len(sent[0]) > 6


def test_our_builders_can_be_used_again(server: Server):
    robot = facade.create_robot_a(server.address)
    assert robot.connect()
    shared, header = arm(facade), facade.CommandHeaderBuilder().set_control_hold_time(2.0)
    shared.set_command_header(header)
    parts = facade.BodyComponentBasedCommandBuilder().set_right_arm_command(shared).set_left_arm_command(shared)
    builder = body(facade, parts)
    shared.set_minimum_time(9.0)  # after it was taken: the SDK would end the process
    robot.send_command(builder).get()
    first = server.received()
    robot.send_command(builder, 1).get()
    assert server.received() == first
    arms = parse(first).robot_command.component_based_command.body_command.body_component_based_command
    assert arms.right_arm_command == arms.left_arm_command
    assert arms.left_arm_command.joint_impedance_control_command.minimum_time.seconds == 1
    assert arms.left_arm_command.joint_impedance_control_command.command_header.control_hold_time.seconds == 2
    c.send(robot, builder.build()).get()
    assert server.received() == first
    stream = robot.create_command_stream()
    assert stream.send_command(builder, int(1000 * PATIENCE)).valid
    server.next("stream")
    stream.cancel()


def test_before_connect_there_is_an_error_where_the_sdk_ends_the_process(server: Server):
    robot = sdk.create_robot(server.address, "m")
    with pytest.raises(NotConnectedError, match="connect"):
        c.send(robot, COMMANDS["stop"])
    with pytest.raises(NotConnectedError, match="connect"):
        c.create_command_stream(robot)
    ours = facade.create_robot_m(server.address)
    assert repr(ours) == repr(copy.copy(ours)) == "Robot(model='M', connected=False)"
    for call in (lambda: ours.send_command(stop(facade)), lambda: ours.get_state(), lambda: ours.get_dynamics()):
        with pytest.raises(NotConnectedError, match="connect"):
            call()


def test_only_robots_and_whole_commands_are_taken(robot: Any):
    with pytest.raises(DtypeError, match=r"robot must be one of rby1_sdk\.create_robot, got str"):
        c.send("127.0.0.1:50051", COMMANDS["stop"])
    with pytest.raises(DtypeError, match="must be WholeBodyCommand or ComponentBasedCommand or JogCommand, got Joint"):
        c.send(robot, c.JointPositionCommand())  # pyright: ignore[reportArgumentType]
    for other in ("stop", None, sdk.RobotCommandBuilder()):
        with pytest.raises(DtypeError, match="command must be a RobotCommand or what one can hold, got"):
            untyped(c.send)(robot, other)


def test_a_stop_needs_no_wrapping(server: Server, robot: Any):
    finished(c.send(robot, c.StopCommand(command_header=HEADER)))
    assert_sent(parse(server.received()).robot_command, COMMANDS["stop"])


def test_threads_take_turns_on_one_stream(server: Server, robot: Any):
    stream = c.create_command_stream(robot, 4)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: stream.send_command(COMMANDS["stop"], 5000), range(40)))
    assert all(answer.valid for answer in answers)
    assert [server.next("stream")["event"] for _ in range(40)] == ["stream"] * 40
    stream.cancel()


def test_the_death_of_the_server_is_noticed():
    server = Server()
    robot = facade.create_robot(server.address, "a")
    assert robot.connect(5, 1000)
    stream = robot.create_command_stream()
    assert stream.send_command(COMMANDS["stop"], 5000).valid
    server.close()
    # The SDK may take the command before it sees the end of the connection: it then repeats the last answer once.
    with pytest.raises(RuntimeError):
        stream.send_command(COMMANDS["stop"], 5000)
        assert stream.is_done()
        stream.send_command(COMMANDS["stop"], 5000)
    assert not robot.is_connected()
    for call in (lambda: robot.send_command(COMMANDS["stop"]).get(), lambda: robot.get_state()):
        with pytest.raises(RuntimeError):  # NotConnectedError, or that of the SDK
            call()
