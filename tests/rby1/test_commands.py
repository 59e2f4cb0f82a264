"""Commands as values: frozen, compared, printed, written and read, differentiated, and checked."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import xml.etree.ElementTree as ElementTree
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import CommandError, DtypeError, NameNotFoundError, RbydynError, ShapeError
from rbydyn_jax.rby1 import commands as c
from tests.helpers import assert_close, oracle, rby1_file, untyped
from tests.rby1.samples import all_commands, jog, joint_impedance, pose

COMMANDS = all_commands()
ARM = joint_impedance("right_arm")
unchecked: Any = c  # for arguments of wrong types


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_what_it_is_written_printed_and_copied_as(name: str):
    command = COMMANDS[name]
    written = json.loads(json.dumps(command.to_dict()))
    same = [
        c.RobotCommand.from_dict(written),
        eval(repr(command), dict(vars(c))),
        pickle.loads(pickle.dumps(command)),
        copy.deepcopy(command),
        command.replace(),
        all_commands()[name],
        jax.tree.unflatten(jax.tree.structure(command), jax.tree.leaves(command)),
    ]
    for other in same:
        assert other == command and hash(other) == hash(command) and repr(other) == repr(command)
    assert all(other != command for key, other in COMMANDS.items() if key != name)
    assert len({*COMMANDS.values(), *same}) == len(COMMANDS)
    command.validate("A")
    command.validate("a")
    command.validate()


def test_any_change_of_any_number_makes_a_command_unequal():
    command = COMMANDS["all"]
    leaves, structure = jax.tree.flatten(command)
    assert len(leaves) > 40
    for i, leaf in enumerate(leaves):
        changed = np.array(leaf)
        changed.flat[-1] = np.nextafter(changed.flat[-1], np.inf)
        other = jax.tree.unflatten(structure, [*leaves[:i], changed, *leaves[i + 1 :]])
        assert other != command, jax.tree_util.tree_leaves_with_path(command)[i][0]


def test_a_number_to_jog_to_is_an_absolute_position():
    for angle in (0.5, np.float32(0.5), jnp.asarray(0.5)):
        assert untyped(c.JogCommand)(joint_name="head_0", command=angle).command == c.AbsolutePosition(0.5)


def test_a_command_cannot_be_changed():
    numbers = np.zeros(7)
    command = c.JointPositionCommand(position=numbers, minimum_time=2)
    numbers[0] = 1.0
    assert command == c.JointPositionCommand(position=np.zeros(7), minimum_time=2.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        command.minimum_time = 3.0  # pyright: ignore[reportAttributeAccessIssue]
    for kept in (command, pickle.loads(pickle.dumps(command)), copy.deepcopy(command)):
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(kept.position)[0] = 1.0
    assert command.replace(minimum_time=3.0) == c.JointPositionCommand(position=np.zeros(7), minimum_time=3)
    with pytest.raises(NameNotFoundError, match="did you mean 'minimum_time'"):
        command.replace(minimal_time=3.0)


def test_lists_numpy_and_jax_arrays_are_one():
    values = [0.25, -0.5, 1.0]
    commands = [
        untyped(c.JointPositionCommand)(position=x, minimum_time=t)
        for x, t in (
            (values, 2),
            (tuple(values), 2.0),
            (np.array(values), np.float32(2)),
            (np.array(values, np.float32), np.array(2)),
            (np.array(values)[:, None], 2.0),
            (jnp.array(values, jnp.float32), jnp.asarray(2.0)),
            ([jnp.asarray(x) for x in values], jnp.asarray(2)),
        )
    ]
    assert len(set(commands)) == 1 and len({repr(command) for command in commands}) == 1
    assert isinstance(commands[5].position, jax.Array) and commands[5].position.dtype == jnp.float32
    assert c.JointPositionCommand(position=np.array([0.0])) == c.JointPositionCommand(position=np.array([-0.0]))
    assert c.JointPositionCommand(position=np.array([np.nan])) == c.JointPositionCommand(position=np.array([np.nan]))


@pytest.mark.float32
def test_numbers_are_traced_and_names_are_not(dtype: jnp.dtype):
    command = jax.tree.map(lambda x: jnp.asarray(x, dtype), ARM)

    def energy(x: c.JointImpedanceControlCommand) -> jax.Array:
        x = x.replace(stiffness=2.0 * jnp.asarray(x.stiffness), minimum_time=1.0)
        x.validate("A", "right_arm")  # shapes only: the values are not known yet
        assert "Tracer" in repr(x)
        return jnp.asarray(x.damping_ratio) * jnp.sum(jnp.asarray(x.stiffness) * jnp.asarray(x.position) ** 2)

    gradient = jax.jit(jax.grad(energy))(command)
    assert isinstance(gradient, c.JointImpedanceControlCommand)
    q, k, zeta = (np.asarray(x, dtype) for x in (ARM.position, ARM.stiffness, ARM.damping_ratio))
    assert_close(gradient.position, 4 * zeta * k * q)
    assert_close(gradient.stiffness, 2 * zeta * q**2)
    assert_close(gradient.damping_ratio, 2 * np.sum(k * q**2))
    assert gradient.command_header is not None
    assert jnp.asarray(gradient.command_header.control_hold_time) == 0.0
    batch = jax.tree.map(lambda x: jnp.stack([x, 2 * x]), command)
    assert jax.vmap(energy)(batch).shape == (2,)
    with pytest.raises(CommandError, match=r"must be at most 1, got 1\.7"):
        batch.validate("A", "right_arm")

    @jax.jit
    def send(x: jax.Array) -> jax.Array:
        with pytest.raises(DtypeError, match="position is traced"):
            ARM.replace(position=x).to_sdk()
        with pytest.raises(DtypeError, match="traced"):
            ARM.replace(position=x).to_dict()
        with pytest.raises(CommandError, match="must have 7 entries"):
            ARM.replace(position=x[:6]).validate("A", "right_arm")
        assert ARM.replace(position=x) == ARM.replace(position=x) != ARM
        return x

    oracle("rby1_sdk")
    send(jnp.zeros(7, dtype))


def test_names_and_flags_decide_what_is_compiled():
    traces = []

    @jax.jit
    def f(x: Any) -> jax.Array:
        traces.append(x)
        return jnp.asarray(0.0)

    for target in ("right_arm_0", "right_arm_1"):
        for angle in (0.1, 0.2):
            f(c.JogCommand(joint_name=target, command=angle))
    assert len(traces) == 2


RIGHT = {"model": "A", "component": "right_arm"}
FAULTS: dict[str, tuple[c.RobotCommand | Any, dict[str, str], str]] = {
    "stiffness": (
        ARM.replace(stiffness=[1, 2, -3, 4, 5, 6, 7]),
        RIGHT,
        "right_arm: JointImpedanceControlCommand.stiffness: error: joint 'right_arm_2': must be at least 0 N "
        "m/rad, got -3",
    ),
    "without a model": (
        ARM.replace(stiffness=[1, 2, -3, 4, 5, 6, 7]),
        {},
        "JointImpedanceControlCommand.stiffness: error: entry 2: must be at least 0 N m/rad, got -3",
    ),
    "dof": (
        ARM.replace(torque_limit=[10.0] * 6),
        RIGHT,
        "right_arm: JointImpedanceControlCommand.torque_limit: error: must have 7 entries, one for each joint "
        "of right_arm, "
        "got 6",
    ),
    "lengths": (
        ARM.replace(torque_limit=[10.0] * 6),
        {},
        "JointImpedanceControlCommand.position, torque_limit: error: must be of one length: position has 7 entries but "
        "torque_limit has 6 entries",
    ),
    "limit": (
        ARM.replace(position=np.array([0, 0.5, 0, 0, 0, 0, 0])),
        RIGHT,
        "right_arm: JointImpedanceControlCommand.position: error: joint 'right_arm_1': position must be "
        "between -3.14159 "
        "and 0.0174533 rad, got 0.5",
    ),
    "finite": (
        ARM.replace(position=[0, 0, 0, 0, 0, 0, np.nan]),
        RIGHT,
        "right_arm: JointImpedanceControlCommand.position: error: joint 'right_arm_6': must be finite, got nan",
    ),
    "damping ratio": (
        ARM.replace(damping_ratio=1.01),
        {},
        "JointImpedanceControlCommand.damping_ratio: error: must be at most 1, got 1.01",
    ),
    "negative damping": (
        c.ImpedanceControlCommand(reference_link_name="base", link_name="ee_left", damping_ratio=-0.1),
        {},
        "ImpedanceControlCommand.damping_ratio: error: must be at least 0, got -0.1",
    ),
    "torque limit": (
        ARM.replace(torque_limit=[1, 1, 1, 1, 1, 0, 1]),
        RIGHT,
        "right_arm: JointImpedanceControlCommand.torque_limit: error: joint 'right_arm_5': must be greater "
        "than 0 N m, got 0",
    ),
    "time": (
        ARM.replace(minimum_time=-1),
        {},
        "JointImpedanceControlCommand.minimum_time: error: must be at least 0 s, got -1",
    ),
    "long time": (
        ARM.replace(minimum_time=1e19),
        {},
        "JointImpedanceControlCommand.minimum_time: error: must be at most 3.15576e+11 s, got 1e+19",
    ),
    "long hold time": (
        c.CommandHeader(np.nextafter(315_576_000_000.0, np.inf)),
        {},
        "CommandHeader.control_hold_time: error: must be at most 3.15576e+11 s, got 3.15576e+11",
    ),
    "hold time": (c.CommandHeader(np.inf), {}, "CommandHeader.control_hold_time: error: must be finite, got inf"),
    "link": (
        c.ImpedanceControlCommand(reference_link_name="base", link_name="ee_rigth"),
        RIGHT,
        "right_arm: ImpedanceControlCommand.link_name: error: model A: no link named 'ee_rigth'; did you mean "
        "'ee_right'?",
    ),
    "no link": (
        c.ImpedanceControlCommand(link_name="ee_right"),
        {},
        "ImpedanceControlCommand.reference_link_name: error: must be set",
    ),
    "reflection": (
        c.ImpedanceControlCommand(
            reference_link_name="base", link_name="ee_right", transformation=np.diag([1.0, 1, -1, 1])
        ),
        {},
        "ImpedanceControlCommand.transformation: error: must be in SE(3): its rotation is a reflection",
    ),
    "no rotation": (
        c.CartesianImpedanceTarget("base", "ee_right", pose(1) + 1e-3 * np.eye(4, k=1)),
        {},
        "CartesianImpedanceTarget.T: error: must be in SE(3): its rotation must be orthonormal, which it "
        "misses by 0.001",
    ),
    "last row": (
        c.CartesianImpedanceTarget("base", "ee_right", pose(1).T),
        {},
        "CartesianImpedanceTarget.T: error: must be in SE(3): the last row must be [0, 0, 0, 1], got "
        + str(pose(1).T[3].tolist()),
    ),
    "joint of a target": (
        c.CartesianCommand(joint_position_targets=(c.JointPositionTarget("right_arm_3", 0.5),)),
        RIGHT,
        "right_arm: CartesianCommand.joint_position_targets[0].target_position: error: joint 'right_arm_3': "
        "position must be between -2.61799 and 0.0174533 rad, got 0.5",
    ),
    "one of several": (
        c.CartesianCommand(
            targets=tuple(c.CartesianTarget("base", "ee_right", T, 0.1, 0.1, 1.0) for T in (pose(1), np.zeros((4, 4))))
        ),
        RIGHT,
        "right_arm: CartesianCommand.targets[1].T: error: must be in SE(3): the last row must be [0, 0, 0, 1], got "
        "[0.0, 0.0, 0.0, 0.0]",
    ),
    "range": (
        c.JointLimit("right_arm_3", -0.5, -1.0),
        {},
        "JointLimit.lower: error: joint 'right_arm_3': must be at most upper, -1 rad, got -0.5",
    ),
    "group": (
        c.JointGroupPositionCommand(joint_names=("torso_1", "head_0"), position=np.array([0.1])),
        {"model": "A", "component": "torso"},
        "torso: JointGroupPositionCommand.joint_names: error: no joint named 'head_0'; the joints are: "
        "'torso_0', 'torso_1', "
        "'torso_2', 'torso_3', 'torso_4', 'torso_5'\n"
        "torso: JointGroupPositionCommand.position: error: must have 2 entries, one for each joint of the command, "
        "got 1",
    ),
    "jog": (
        c.RobotCommand(jog(0.5)),
        {"model": "M"},
        "AbsolutePosition.value: error: joint 'right_arm_3': position must be between -2.61799 and 0.0174533 "
        "rad, got 0.5",
    ),
    "no wheels": (
        c.ComponentBasedCommand(
            mobility_command=c.SE2VelocityCommand(velocity=c.SE2Velocity(np.array([0.1, 0.0]), 0.0))
        ),
        {"model": "UB"},
        "ComponentBasedCommand.mobility_command: error: model UB has no mobility",
    ),
    "wheel speed": (
        c.ComponentBasedCommand(mobility_command=c.JointVelocityCommand(velocity=np.array([0.0, -20.0]))),
        {"model": "A"},
        "mobility: JointVelocityCommand.velocity: error: joint 'left_wheel': velocity must be between -15.708 "
        "and 15.708 "
        "rad/s, got -20",
    ),
    "empty": (c.RobotCommand(), {}, "RobotCommand.command: error: must be set"),
}


def test_a_sideways_velocity_on_two_wheels_is_ignored_with_a_warning():
    command = c.SE2VelocityCommand(velocity=c.SE2Velocity(np.array([0.1, 0.2]), 0.0))
    with pytest.warns(
        UserWarning, match="mobility: SE2Velocity.linear: warning: model A cannot move .* ignores y = 0.2"
    ):
        command.validate("A", "mobility")
    command.validate("M", "mobility")
    c.SE2VelocityCommand(velocity=c.SE2Velocity(np.array([0.1, 0.0]), 0.0)).validate("A", "mobility")
    with pytest.raises(CommandError, match="cannot move sideways") as caught:
        command.replace(minimum_time=-1.0).validate("A", "mobility")
    assert "minimum_time: error" in str(caught.value)


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named(name: str):
    command, where, message = FAULTS[name]
    with pytest.raises(CommandError) as caught:
        command.validate(**where)
    assert str(caught.value) == message
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, RbydynError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == message


# What may be negative; of all other numbers -1 is refused, and of limits and factors 0 too.
SIGNED = {
    "position", "velocity", "target_position", "linear", "angular", "lower", "upper", "value", "pose", "T",
    "transformation",
}  # fmt: skip


def refused(command: c.RobotCommand, i: int, value: float) -> set[str]:
    """The fields with which something is wrong if the last number of a command's leaf `i` is `value`."""
    leaves, structure = jax.tree.flatten(command)
    changed = np.array(leaves[i])
    changed.flat[-1] = value
    try:
        jax.tree.unflatten(structure, [*leaves[:i], changed, *leaves[i + 1 :]]).validate()
    except CommandError as error:
        return {finding.source.rpartition(".")[2] for finding in error.findings}
    return set()


