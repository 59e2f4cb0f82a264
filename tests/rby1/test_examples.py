"""What the Python examples of the public SDK do, in our own words: one import changed, the same calls, the same lines.

Each script is run with the SDK and with ours, on servers of their own which have seen the same calls before; the bytes
that arrive and what is printed are compared. `SCRIPTS` has the numbers of the examples that each script stands for.
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import threading
import time
import warnings
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import rby1 as package
from rbydyn_jax.rby1 import builders
from tests.helpers import oracle
from tests.rby1.loopback import PATIENCE, Server

sdk: Any = oracle("rby1_sdk")
oracle("grpc")
FLAVOURS = {"sdk": sdk, "package": package, "builders": builders}
MARK = ("SystemService/GetWifiStatus", "")
# What ours reads beyond that: the limits of the robot's own model, once, and whether it still answers.
READS = Counter({("RobotInfoService/GetRobotModel", ""): 1, ("RobotInfoService/GetRobotInfo", ""): 1})


@pytest.fixture(scope="module")
def urdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("robot") / "a.urdf"
    rb.save_urdf(rb.robots.rby1a(), path)
    return path


@pytest.fixture(scope="module")
def servers(urdf: Path) -> Iterator[dict[str, Server]]:
    running = {name: Server(str(urdf)) for name in FLAVOURS}
    yield running
    for server in running.values():
        server.close()


def taken(server: Server) -> list[tuple[str, str]]:
    """All calls since the last time: those before one that no script makes."""
    robot = sdk.create_robot_a(server.address)
    assert robot.connect(5, 1000)
    robot.get_wifi_status()
    until = time.monotonic() + PATIENCE
    while MARK not in server.calls:
        assert time.monotonic() < until
        time.sleep(0.005)
    calls = server.calls[: server.calls.index(MARK)]
    server.calls.clear()
    return calls


def connected(rby: Any, address: str) -> Any:
    robot = rby.create_robot(address, "a")
    assert robot.connect(5, 1000)
    return robot


def ready(rby: Any, address: str) -> Any:
    """Power, servos, faults and the control manager, as every script begins that moves the robot."""
    robot = connected(rby, address)
    for is_on, switch in ((robot.is_power_on, robot.power_on), (robot.is_servo_on, robot.servo_on)):
        print(is_on(".*") or switch(".*"))
    state = rby.ControlManagerState.State
    print(robot.get_control_manager_state().state)
    if robot.get_control_manager_state().state in (state.MajorFault, state.MinorFault):
        print(robot.reset_fault_control_manager())
    print(robot.enable_control_manager(), robot.get_control_manager_state().state == state.Enabled)
    return robot


def body(rby: Any, command: Any) -> Any:
    return rby.RobotCommandBuilder().set_command(rby.ComponentBasedCommandBuilder().set_body_command(command))


def positions(rby: Any, q: Any, seconds: float = 2.0) -> Any:
    return rby.JointPositionCommandBuilder().set_minimum_time(seconds).set_position(q)


def arms(rby: Any, right: Any, left: Any = None, torso: Any = None) -> Any:
    parts = rby.BodyComponentBasedCommandBuilder().set_right_arm_command(right)
    if left is not None:
        parts.set_left_arm_command(left)
    if torso is not None:
        parts.set_torso_command(torso)
    return body(rby, parts)


RIGHT, LEFT = [0.1, -0.3, 0.0, -1.1, 0.2, 0.6, 0.0], [0.1, 0.3, 0.0, -1.1, 0.2, 0.6, 0.0]
TORSO = [0.0, 0.2, -0.4, 0.2, 0.0, 0.05]


def told(rby: Any, handle: Any) -> None:
    rv = handle.get()
    if rv.finish_code != rby.RobotCommandFeedback.FinishCode.Ok:
        print("not reached")
    print(f"{rv.finish_code}, {rv.finish_code = }, {rv.status}", rv.valid, handle.is_done(), handle.get_status())


def pose(x: float, y: float, z: float, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0, s, x], [0, 1, 0, y], [-s, 0, c, z], [0, 0, 0, 1]])


# -- what the robot is and how it is


def describe(rby: Any, address: str) -> None:
    robot = connected(rby, address)
    info, model = robot.get_robot_info(), robot.model()
    print(robot, repr(robot), model, sep="\n")
    print(model.model_name, model.robot_dof, model.mobility_idx, model.torso_idx, model.control_period)
    print(info)
    with rby.printoptions(multiline_repr=False):
        print(repr(info))
    print(repr(info), [(j.name, j.has_brake, j.product_name, j.firmware_version) for j in info.joint_infos])


def remodel(rby: Any, address: str) -> None:
    robot = connected(rby, address)
    print(robot.is_connected())
    root = ET.fromstring(robot.get_robot_model())
    mass = root.find("./link[@name='ee_left']/inertial/mass")
    assert mass is not None
    mass.set("value", f"{float(mass.get('value', '0')) + 0.25:.6f}")
    print(robot.import_robot_model("heavier", ET.tostring(root, encoding="unicode")))
    print(robot.set_parameter("model_name", '"heavier"'))


def look(rby: Any, address: str) -> None:
    state = connected(rby, address).get_state()
    with rby.printoptions(linewidth=10**9, multiline_repr=True, precision=4):
        print(re.sub(r"gravity=\[[^]]*\]", "", repr(state)))  # uninitialized memory in the SDK
    print(re.sub(r"gravity=\[[^]]*\]", "", str(state)))
    print(state.position, state.joint_states[3].fet_state, state.battery_state, state.center_of_mass)


def watch(rby: Any, address: str) -> None:
    """Two kinds of callback, tool flanges, the nearest collision, and a recording."""
    robot = connected(rby, address)
    for with_manager in (False, True):
        lines, recorded, done = _watched(robot, with_manager)
        assert done.wait(PATIENCE)
        robot.stop_state_update()
        print(*lines, np.round(recorded, 4).tolist(), sep="\n")
    print(robot.cancel_control())


def _watched(robot: Any, with_manager: bool) -> tuple[list[str], list[np.ndarray], threading.Event]:
    lines, recorded, done = [], [], threading.Event()

    def note(state: Any) -> None:
        nearest = min(state.collisions, key=lambda c: c.distance)
        lines.append(f"{nearest.distance:.3f} {nearest.link1} {nearest.link2} {state.tool_flange_left}")
        recorded.append(state.position.copy())
        if len(recorded) == 3:
            done.set()

    def note_both(state: Any, manager: Any) -> None:
        lines.append(f"{manager} {manager.state!r}")
        note(state)

    robot.start_state_update(note_both if with_manager else note, 20)
    return lines, recorded, done


def parameters(rby: Any, address: str) -> None:
    robot = connected(rby, address)
    name = "joint_position_command.cutoff_frequency"
    print(*robot.get_parameter_list(), robot.get_parameter(name), sep="\n")
    print(robot.reset_parameter_to_default(name), robot.get_parameter(name))
    print(robot.set_parameter(name, "2"), robot.get_parameter(name))
    print(robot.set_parameter(name, "1000"), robot.get_parameter(name))


def switch(rby: Any, address: str) -> None:
    robot = connected(rby, address)
    print(robot.is_power_on("48v"), robot.power_on("48v"), robot.is_power_on("48v"), robot.power_off("12v"))
    print(robot.disable_control_manager(), robot.brake_release("right_arm_2"), robot.brake_engage("right_arm_2"))
    print(robot.set_tool_flange_output_voltage("left", 24))


def gains(rby: Any, address: str) -> None:
    robot = connected(rby, address)
    for part in ("torso", "right_arm", "left_arm", "head"):
        found = getattr(robot, f"get_{part}_position_pid_gains")()
        print(part, *((g.p_gain, g.i_gain, g.d_gain) for g in found))
    before = robot.get_position_pid_gain("head_1")
    print(before, robot.set_position_p_gain("head_1", 70), robot.get_position_pid_gain("head_1"))
    print(robot.set_position_pid_gain("head_1", 1, 2, 3), robot.get_position_pid_gain("head_1").d_gain)
    print(robot.set_position_pid_gain("head_1", rby.PIDGain(4, 5, 6)), robot.get_position_pid_gain("head_1").i_gain)
    print(robot.set_position_pid_gain("head_1", before), robot.get_position_pid_gain("head_1"))


def lights(rby: Any, address: str) -> None:
    robot = connected(rby, address)
    print(robot.set_led_color(rby.Color(9, 0, 255), duration=0.25, transition_time=0.1, blinking=False))
    print(robot.set_led_color(rby.Color(1, 2, 3), duration=1, transition_time=0.5, blinking=True, blinking_freq=3))


def clock(rby: Any, address: str) -> None:
    robot = connected(rby, address)
    print(robot.get_system_time())
    print(robot.set_system_time(datetime(2024, 5, 6, 7, 8), "EST"), robot.get_system_time())
    zone = ZoneInfo("Asia/Seoul")
    print(robot.set_system_time(datetime(2024, 5, 6, 7, 8, tzinfo=zone)), robot.get_system_time())


def network(rby: Any, address: str) -> None:
    robot = connected(rby, address)
    print(*((n.ssid, n.signal_strength, n.secured) for n in robot.scan_wifi()))
    print(
        robot.connect_wifi(ssid="lab", password="x", use_dhcp=False, ip_address="10.0.0.2", gateway="", dns=["9.9.9.9"])
    )


def logs(rby: Any, address: str) -> None:
    robot = connected(rby, address)
    print(*robot.get_last_log(4), sep="\n")
    done, lines = threading.Event(), []

    def note(entries: Any) -> None:
        lines.extend(str(e) for e in entries if int(e.level) >= int(rby.Log.Level.Warn))
        if len(lines) == 3:
            done.set()

    robot.start_log_stream(note, 1)
    assert done.wait(PATIENCE)
    robot.stop_log_stream()
    print(*lines, robot.sync_time(), robot.get_fault_log_list(), sep="\n")
    file = io.BytesIO()
    print(robot.download_file(robot.get_fault_log_list()[1], file), file.getvalue())


def serial(rby: Any, address: str) -> None:
    robot = connected(rby, address)
    print(*robot.get_serial_device_list(), sep="\n")
    device, done, got = robot.open_serial_stream("/dev/ttyUSB1", 9600), threading.Event(), []
    print(device.connect(verbose=True))

    def note(data: Any) -> None:
        got.append("".join(f"{int(x):02X}" for x in data))
        done.set()

    device.set_read_callback(note)
    print(device.write(bytes.fromhex("00b7ff")))
    assert done.wait(PATIENCE)
    device.disconnect()
    print(got)


# -- dynamics


def build(rby: Any, address: str) -> None:
    upper, lower = rby.dynamics.Link("upper"), rby.dynamics.Link("lower")
    joint = rby.dynamics.Joint.make_revolute("elbow", np.eye(4), np.array([0, 1, 0]))
    joint.connect_links(upper, lower, pose(0.3, 0, 0, 0), np.eye(4))
    robot = rby.dynamics.Robot(rby.dynamics.RobotConfiguration(name="arm", base_link=upper))
    state = robot.make_state(["upper", "lower"], ["elbow"])
    state.set_q(np.array([0.5]))
    robot.compute_forward_kinematics(state)
    print(upper, lower, joint, robot, repr(robot), robot.compute_transformation(state, 0, 1), sep="\n")


def torques(rby: Any, address: str) -> None:
    robot = connected(rby, address)
    dyn_robot, model = robot.get_dynamics(), robot.model()
    state = dyn_robot.make_state(["base", "ee_right"], model.robot_joint_names)
    state.set_gravity(np.array([0, 0, 0, 0, 0, -9.81]))
    state.set_q(robot.get_state().position)
    state.set_qdot(np.linspace(-0.5, 0.5, model.robot_dof))
    state.set_qddot(np.zeros(model.robot_dof))
    state.set_tau(np.zeros(model.robot_dof))  # uninitialized memory in the SDK
    with np.printoptions(precision=3, suppress=True):
        print(f"{state = }")
        for step in ("forward", "diff_forward", "2nd_diff_forward"):
            getattr(dyn_robot, f"compute_{step}_kinematics")(state)
        dyn_robot.compute_inverse_dynamics(state)
        print(state.get_tau()[2:], dyn_robot.compute_gravity_term(state)[2:])
        print(dyn_robot.compute_mass_matrix(state).diagonal())
        print(np.round(dyn_robot.compute_body_jacobian(state, 0, 1), 6) + 0.0)  # zeros of either sign
        print(dyn_robot.get_limit_q_lower(state), dyn_robot.get_limit_qddot_upper(state), sep="\n")


# -- motion


def move(rby: Any, address: str) -> None:
    """Positions, groups of joints, impedances of joints and in space, poses, optimal control, head, a stop."""
    robot = ready(rby, address)
    n = len(robot.model().right_arm_idx)
    header = rby.CommandHeaderBuilder
    target = pose(0.4, -0.3, 0.1, -0.7)
    group = rby.JointGroupPositionCommandBuilder().set_joint_names(["torso_1", "torso_2"]).set_position([0.2, -0.4])
    spring = rby.ImpedanceControlCommandBuilder().set_command_header(header().set_control_hold_time(4.5))
    spring.set_reference_link_name("link_torso_5").set_link_name("ee_right").set_transformation(target)
    spring.set_translation_weight([900, 800, 0]).set_rotation_weight([40, 30, 20])
    stiff = rby.JointImpedanceControlCommandBuilder().set_command_header(header().set_control_hold_time(3))
    stiff.set_position(RIGHT).set_minimum_time(2).set_stiffness([80.0] * n).set_damping_ratio(0.9)
    stiff.set_torque_limit([12] * n)
    cartesian = rby.CartesianCommandBuilder().add_target("base", "link_torso_5", pose(0, 0, 1.1, 0.2), 1.0, 2.0, 0.8)
    cartesian.add_target("link_torso_5", "ee_right", target, 1.0, 2.0, 0.8).set_minimum_time(3)
    cartesian.set_stop_position_tracking_error(1e-4).set_stop_orientation_tracking_error(1e-3)
    optimal = rby.OptimalControlCommandBuilder().add_cartesian_target("base", "ee_left", target, 1.0, 0.5)
    optimal.set_center_of_mass_target("base", np.array([0.0, 0.0, 0.8]), 0.2).set_error_scaling(0.9).set_stop_cost(0.01)
    optimal.add_joint_position_target("right_arm_2", 0.3, 0.1).set_velocity_limit_scaling(0.2)
    optimal.set_min_delta_cost(1e-4).set_patience(5)
    nod = rby.ComponentBasedCommandBuilder().set_head_command(positions(rby, [0.1, 0.2]))
    stop = rby.WholeBodyCommandBuilder().set_command(rby.StopCommandBuilder())
    floating = rby.GravityCompensationCommandBuilder().set_on(True)
    for command in (
        arms(rby, positions(rby, RIGHT), positions(rby, LEFT), positions(rby, TORSO)),
        body(rby, positions(rby, TORSO + RIGHT + LEFT)),
        arms(rby, positions(rby, np.zeros(n)), positions(rby, np.zeros(n)), group.set_minimum_time(1)),
        arms(rby, spring),
        arms(rby, stiff),
        arms(rby, floating),
        body(rby, cartesian),
        body(rby, optimal),
        rby.RobotCommandBuilder().set_command(nod),
        rby.RobotCommandBuilder().set_command(stop),
    ):
        told(rby, robot.send_command(command, 10))


def drive(rby: Any, address: str) -> None:
    robot = ready(rby, address)
    for linear, angular in (([0.2, 0], 0), ([0, -0.2], 0), ([0, 0.0], -0.3)):
        velocity = rby.SE2VelocityCommandBuilder().set_velocity(linear, angular).set_minimum_time(1.5)
        velocity.set_command_header(rby.CommandHeaderBuilder().set_control_hold_time(2.0))
        command = rby.ComponentBasedCommandBuilder().set_mobility_command(velocity)
        told(rby, robot.send_command(rby.RobotCommandBuilder().set_command(command), 10))


def cancel(rby: Any, address: str) -> None:
    """A thread waits for a motion that another one cancels at the robot, and one that its handle cancels."""
    robot, codes, started = ready(rby, address), [], threading.Event()

    def work() -> None:
        handle = robot.send_command(arms(rby, positions(rby, RIGHT)), 9)
        started.set()
        codes.append(handle.get().finish_code)

    thread = threading.Thread(target=work)
    thread.start()
    assert started.wait(PATIENCE)
    time.sleep(0.1)  # until it runs
    print(robot.cancel_control())
    thread.join(PATIENCE)
    print(codes, codes == [rby.RobotCommandFeedback.FinishCode.Canceled])
    handle = robot.send_command(arms(rby, positions(rby, RIGHT)), 9)
    print(handle.wait_for(50), handle.is_done())
    handle.cancel()
    try:
        handle.get()
    except RuntimeError as error:
        print(error)


def handles(rby: Any, address: str) -> None:
    robot = ready(rby, address)
    commands = (positions(rby, np.zeros(20)), None), (None, positions(rby, RIGHT)), (None, positions(rby, RIGHT, 3))
    kept = []
    for priority, (whole, arm) in zip((1, 10, 1), commands, strict=True):
        command = arms(rby, arm) if whole is None else body(rby, whole)
        kept.append(robot.send_command(command, priority=priority))
        assert kept[-1].wait_for(int(1000 * PATIENCE))  # so that they arrive in this order
    print(*(f"{handle.get().finish_code = }" for handle in kept), sep="\n")
    print(kept[0], repr(kept[0]), sep="\n")


def stream(rby: Any, address: str) -> None:
    """Commands in quick succession: all joints of the body, then impedances about the measured positions."""
    robot = ready(rby, address)
    print(robot.set_parameter("default.acceleration_limit_scaling", "0.7"))
    first = robot.create_command_stream(10)
    print(first, repr(first))
    for i in range(20):
        q = np.zeros(20)
        q[17] = 0.5 * np.sin(0.1 * i)
        header = rby.CommandHeaderBuilder().set_control_hold_time(1)
        first.send_command(body(rby, positions(rby, q, 0.01).set_command_header(header)))
    first.cancel()
    second, model, at = robot.create_command_stream(10), robot.model(), robot.get_state().position
    for i in range(5):
        parts = []
        for part, stiffness in ((model.right_arm_idx, 90.0), (model.left_arm_idx, 80.0), (model.torso_idx, 300.0)):
            q = np.array([at[k] for k in part])
            q[0] += 0.02 * np.sin(i)
            builder = rby.JointImpedanceControlCommandBuilder().set_position(q.tolist()).set_minimum_time(0.0102)
            builder.set_command_header(rby.CommandHeaderBuilder().set_control_hold_time(5.0)).set_damping_ratio(0.7)
            parts.append(builder.set_stiffness([stiffness] * len(q)).set_torque_limit([10.0] * len(q)))
        rv = second.send_command(arms(rby, *parts))
        print(rv.status, rv.finish_code == rby.RobotCommandFeedback.FinishCode.Unknown, second.is_done())
    second.cancel()


def follow(rby: Any, address: str) -> None:
    """Poses on a stream, each until its feedback is near enough."""
    robot = ready(rby, address)
    dyn_robot = robot.get_dynamics()
    state = dyn_robot.make_state(["base", "ee_right"], robot.model().robot_joint_names)
    state.set_q(robot.get_state().position)
    dyn_robot.compute_forward_kinematics(state)
    reference = np.round(dyn_robot.compute_transformation(state, 0, 1), 5)
    reference[:3, :3] = pose(0, 0, 0, 0.3)[:3, :3]
    way = robot.create_command_stream()
    for step in ([0, 0, -0.05], [0.05, -0.1, 0]):
        target = reference.copy()
        target[:3, 3] += step
        builder = rby.CartesianCommandBuilder().add_joint_position_target("right_arm_2", 0.4, 1, 50)
        builder.set_command_header(rby.CommandHeaderBuilder().set_control_hold_time(1e6))
        way.send_command(arms(rby, builder.add_target("base", "ee_right", target, 0.3, 50.0, 0.9).set_minimum_time(1)))
        while True:
            feedback = way.request_feedback().component_based_command.body_command.body_component_based_command
            arm = feedback.right_arm_command.cartesian_command
            error = arm.se3_pose_tracking_errors[0]
            print(error.position_error, error.orientation_error, arm.manipulability, arm.remain_time, arm.valid)
            print(arm.joint_position_tracking_errors, arm.joint_position_tracking_errors == [0.5, 0.25])
            print(feedback.left_arm_command.valid, feedback.valid)
            if error.position_error < 0.006:
                break
    way.cancel()


def control(rby: Any, address: str) -> None:
    """The fast loop over UDP, with a profile of `rby.math`."""
    robot, cycles = ready(rby, address), 40
    generator = rby.math.TrapezoidalMotionGenerator()
    counted, said = [], []

    def cycle(state: Any) -> Any:
        if not counted:
            wanted = rby.math.TrapezoidalMotionGenerator.Input()
            wanted.current_position, wanted.current_velocity = state.position, state.velocity * 0
            wanted.target_position = np.linspace(-0.4, 0.4, 24)
            wanted.velocity_limit, wanted.acceleration_limit = np.full(24, 3.0), np.full(24, 4.0)
            wanted.minimum_time = 1.5
            generator.update(wanted)
            said.append((state.t, state.is_ready.all(), state.torque[:2].tolist(), generator.get_total_time()))
        counted.append(state.t)
        answer = rby.Robot_A_ControlInput()
        answer.target = generator(0.002 * len(counted)).position
        answer.feedback_gain.fill(10)
        answer.feedforward_torque.fill(0.5)
        answer.finish = len(counted) == cycles
        return answer

    print(robot.control(cycle), len(counted), said)


# -- what dies in the middle


def broken_stream(rby: Any, address: str) -> None:
    """The server's thread dies at the third command; the robot can be used on."""
    robot = ready(rby, address)
    first = robot.create_command_stream(8)
    for _ in range(2):
        print(first.send_command(arms(rby, positions(rby, RIGHT))).status)
    with contextlib.suppress(RuntimeError):  # the SDK may time out, or repeat its last answer once
        first.send_command(arms(rby, positions(rby, RIGHT)))
    first.wait()
    print(first.is_done(), first.wait_for(10))
    try:
        first.send_command(arms(rby, positions(rby, RIGHT)))
    except RuntimeError as error:
        print(error)
    second = robot.create_command_stream(1)
    print(second.send_command(arms(rby, positions(rby, RIGHT))).status, second.is_done())
    second.cancel()
    told(rby, robot.send_command(arms(rby, positions(rby, RIGHT))))


