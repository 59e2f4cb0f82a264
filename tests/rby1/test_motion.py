"""Motions as commands of a stream: positions of the motion, limits of the robot, and the stream itself."""

from __future__ import annotations

import dataclasses
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.planning import Trajectory, TrajectorySamples, sample_trajectory, time_parametrize
from rbydyn_jax.rby1 import commands as c
from rbydyn_jax.rby1.math import TrapezoidalMotionGenerator
from tests.helpers import oracle, untyped

MODEL = robots.rby1a()


def place(joint):
    return MODEL.tree.q_slices[MODEL.joint_index(joint)].start


def motion(size=0.3, duration=1.0, joints=("right_arm_0", "right_arm_2", "head_0")):
    """A motion of some joints, in a spline that does not come to an end where its first sample is."""
    at = tuple(map(place, joints))
    coefficients = jnp.asarray(np.linspace(0.2, 1.0, 8)[:, None] * np.full(len(at), size / 8))
    return Trajectory(jnp.zeros(MODEL.nq), coefficients, jnp.asarray(duration), at, at, MODEL.nv)


def parts(command):
    body, head = command.command.body_command, command.command.head_command
    found = {} if body is None else {k: v.command for k, v in vars(body.command).items() if v is not None}
    return found | ({} if head is None else {"head_command": head.command})


def test_positions_are_those_at_the_end_of_each_step():
    path = motion()
    stream = c.to_commands(MODEL, path, period=0.03)
    assert len(stream) == 34  # 33.3 steps
    at = sample_trajectory(path, 35)
    for k, command in enumerate(stream, start=1):
        command.validate("A")
        found = parts(command)
        assert set(found) == {"right_arm_command", "head_command"}  # what moves
        for part, joints in (("right_arm", [f"right_arm_{k}" for k in range(7)]), ("head", ["head_0", "head_1"])):
            each = found[f"{part}_command"]
            np.testing.assert_allclose(each.position, [at.q[k][place(x)] for x in joints], rtol=0, atol=1e-12)
            assert each.minimum_time == pytest.approx(1.0 / 34, rel=1e-12)


def test_a_timed_path_of_the_arm_alone():
    arm = rb.submodel(MODEL, "link_torso_5")  # both arms and the head
    path = jnp.zeros((3, arm.nq)).at[1:, arm.joint_index("right_arm_2")].set(jnp.array([0.2, 0.5]))
    timed = time_parametrize(arm, path, torques=False, intervals=4)
    stream = c.to_commands(arm, timed, robot="A")
    last = parts(stream[-1])["right_arm_command"].position
    np.testing.assert_allclose(last, np.eye(7)[2] * 0.5, atol=1e-12)
    assert len(stream) == int(np.ceil(float(timed.duration) / 0.02))


@pytest.mark.parametrize(("where", "speed"), [("begins", "start_speed"), ("ends", "end_speed")])
def test_a_motion_that_begins_or_ends_at_speed_is_said_to(where, speed):
    path = jnp.zeros((2, MODEL.nq)).at[1, place("right_arm_2")].set(0.5).at[1, place("head_0")].set(0.1)
    c.to_commands(MODEL, time_parametrize(MODEL, path, torques=False, intervals=8))  # a warning would be an error
    timed = time_parametrize(MODEL, path, torques=False, intervals=8, **untyped({speed: 0.6}))
    with pytest.warns(UserWarning, match=rf"^the motion {where} at speed, that of joint 'right_arm_2' is 0\.3 rad/s"):
        stream = c.to_commands(MODEL, timed)
    assert parts(stream[-1])["right_arm_command"].position[2] == pytest.approx(0.5, rel=1e-5)


def test_the_robot_stops_at_the_last_command_of_a_motion_that_ends_at_speed():
    timed = time_parametrize(MODEL, jnp.zeros((2, MODEL.nq)).at[1, place("right_arm_2")].set(0.5), end_speed=0.6)
    with pytest.warns(UserWarning, match="ends at speed"):
        stream = c.to_commands(MODEL, timed)
    given, generator = untyped(TrapezoidalMotionGenerator.Input()), TrapezoidalMotionGenerator()  # that of the SDK
    given.velocity_limit, given.acceleration_limit = [np.pi], [10.0]
    q, v = 0.0, 0.0
    for command in stream:
        each = parts(command)["right_arm_command"]
        given.current_position, given.current_velocity = [q], [v]
        given.target_position, given.minimum_time = each.position[2:3], each.minimum_time
        generator.update(given)
        q, v = (float(x[0]) for x in (generator(each.minimum_time).position, generator(each.minimum_time).velocity))
    after = [generator(each.minimum_time + t).position[0] for t in np.linspace(0.0, 1.0, 101)]
    assert max(after) <= 0.5 + 1e-6 and after[-1] == pytest.approx(0.5, rel=1e-5)