def test_every_number_of_every_command_is_checked():
    seen = set()
    for command in COMMANDS.values():
        for i, (path, _) in enumerate(jax.tree_util.tree_leaves_with_path(command)):
            *_, above, field = (key.name for key in path if isinstance(key, jax.tree_util.GetAttrKey))
            seen.add(field)
            assert field in refused(command, i, np.nan) and field in refused(command, i, np.inf), path
            limit = above == "acceleration_limit" or field.endswith(("_limit", "_scaling"))
            if limit or field not in SIGNED:
                assert refused(command, i, -1.0) == {field}, path
                assert refused(command, i, 0.0) == ({field} if limit else set()), path
    assert len(seen) > 35


def test_all_faults_are_told_at_once():
    body = c.BodyComponentBasedCommand(
        right_arm_command=ARM.replace(damping_ratio=3.0, minimum_time=-1.0),
        torso_command=c.JointPositionCommand(position=np.zeros(7)),
    )
    command = c.ComponentBasedCommand(
        body_command=body, head_command=c.JointPositionCommand(position=np.array([3.0, 3.0]))
    )
    with pytest.raises(CommandError) as caught:
        command.validate("A")
    assert [f.source.split(": ")[0] for f in caught.value.findings] == ["right_arm"] * 2 + ["torso"] + ["head"] * 2