def broken_states(rby: Any, address: str) -> None:
    """The thread that sends the states dies after two of them; there are none any more, and it can begin again."""
    robot, seen = connected(rby, address), []
    for rate, count in ((13.0, 2), (20.0, 3)):
        robot.start_state_update(lambda state: seen.append(round(float(state.position[2]), 4)), rate)
        until = time.monotonic() + PATIENCE
        while len(seen) < count and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.1)
        robot.stop_state_update()
        print(seen, len(robot.get_state().position))
        seen.clear()


SCRIPTS: dict[Callable[[Any, str], None], str] = {
    describe: "01 08",
    remodel: "02",
    look: "03",
    watch: "04 06 21 27",
    parameters: "05",
    switch: "07 36",
    gains: "09 10 11",
    lights: "12",
    clock: "13",
    network: "14",
    logs: "15 16 17",
    serial: "38 39",
    build: "18",
    torques: "19",
    move: "00 23 24 28 29 30",
    drive: "37",
    cancel: "26",
    handles: "31",
    stream: "22 25 32",
    follow: "33",
    control: "34",
    broken_stream: "",
    broken_states: "",
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_an_example_sends_and_prints_the_same(servers: dict[str, Server], script: Callable, capfd):
    printed, sent = {}, {}
    for name, rby in FLAVOURS.items():
        capfd.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the sideways velocity, and of what is deprecated
            script(rby, servers[name].address)
        printed[name] = capfd.readouterr().out
        sent[name] = taken(servers[name])
    for name in ("package", "builders"):
        assert printed[name] == printed["sdk"]
        assert [x for x in sent[name] if x not in READS] == [x for x in sent["sdk"] if x not in READS]
        assert Counter(sent[name]) - Counter(sent["sdk"]) <= READS
    assert printed["sdk"]
    assert sent["sdk"] or script is build


@pytest.mark.slow  # until the client tries again
def test_a_server_that_dies_and_a_second_one_in_its_place(urdf: Path):
    """States stop, calls fail with the SDK's words, and the same robot connects to what listens there next."""
    said = {}
    for name, rby in FLAVOURS.items():
        lines: list[object] = []
        server = Server(str(urdf))
        robot = connected(rby, server.address)
        assert _watched(robot, with_manager=False)[2].wait(PATIENCE)
        server.close()
        for call in (robot.get_state, robot.get_robot_model, robot.cancel_control):
            with pytest.raises(RuntimeError) as failed:
                call()
            lines.append(str(failed.value).partition(",")[0])  # before the system's own words
        lines.append(robot.is_connected())
        robot.stop_state_update()
        second = Server(str(urdf), "a", server.address.rpartition(":")[2])
        until = time.monotonic() + PATIENCE
        while True:
            try:
                lines.append(len(robot.get_state().position))  # without a word, the client connects again
                break
            except RuntimeError:
                assert time.monotonic() < until
                time.sleep(0.05)
        lines += [robot.is_connected(), robot.connect(20, 500)]
        handle = robot.send_command(arms(rby, positions(rby, RIGHT)))
        assert handle.wait_for(int(1000 * PATIENCE))
        lines += [handle.get().finish_code, second.received().hex()]
        robot.disconnect()
        lines += [robot.is_connected(), len(robot.get_state().position)]
        second.close()
        said[name] = [str(line) for line in lines]
    assert said["package"] == said["sdk"] == said["builders"]


@pytest.mark.slow  # two processes
def test_seeded_numbers_are_those_without_the_library():
    """JAX draws from NumPy's generator while it is imported, which here happens after the first line of a script."""
    code = (
        "import numpy as np\nimport {} as rby\nnp.random.seed(0)\n"
        "rby.create_robot('127.0.0.1:1', 'a'); rby.dynamics.Link('a')\nprint(np.random.rand(3))"
    )
    lines = [
        subprocess.run(
            [sys.executable, "-c", code.format(name)], capture_output=True, text=True, timeout=120, check=True
        )
        for name in ("rby1_sdk", "rbydyn_jax.rby1")
    ]
    assert lines[1].stdout == lines[0].stdout != ""