def test_chosen_parts_and_commands():
    springs = c.JointImpedanceControlCommand(stiffness=np.full(7, 50.0), damping_ratio=0.7)
    path = motion(joints=("right_arm_0",))
    stream = c.to_commands(MODEL, path, components=("right_arm", "torso"), using={"right_arm": springs})
    found = parts(stream[0])
    assert set(found) == {"right_arm_command", "torso_command"}
    assert isinstance(found["right_arm_command"], c.JointImpedanceControlCommand)
    np.testing.assert_array_equal(found["right_arm_command"].stiffness, np.full(7, 50.0))
    assert isinstance(found["torso_command"], c.JointPositionCommand)


def test_limits_of_the_robot():
    with pytest.raises(rb.CommandError, match=r"right_arm: speed: error: joint 'right_arm_0': must be at most") as info:
        c.to_commands(MODEL, motion(size=2.0, duration=0.1))
    assert sum(finding.source.endswith("speed") for finding in info.value.findings) == 3
    slow = motion(size=80.0, duration=300.0, joints=("right_arm_0", "left_arm_3", "head_1"))
    with pytest.raises(rb.CommandError) as info:
        c.to_commands(MODEL, slow)
    described, at = c.model_description("A"), sample_trajectory(slow, 15001)
    for finding, (part, joint) in zip(
        info.value.findings, (("right_arm", "right_arm_0"), ("left_arm", "left_arm_3"), ("head", "head_1")), strict=True
    ):
        high = described.position_upper[described.robot_joint_names.index(joint)]
        low = described.position_lower[described.robot_joint_names.index(joint)]
        q = np.asarray(at.q)[:, place(joint)]
        k = int(np.argmax(np.maximum(q - high, low - q)))
        assert str(finding) == (
            f"{part}: position: error: joint {joint!r}: must be between {low:g} and {high:g} rad, got {q[k]:g} at "
            f"{at.times[k]:.3f} s"
        )
    narrow = c.model_description("A")
    narrow = dataclasses.replace(narrow, velocity_limit=tuple(0.01 for _ in narrow.velocity_limit))
    c.to_commands(MODEL, motion())
    with pytest.raises(rb.CommandError, match="speed"):
        c.to_commands(MODEL, motion(), robot=narrow)


class Turning:
    """One joint that turns at a speed, in positions of single precision."""

    duration, nv, q_start = 0.4, MODEL.nv, np.zeros(MODEL.nq)

    def __init__(self, joint, speed, start):
        self.at, self.speed, self.start = place(joint), speed, start

    def samples(self, points):
        times = np.linspace(0.0, self.duration, points)
        q = np.zeros((points, MODEL.nq), np.float32)
        q[:, self.at] = self.start + self.speed * times
        still = jnp.zeros((points, MODEL.nv))
        return TrajectorySamples(jnp.asarray(times), jnp.asarray(q), still, still)


def test_a_motion_at_the_limit_of_speed_is_allowed_in_single_precision():
    described = c.model_description("A")
    limit = described.velocity_limit[described.robot_joint_names.index("right_arm_4")]
    c.to_commands(MODEL, untyped(Turning("right_arm_4", limit, 0.52)), period=0.01)
    with pytest.raises(rb.CommandError, match="speed"):
        c.to_commands(MODEL, untyped(Turning("right_arm_4", 1.001 * limit, 0.52)), period=0.01)


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (rb.ArgumentError, "period must be at least 0.002", {"period": 0.001}),
        (rb.ArgumentError, "components must hold all that moves", {"components": ("head",)}),
        (rb.NameNotFoundError, "no component named 'arm'", {"components": ("arm",)}),
        (rb.NameNotFoundError, "no component named 'torso'", {"using": {"torso": c.JointPositionCommand()}}),
        (rb.DtypeError, r"using\['head'\] must be a command", {"using": {"head": c.JointImpedanceControlCommand()}}),
        (rb.NameNotFoundError, "no model named 'B'", {"robot": "B"}),
    ],
)
def test_wrong_calls_are_explained(error, message, options):
    with pytest.raises(error, match=message):
        c.to_commands(MODEL, motion(), **options)


def test_wrong_motions_are_explained():
    with pytest.raises(rb.ArgumentError, match="nothing moves"):
        c.to_commands(MODEL, motion(size=0.0))
    wheel = c.model_description("A").component_joints("mobility")[0]
    with pytest.raises(rb.ArgumentError, match="wheels move"):
        c.to_commands(MODEL, motion(joints=(wheel,)))
    with pytest.raises(rb.ModelError, match=f"joint '{wheel}' moves along the motion"):  # the M has other wheels
        c.to_commands(MODEL, motion(joints=(wheel, "head_0")), robot="M")
    assert c.to_commands(MODEL, motion(joints=("head_0",)), robot="M")
    with pytest.raises(rb.ModelError, match="not the joints of an RB-Y1"):
        c.to_commands(robots.two_link_arm(), motion())
    for size in (2, 40):
        other = Trajectory(jnp.zeros(size), jnp.full((1, 1), 0.1), jnp.asarray(1.0), (1,), (1,), size)
        with pytest.raises(rb.ModelError, match=f"motion is of a robot with {size} coordinates and {size} velocities"):
            c.to_commands(MODEL, other)
    with pytest.raises(rb.DtypeError, match="to_commands needs the values of its arguments: call it outside of jit"):
        jax.jit(lambda motion: c.to_commands(MODEL, motion))(motion())
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), motion())
    with pytest.raises(rb.ShapeError, match=r"motion must be a single one, got a batch of \(2,\)"):
        c.to_commands(MODEL, batch)
    with pytest.raises(rb.DtypeError, match="motion must be a Trajectory"):
        untyped(c.to_commands)(MODEL, np.zeros((3, 24)))