def test_what_is_rounded_in_float32_is_within_limits():
    upper = np.float32(c.model_description("A").position_upper[8])
    c.JointPositionCommand(position=np.r_[upper, np.zeros(6)]).validate("A", "right_arm")
    target = c.CartesianImpedanceTarget("base", "ee_right", np.asarray(pose(1), np.float32))
    target.validate("A")


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: unchecked.JointPositionCommand(position=1.0), DtypeError),
        (lambda: unchecked.JointPositionCommand(position="zero"), DtypeError),
        (lambda: unchecked.JointPositionCommand(position=["zero"]), DtypeError),
        (lambda: unchecked.JointPositionCommand(position=[1j]), DtypeError),
        (lambda: unchecked.JointPositionCommand(position=jnp.ones(3, jnp.complex64)), DtypeError),
        (lambda: unchecked.JointPositionCommand(position=np.zeros((7, 2))), ShapeError),
        (lambda: unchecked.JointPositionCommand(position=[[1.0], [2.0, 3.0]]), ShapeError),
        (lambda: unchecked.JointPositionCommand(minimum_time="1"), DtypeError),
        (lambda: unchecked.JointPositionCommand(minimum_time=True), DtypeError),
        (lambda: unchecked.JointPositionCommand(minimum_time=np.ones(1)), ShapeError),
        (lambda: unchecked.JointPositionCommand(minimum_time=jnp.ones(1)), ShapeError),
        (lambda: unchecked.JointPositionCommand(command_header=1.0), DtypeError),
        (lambda: unchecked.ImpedanceControlCommand(transformation=np.eye(3)), ShapeError),
        (lambda: unchecked.ImpedanceControlCommand(link_name=3), DtypeError),
        (lambda: unchecked.ImpedanceControlCommand(rotation_weight=[1.0, 2.0]), ShapeError),
        (lambda: unchecked.CartesianTarget("base", None, np.eye(4), 1.0, 1.0, 1.0), DtypeError),
        (lambda: unchecked.CartesianCommand(targets=c.CartesianTarget("a", "b", np.eye(4), 1, 1, 1)), DtypeError),
        (lambda: unchecked.CartesianCommand(targets=[c.CartesianImpedanceTarget("a", "b", np.eye(4))]), DtypeError),
        (lambda: unchecked.JointGroupPositionCommand(joint_names="torso_1"), DtypeError),
        (lambda: unchecked.GravityCompensationCommand(on=1), DtypeError),
        (lambda: unchecked.OptimalControlCommand(patience=1.5), DtypeError),
        (lambda: unchecked.OptimalControlCommand(patience=2**31), DtypeError),
        (lambda: unchecked.JogCommand(joint_name="head_0", command=True), DtypeError),
        (lambda: unchecked.OneStep(1), DtypeError),
        (lambda: unchecked.ArmCommand(c.JointVelocityCommand()), DtypeError),
        (lambda: unchecked.RobotCommand(c.JointPositionCommand()), DtypeError),
        (lambda: unchecked.JointPositionCommand([0.0]), TypeError),
        (lambda: c.RobotCommand.from_dict({"position": [1.0]}), DtypeError),
        (lambda: c.RobotCommand.from_dict({"type": "StopCommand"}), DtypeError),
        (lambda: c.StopCommand.from_dict({"type": "StopComand"}), NameNotFoundError),
        (lambda: c.StopCommand.from_dict({"type": "StopCommand", "header": None}), NameNotFoundError),
        (lambda: c.StopCommand().validate("B"), NameNotFoundError),
        (lambda: unchecked.StopCommand().validate(3), DtypeError),
        (lambda: c.StopCommand().validate("A", "arm"), NameNotFoundError),
        (lambda: c.model_description("A").component_joints("arm"), NameNotFoundError),
        (lambda: unchecked.read_feedback(object()), DtypeError),
    ],
)
def test_wrong_types_and_names_are_refused(make: Any, error: type[Exception]):
    with pytest.raises(error):
        make()


