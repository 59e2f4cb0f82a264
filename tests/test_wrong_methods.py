"""Methods of public classes, and all that mirrors other libraries, with wrong arguments: a typed error, or a result.

What is public is read from the sources, as for the pages of the API: a new class, method, setter or function fails
until it has right arguments here, or a reason why it needs none. Functions of arrays are in `test_wrong_calls.py`, and
`compat` has a table of its own.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import inspect
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import constraints, envs, planning, robots, viz
from rbydyn_jax.rby1 import builders, commands, dynamics, math
from rbydyn_jax.rby1.commands import sending
from rbydyn_jax.shapes import SphereGeometry
from tests import test_wrong_calls as functions
from tests.helpers import slow, untyped
from tests.rby1 import samples
from tests.test_wrong_calls import _plain_tracebacks as _plain_tracebacks  # a fixture
from tests.wrong_calls import check
from website.api import public_modules

ARM = robots.two_link_arm()
X = np.full(2, 0.1)
FOLDER = Path(tempfile.mkdtemp(prefix="wrong_methods"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
OPERATORS = ("__call__", "__getitem__", "__contains__", "__add__", "__sub__", "__mul__", "__matmul__", "__or__")


def _own(cls: type, name: str) -> tuple[type, Any]:
    """The class that defines a member, and the member as it is written there."""
    return next(((c, vars(c)[name]) for c in cls.__mro__ if name in vars(c)), (object, None))


def _parameters(f: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(f).parameters if name != "self"]


def _public() -> Iterator[tuple[str, Any]]:
    """What is public and defined here, under the name of the module that has it; each once."""
    seen: set[int] = set()
    for module in public_modules():
        space = importlib.import_module(module.name)
        for name in (name for names in module.names.values() for name in names):
            x = getattr(space, name)
            if callable(x) and id(x) not in seen and not (inspect.isclass(x) and issubclass(x, Exception | Warning)):
                seen.add(id(x))
                yield f"{module.name.removeprefix('rbydyn_jax').removeprefix('.') or 'rb'}.{name}", x


def members() -> dict[str, tuple[type, str]]:
    """Methods that take arguments, and setters (with `=` behind the name), by the first public class that has them."""
    found: dict[str, tuple[type, str]] = {}
    seen: set[tuple[type, str]] = set()
    for where, cls in _public():
        if not inspect.isclass(cls):
            continue
        for name in dir(cls):
            owner, member = _own(cls, name)
            if (name[0] == "_" and name not in OPERATORS) or not owner.__module__.startswith("rbydyn_jax"):
                continue
            setter = isinstance(member, property) and member.fset is not None
            takes = setter or (callable(getattr(cls, name)) and not inspect.isclass(member))
            if takes and (owner, name) not in seen and (setter or _parameters(getattr(cls, name))):
                seen.add((owner, name))
                found[f"{where}.{name}{'=' * setter}"] = cls, name
    return found


MEMBERS = members()
# Functions and constructors that are in no table of `test_wrong_calls.py`.
OTHERS = {
    name: x
    for name, x in _public()
    if name.partition(".")[0] != "compat"
    and not any(x is f for f in functions.FUNCTIONS.values())
    and name.rpartition(".")[2] not in functions.RESULTS
}


def _two_links() -> rb.RobotBuilder:
    return rb.RobotBuilder("r").link("a").link("b", 1.0, inertia=0.1)


def _pendulum() -> rb.RobotBuilder:
    return _two_links().revolute("l", "a", "b")


def _cart() -> rb.RobotBuilder:
    return _pendulum().link("c", 1.0, inertia=0.1).revolute("r", "a", "c")


@functools.cache
def _control_problem() -> planning.ControlProblem:
    return planning.ControlProblem(ARM, [planning.JointEffort(0.1)], dt=0.1, steps=2)


@functools.cache
def _trajectory_problem() -> planning.TrajectoryProblem:
    return planning.TrajectoryProblem(ARM, jnp.asarray(X), [planning.ConfigurationGoal(jnp.asarray(X + 0.3))])


@functools.cache
def _profile() -> planning.TrapezoidalProfile:
    return untyped(planning.trapezoidal_profile)(X, X + 1.0, X, X)


@functools.cache
def _jerk_limited() -> planning.JerkLimitedProfile:
    return untyped(planning.jerk_limited_profile)(X, X + 1.0, X, X, X)


@functools.cache
def _nod() -> planning.Trajectory:
    head = functions.RBY1.tree.q_slices[functions.RBY1.joint_index("head_1")].start
    coefficients = jnp.full((8, 1), 0.02)
    return planning.Trajectory(jnp.zeros(24), coefficients, jnp.ones(()), (head,), (head,), 24)


@functools.cache
def _timed() -> planning.TimedPath:
    return planning.time_parametrize(ARM, jnp.array([[0.0, 0.1], [0.3, 0.2]]), intervals=2, torques=False)


@functools.cache
def _exported() -> rb.ExportedFunction:
    return rb.export_function(ARM, rb.gravity_forces)


@functools.cache
def _generated() -> rb.CFunction:
    return rb.generate_c(ARM, rb.gravity_forces)


@functools.cache
def _parametric() -> rb.CFunction:
    return rb.generate_c(ARM, rb.gravity_forces, parameters=True)


def _trajectory() -> planning.Trajectory:
    return planning.Trajectory(jnp.asarray(X), jnp.zeros((1, 2)), jnp.ones(()), (0, 1), (0, 1), 2)


@functools.cache
def _report() -> planning.TrajectoryReport:
    return planning.check_trajectory(ARM, _trajectory(), "tool", jnp.eye(4), points=2)


def _generator() -> math.TrapezoidalMotionGenerator:
    generator = math.TrapezoidalMotionGenerator()
    generator.update(_motion())
    return generator


def _motion() -> math.TrapezoidalMotionGenerator.Input:
    return math.TrapezoidalMotionGenerator.Input(X, X, X, X, X)


@functools.cache
def _robot() -> dynamics.Robot:
    return dynamics.Robot(dynamics.load_robot_from_urdf_data(rb.to_urdf(functions.RBY1), "base"))


def _state() -> dynamics.State:
    state = _robot().make_state([], [])
    _robot().compute_forward_kinematics(state)
    return state


def _reported() -> Any:
    fields = dict.fromkeys(("position", "velocity", "torque", "current"), np.zeros(24))
    return SimpleNamespace(timestamp=datetime(2026, 1, 1), **fields)


@functools.cache
def _viewer() -> viz.Viewer:
    pytest.importorskip("viser")
    viewer = viz.show(ARM, np.zeros(2), block=False, port=0, quiet=True)
    viewer.show_forces((constraints.Contact("tool"),), np.zeros((1, 3)))
    viewer.play(np.zeros((3, 2)), dt=0.1)
    return viewer


@pytest.fixture(scope="module", autouse=True)
def _viewer_closed():
    yield
    if _viewer.cache_info().currsize:
        _viewer().close()


def _joint() -> dynamics.Joint:
    return dynamics.Joint.make_revolute("j")


def _capsule() -> dynamics.GeomCapsule:
    return dynamics.GeomCapsule(1.0, 0.1, 1, 1)


class _Handler:
    """What the SDK returns for a command that was sent."""

    def is_done(self) -> bool:
        return True

    def wait_for(self, timeout_ms: int) -> bool:
        return True

    def send_command(self, builder: Any, timeout_ms: int = 1000) -> Any:
        return None

    def request_feedback(self, timeout_ms: int = 1000) -> Any:
        return None


_DATA = functions.RIGHT_OF["identification.fit"]["data"]


class _Robot:
    """A robot of the SDK, connected."""

    def is_connected(self) -> bool:
        return True

    def get_robot_model(self) -> str:
        return ""

    def model(self) -> Any:
        return SimpleNamespace(model_name="A")

    def send_command(self, builder: Any, priority: int) -> _Handler:
        return _Handler()

    def create_command_stream(self, priority: int) -> _Handler:
        return _Handler()


# An object whose method is called, a new one for each call unless it is never changed.
OBJECTS: dict[str, Callable[[], Any]] = {
    "rb.CFunction": _generated,
    "rb.CFunction.parameters": _parametric,
    "rb.ExportedFunction": _exported,
    "rb.AbaDerivatives": lambda: rb.AbaDerivatives(*(jnp.eye(2),) * 3),
    "rb.RobotBuilder": _pendulum,
    **dict.fromkeys(("rb.RobotBuilder.joint", "rb.RobotBuilder.universal"), _two_links),
    "rb.RobotBuilder.link": rb.RobotBuilder,
    "rb.RobotBuilder.mobile_base": _cart,
    "rb.Model": lambda: ARM,
    "rb.KinematicTree": lambda: ARM.tree,
    "rb.PrecisionReport": lambda: rb.PrecisionReport(
        "r", 1, (rb.AlgorithmPrecision("n", 0.0, 0.0, (), ()),), 1.0, 1.0, "a", "b"
    ),
    "constraints.LoopJoint": lambda: constraints.LoopJoint("spherical", None, "tool"),
    "envs.RejaxEnv": lambda: envs.RejaxEnv(functions.ENV),
    "identification.TrajectoryData": lambda: _DATA,
    "planning.TrajectoryReport": _report,
    "planning.ControlProblem": _control_problem,
    "planning.Controller": lambda: planning.mpc(_control_problem()),
    "planning.JerkLimitedProfile": _jerk_limited,
    "planning.TimedPath": _timed,
    "planning.Trajectory": _trajectory,
    "planning.TrajectoryProblem": _trajectory_problem,
    "planning.TrapezoidalProfile": _profile,
    "rby1.commands.CartesianCommand": samples.cartesian,
    "rby1.commands.ModelDescription": lambda: commands.model_description("A"),
    "rby1.commands.CommandHandle": lambda: sending.CommandHandle(_Handler()),
    "rby1.commands.CommandStream": lambda: sending.CommandStream(_Handler(), "A"),
    "rby1.dynamics.RobotConfiguration": dynamics.RobotConfiguration,
    "rby1.dynamics.Collision": lambda: dynamics.Collision("c"),
    "rby1.dynamics.Geom": lambda: dynamics.Geom(1, 1),
    "rby1.dynamics.GeomCapsule": _capsule,
    "rby1.dynamics.Joint": _joint,
    "rby1.dynamics.Link": lambda: dynamics.Link("l"),
    "rby1.dynamics.Robot": _robot,
    "rby1.dynamics.State": _state,
    "rby1.math.TrapezoidalMotionGenerator": _generator,
    "viz.Playback": lambda: _viewer().playback,
    "viz.Viewer": _viewer,
} | {name: cls for name, cls in OTHERS.items() if name.startswith("rby1.builders.") and name.endswith("CommandBuilder")}
OBJECTS["rby1.builders.CommandHeaderBuilder"] = builders.CommandHeaderBuilder
# What a call only collects is checked in the end.
AFTERWARDS: dict[str, Callable[[Any], Any]] = {"rb.RobotBuilder": rb.build_model}
# Right arguments by name.
RIGHT: dict[str, Any] = {
    **dict.fromkeys(("q", "v", "tau"), X),
    **{"model": ARM, "t": 0.1, "dt": 0.1, "points": 3, "name": "n", "key": jax.random.key(0)},
}
_T, _TWO = np.eye(4), np.array([0.5, 0.0])


@functools.cache
def right_of() -> dict[str, dict[str, Any]]:
    """Right arguments of a class, of a module, and of one method."""
    return {
        "rb.AbaDerivatives.save": {"path": FOLDER / "result.npz"},
        "rb.CFunction.save": {"directory": FOLDER},
        "rb.ExportedFunction.save": {"path": FOLDER / "f.bin"},
        "rb.RobotBuilder": {"link": "b", "parent": "a", "child": "b", "kind": "revolute", "length": 1.0, "radius": 0.1},
        "rb.RobotBuilder.collision": {"geometry": SphereGeometry(0.1)},
        "rb.RobotBuilder.mobile_base": {"kind": "differential", "joints": ["l", "r"], "params": [0.1, 0.2]},
        "rb.RobotBuilder.universal": {"axes": [(1.0, 0, 0), (0, 1.0, 0)]},
        "rb.Model": {"joint": ARM.joint_names[0], "link": "tool"},
        "rb.KinematicTree": {"joint": ARM.joint_names[0], "link": "tool", "body": 1, "bodies": [1]},
        "constraints.LoopJoint": {"dtype": jnp.float32},
        "envs.RejaxEnv": {"params": functions.ENV, "action": X, "state": functions.RIGHT_OF["envs"]["state"]},
        "identification.TrajectoryData": {"rows": slice(2)},
        "planning.ControlProblem": {"qs": np.zeros((3, 2)), "vs": np.zeros((3, 2)), "taus": np.zeros((2, 2))},
        "planning.TrajectoryProblem": {
            "coefficients": jnp.zeros((_trajectory_problem().coefficients, 2)), "duration": jnp.ones(()),
        },
        "planning.TimedPath.evaluate": {"t": np.array([0.1])},
        "rby1.builders": {
            "ref_link_name": "base", "link_name": "ee_right", "reference_link_name": "base", "joint_name": "head_0",
            "T": _T, "linear": _TWO, "angular": 0.1, "joint_names": ["head_0"], "pose": np.zeros(3), "on": True,
            "target_position": 0.1, "lower": 0.0, "upper": 1.0, "reset_reference": True, "patience": 1,
            "command_header_builder": builders.CommandHeaderBuilder(), "absolute_position": 0.1,
            "joint_position_command_builder": builders.JointPositionCommandBuilder(),
            "joint_velocity_command_builder": builders.JointVelocityCommandBuilder(),
            "address": "127.0.0.1:1", "model_name": "a",
        }
        | {
            f"{part}_command_builder": getattr(builders, f"{name}CommandBuilder")()
            for part, name in (
                ("arm", "Arm"), ("torso", "Torso"), ("mobility", "Mobility"), ("body", "Body"), ("head", "Head"),
                ("stop", "Stop"), ("whole_body", "WholeBody"),
            )
        }
        | dict.fromkeys(("position", "velocity", "stiffness", "torque_limit"), X)
        | dict.fromkeys(("velocity_limit", "acceleration_limit"), X)
        | dict.fromkeys(
            (
                "minimum_time", "control_hold_time", "damping_ratio", "stop_position_tracking_error", "stop_cost",
                "weight",
                "stop_orientation_tracking_error", "stop_joint_position_tracking_error", "linear_velocity_limit",
                "angular_velocity_limit", "acceleration_limit_scaling", "velocity_limit_scaling", "error_scaling",
                "min_delta_cost", "translation_weight", "rotation_weight",
            ),
            0.5,
        ),
        **{
            f"rby1.builders.{name}CommandBuilder": {"velocity_limit": 0.5, "acceleration_limit": 1.0}
            for name in ("Cartesian", "CartesianImpedanceControl")
        },
        "rby1.builders.CartesianImpedanceControlCommandBuilder.set_nullspace_joint_target": {
            "target_position": X, "weight": X,
        },
        "rby1.builders.ImpedanceControlCommandBuilder": {"weight": np.ones(3)},
        "rby1.builders.JogCommandBuilder": {"velocity_limit": 0.5, "acceleration_limit": 0.5},
        "rby1.builders.SE2VelocityCommandBuilder.set_acceleration_limit": {"linear": np.ones(2), "angular": 1.0},
        "rby1.commands": {
            "ref_link_name": "base", "link_name": "ee_right", "joint_name": "head_0", "T": _T, "linear": _TWO,
            "angular": 0.1, "pose": np.zeros(3), "target_position": 0.1, "lower": 0.0, "upper": 1.0, "weight": 0.5,
            "data": samples.cartesian().to_dict(), "component": "head", "timeout_ms": 1, "value": 0.1, "name": "A",
            "command": commands.StopCommand(), "handler": _Handler(), "model": "A", "robot": _Robot(), "feedback": None,
            "linear_velocity_limit": 0.5, "angular_velocity_limit": 0.5, "acceleration_limit_scaling": 0.5,
            "translation_weight": 0.5, "rotation_weight": 0.5,
        },
        "rby1.commands.CartesianCommand": {"model": "A", "component": "right_arm"},
        "rby1.commands.CommandStream.follow": {"commands": [commands.StopCommand()], "period": 0.1},
        "rby1.commands.to_commands": {"model": functions.RBY1, "motion": _nod(), "robot": "A"},
        **{
            f"rby1.commands.{name}Command": {"command": commands.JointPositionCommand()}
            for name in ("Arm", "Body", "Head", "Torso")
        },
        "rby1.commands.MobilityCommand": {"command": commands.JointVelocityCommand()},
        "rby1.commands.RobotCommand": {"command": commands.JogCommand()},
        "rby1.commands.JogCommand": {"command": commands.OneStep(True)},
        "rby1.commands.ImpedanceControlCommand": dict.fromkeys(("translation_weight", "rotation_weight"), np.ones(3)),
        "rby1.commands.NullspaceJointTarget": {"target_position": X, "weight": X},
        "rby1.commands.OneStep": {"value": True},
        "rby1.commands.SE2AccelerationLimit": {"linear": np.ones(2), "angular": 1.0},
        "rby1.dynamics": {
            "T": _T, "other_T": _T, "other_geom": dynamics.GeomCapsule(1.0, 0.1, 1, 1), "geom": _capsule(),
            "parent_link": dynamics.Link("p"), "child_link": dynamics.Link("c"), "lower": -1.0, "upper": 1.0,
            "S": np.eye(6)[5], "val": 1.0, "torque": 1.0,
            "collision": dynamics.Collision("c"), "reference_link_index": 0, "target_link_index": 1,
            "ref_link": 0, "base_link": dynamics.Link("l"), "getter": dynamics.Joint.get_limit_torque, "link_names": [],
            "joint_names": [], "V0": np.zeros(6), "Vdot0": np.zeros(6), "gravity": np.zeros(6), "coltype": 1,
            "colaffinity": 1, "wheels": [0, 1], "joints": ["a", "b"], "params": [0.1, 0.2], "path": functions.URDF,
            "base_link_name": "base", "type": dynamics.MobileBaseType.Differential,
            "state": _state(), "robot": _robot(), "index": 0, "values": _state().to_jax(),
            "value": 1, "height": 1.0, "radius": 0.1,
            "base": dynamics.MobileBase(dynamics.MobileBaseType.Differential, _T, ["a", "b"], [0.1, 0.2]),
            "robot_configuration": dynamics.load_robot_from_urdf_data(rb.to_urdf(functions.RBY1), "base"),
        }
        | dict.fromkeys(("q", "qdot", "qddot", "tau"), np.zeros(24)),
        "rby1.dynamics.MobileBaseMecanum": {"wheels": [0, 1, 2, 3]},
        "rby1.dynamics.Robot.compute_mobility_inverse_diff_kinematics": {"linear": _TWO, "angular": 0.1},
        "rby1.dynamics.load_robot_from_urdf_data": {"model": rb.to_urdf(robots.pendulum())},
        "rby1.math": {"input": _motion()},
        "rby1.states": {"model": functions.RBY1, "states": [_reported()]},
        "robots.descriptions": functions.RIGHT_OF["robots"],
        "viz.Playback": {"time": 0.1, "speed": 1.0},
        "viz.Viewer": {"contacts": (constraints.Contact("tool"),), "forces": np.zeros((1, 3))},
        "viz.Viewer.play": {"trajectory": np.zeros((3, 2)), "forces": np.zeros((3, 1, 3))},
        "viz.Viewer.show_ghosts": {"q": np.zeros((2, 2))},
        "shapes": {"size": np.ones(3), "length": 1.0, "radius": 0.1, "vertices": np.eye(3), "filename": "a.stl"}
        | {"scale": np.ones(3)},
    }  # fmt: skip


# What has no rows here: a member, a class or a module, and why.
_BY_LIBRARY = "called by the library, with arguments that its functions have checked"
NOT_CALLED: dict[str, str] = {
    "compat": "tests/compat/test_wrong_calls.py",
    **dict.fromkeys(("joints", "shapes"), f"for those who add a joint or a shape: {_BY_LIBRARY}"),
    **dict.fromkeys(
        (f"planning.{name}" for name in ("Goal", "PoseGoal", "PositionGoal", "ComGoal", "ConfigurationGoal")),
        _BY_LIBRARY,
    ),
    **dict.fromkeys(
        (f"planning.{name}" for name in ("LookAtGoal", "Cost", "SoftGoal", "Manipulability", "LinkVelocity")),
        _BY_LIBRARY,
    ),
    **dict.fromkeys((f"planning.{name}" for name in ("JointEffort", "JointLimits", "JointVelocity")), _BY_LIBRARY),
    **dict.fromkeys(
        (f"whole_body.{name}" for name in ("Task", "Com", "Effort", "Force", "Momentum", "Pose", "Posture")),
        _BY_LIBRARY,
    ),
    **dict.fromkeys((f"whole_body.{name}" for name in ("ContactModel", "PatchContact", "PointContact")), _BY_LIBRARY),
    **dict.fromkeys(
        (f"rby1.dynamics.{name}" for name in ("GeomType", "MobileBaseType")), "an enumeration: Python's ValueError"
    ),
    **dict.fromkeys(
        (f"rby1.dynamics.{name}" for name in ("RobotConfiguration", "JaxState")), "a container that its user checks"
    ),
    "rby1.dynamics.CollisionResult": "a result",
    "rby1.dynamics.Geom.compute_minimum_distance": "of a plain Geom, which has no form: an error always",
    **dict.fromkeys(
        (f"rby1.commands.{name}" for name in ("FinishCode", "CommandStatus")), "an enumeration: Python's ValueError"
    ),
    "rby1.states.StateLog": "a result",
    **dict.fromkeys(
        ("rby1.dynamics.Robot_18()", "rby1.dynamics.Robot_26()"),
        "as Robot_24, of other robots; tests/rby1/test_dynamics_states.py",
    ),
    "rby1.commands.ModelDescription()": "a container: commands look up its entries",
    **{
        name: "a result: what the robot tells"
        for name in OTHERS
        if name.startswith("rby1.commands.") and name.endswith(("Feedback", "TrackingError"))
    },
    **{
        f"{name}()": "no arguments, or those of set_command"
        for name in OTHERS
        if name.startswith("rby1.builders.") and name.endswith("Builder")
    },
    "rb.KinematicTree.check_configuration": "what has another shape passes; tests/model/test_restructure.py",
    "viz.Viewer.drag": "starts to compile in a thread; tests/viz/test_viewer.py",
    "rby1.builders.Builder": "the base of the others",
    "rby1.builders.Robot": "a robot of the SDK; tests/rby1/test_commands_loopback.py",
    "rby1.builders.create_robot": "makes a robot of the SDK; tests/rby1/test_commands_loopback.py",
}


# Calls that look otherwise, and what is to be called.
INSTEAD: dict[str, Callable[..., Any]] = {
    "rb.ExportedFunction.__call__": lambda model, q: _exported()(model, q),
    "rby1.dynamics.Robot.get_link": lambda state, index: _robot().get_link(state, index),
    "rby1.dynamics.Robot.compute_mobility_inverse_diff_kinematics": (
        lambda state, linear, angular: _robot().compute_mobility_inverse_diff_kinematics(state, linear, angular)
    ),
    "rby1.dynamics.GeomCapsule": lambda height, radius, coltype, colaffinity: dynamics.GeomCapsule(
        height, radius, coltype, colaffinity
    ),
}


def _reason(name: str) -> str:
    """Why a name has no rows, or nothing."""
    if reason := NOT_CALLED.get(f"{name}()" if name in OTHERS else name):
        return reason
    parts = name.split(".")
    return next((NOT_CALLED[x] for k in range(len(parts), 0, -1) if (x := ".".join(parts[:k])) in NOT_CALLED), "")


def right_arguments(name: str) -> dict[str, Any]:
    """Right arguments of a member or function: the nearest table wins."""
    parts = name.split(".")
    right = dict(RIGHT)
    for k in range(1, len(parts) + 1):
        right |= right_of().get(".".join(parts[:k]), {})
    return right


def call_of(name: str) -> Callable[..., Any]:
    """A function that calls a member of an object of its class."""
    cls, member = MEMBERS[name]
    of_class = name.rpartition(".")[0]
    make, then = OBJECTS.get(name) or OBJECTS[of_class], AFTERWARDS.get(of_class, lambda result: result)
    make()  # what is kept must not be made while a call is traced
    if name.endswith("="):

        def assigned(value: Any) -> None:
            setattr(make(), member, value)

        return assigned

    def call(**arguments: Any) -> Any:
        return then(getattr(make(), member)(**arguments))

    signature = inspect.signature(getattr(cls, member))
    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[p for p in signature.parameters.values() if p.name != "self"]
    )
    call.__name__ = name
    return call


def _rows() -> list[Any]:
    """All names that have rows; those that compile are slow."""
    names = [name for name in [*MEMBERS, *OTHERS] if not _reason(name)]
    return [slow(name)[0] if name.startswith(SLOW) else name for name in names]


# What is accepted is compiled, or takes long to make.
SLOW = ("planning.", "envs.", "identification.", "viz.", "rb.ExportedFunction", "rb.CFunction")
# Traced only, inside of a trace in which the arguments are known.
TRACED = ("planning.ControlProblem", "planning.JerkLimitedProfile", "planning.TrapezoidalProfile", "envs.RejaxEnv.step")
# They end in an answer of the SDK, or in a package that is not in the extra `test`: wrong arguments only.
NOT_RUN = (
    "rby1.commands.CommandStream.",
    "rby1.commands.read_feedback",
    "envs.RejaxEnv.action_space",
    "envs.RejaxEnv.observation_space",
)


def test_reasons_and_objects_are_of_names_that_exist():
    names = [*MEMBERS, *OTHERS, *(name for name, _ in _public())]
    for name in (*NOT_CALLED, *OBJECTS, *AFTERWARDS, *INSTEAD, *right_of(), *TRACED, *NOT_RUN):
        assert any(x == name.removesuffix("()") or x.startswith(name) for x in names), name


@pytest.mark.parametrize("name", _rows())
def test_methods_and_the_other_functions(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)  # where a path of the table is written
    right = right_arguments(name)
    if name.endswith("="):
        right["value"] = right[name.rpartition(".")[2].removesuffix("=")]
    f = INSTEAD.get(name) or (call_of(name) if name in MEMBERS else OTHERS[name])
    check(f, right, traced=name.startswith(TRACED), run=not name.startswith(NOT_RUN))