class Handler:
    """The SDK's handler of a stream: takes what is sent, and the time."""

    def __init__(self, delay=0.0, stall=None):
        self.times, self.builders, self.delay, self.stall = [], [], delay, delay if stall is None else stall

    def is_done(self):
        return False

    def send_command(self, builder, timeout):
        self.times.append(time.monotonic())
        self.builders.append(builder)
        time.sleep(self.stall if len(self.builders) == 4 else self.delay)
        return None


def test_a_stream_follows_in_time(monkeypatch):
    oracle("rby1_sdk")
    monkeypatch.setattr("rbydyn_jax.rby1.commands.sending._read", lambda feedback: "read")
    handler, commands = Handler(), c.to_commands(MODEL, motion(), period=0.05)
    assert c.CommandStream(handler, "A").follow(commands, 0.05) == "read"
    assert len(handler.builders) == 20
    waits = np.diff(handler.times)
    assert 0.9 < waits.sum() < 5.0
    slow = Handler(delay=0.03)
    with pytest.warns(UserWarning, match=r"sent 0\.\d+ s late; answers took up to 0\.\d+ s of 0\.01 s"):
        c.CommandStream(slow, "A").follow(commands[:4], 0.01)
    stalled = Handler(delay=0.0, stall=0.3)
    with pytest.warns(UserWarning, match="late"):
        c.CommandStream(stalled, "A").follow(commands[:12], 0.05)
    assert np.diff(stalled.times).min() > 0.04  # what a late answer has delayed is not sent at once
    assert np.diff(stalled.times).max() > 0.29


class Clock:
    """The time of a computer that wakes late from each sleep, by a mean of 3 ms."""

    def __init__(self, spread):
        self.now, self.late = 0.0, np.random.default_rng(0).uniform(0.003 - spread, 0.003 + spread, 1000).tolist()

    def monotonic(self):
        self.now += 1e-6
        return self.now

    def sleep(self, duration):
        self.now += duration + (self.late.pop() if duration > 0.0 else 0.0)


@pytest.mark.parametrize("spread", [0.0, 0.003])
def test_a_computer_that_wakes_late_keeps_the_pace(spread, monkeypatch):
    oracle("rby1_sdk")
    clock = Clock(spread)
    monkeypatch.setattr("rbydyn_jax.rby1.commands.sending._read", lambda feedback: "read")
    monkeypatch.setattr("rbydyn_jax.rby1.commands.sending.time", clock)
    monkeypatch.setattr("tests.rby1.test_motion.time", clock)
    handler = Handler()
    c.CommandStream(handler, "A").follow([c.StopCommand()] * 50, 0.01)  # a warning would be an error
    assert clock.now == pytest.approx(0.5, abs=0.01)
    assert np.diff(handler.times).min() > 0.009
    assert np.abs(np.asarray(handler.times) - 0.01 * np.arange(50)).max() < 0.01


def test_wrong_commands_of_a_stream_are_named():
    oracle("rby1_sdk")
    first, *_ = c.to_commands(MODEL, motion(), period=0.05)
    near, far = (
        c.ComponentBasedCommand(head_command=c.JointPositionCommand(position=np.array([x, 0.0]))) for x in (0.1, 9.0)
    )
    handler = Handler()
    for error, message, commands in (
        (rb.CommandError, r"^commands\[1\]: head: JointPositionCommand.position: error: joint 'head_0'", [near, far]),
        (rb.DtypeError, r"^commands\[1\] must be a RobotCommand or what one can hold, got int", [first, 3]),
        (rb.ShapeError, r"^commands\[0\]: .* is of a batch", [jax.tree.map(lambda x: jnp.stack([x, x]), near)]),
        (rb.ArgumentError, "at least one", []),
    ):
        with pytest.raises(error, match=message):
            untyped(c.CommandStream(handler, "A").follow)(commands, 0.05)
    with pytest.raises(rb.DtypeError, match=r"^strict must be True or False"):
        untyped(c.CommandStream(handler, "A").follow)([first], 0.05, strict=None)
    assert not handler.builders  # nothing is sent before all are checked