@pytest.mark.parametrize("name", ["A", "M", "UB"])
def test_models_are_those_of_the_sdk(name: str):
    sdk, ours = oracle("rby1_sdk"), c.model_description(name)
    theirs = getattr(sdk, f"Model_{name}")()
    for attribute in (a for a in dir(theirs) if not a.startswith("_")):
        want = getattr(theirs, attribute)
        assert getattr(ours, attribute) == (tuple(want) if isinstance(want, list) else want), attribute


@pytest.mark.parametrize(
    ("name", "file"), [("A", "rby1a_model_v1.2.urdf"), ("M", "rby1m_model_v1.3.urdf"), ("UB", "rby1ub_model.urdf")]
)
def test_limits_are_those_of_the_maker(name: str, file: str):
    ours = c.model_description(name)
    root = ElementTree.parse(rby1_file(file)).getroot()
    joints = {joint.get("name"): joint for joint in root.findall("joint")}
    for i, joint in enumerate(ours.robot_joint_names):
        limit = joints[joint].find("limit")
        got = ours.position_lower[i], ours.position_upper[i], ours.velocity_limit[i]
        figures = {} if limit is None else limit.attrib
        if joints[joint].get("type") == "continuous":
            assert got[:2] == (-np.inf, np.inf)
        else:
            want = float(figures["lower"]), float(figures["upper"])
            np.testing.assert_allclose(got[:2], want, rtol=0, atol=1e-9)
        np.testing.assert_allclose(got[2], float(figures.get("velocity", np.inf)), rtol=0, atol=1e-9)
    assert set(ours.link_names) == {link.get("name") for link in root.findall("link")}


def test_a_batch_of_commands_is_not_sent():
    oracle("rby1_sdk")
    for make, shape in (
        (lambda x: c.JointPositionCommand(position=x), (2,)),
        (lambda x: c.SE2VelocityCommand(velocity=c.SE2Velocity(x, x[0])), (2,)),
        (lambda x: c.JointPositionCommand(minimum_time=x), ()),
    ):
        batch = jax.vmap(make)(jnp.zeros((3, *shape)))
        with pytest.raises(ShapeError, match=r"is of a batch \(3,\) of commands: send them one by one"):
            batch.to_sdk()
