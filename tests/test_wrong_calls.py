"""The whole public API with wrong arguments: a typed error, or a result. A new name fails until it has right arguments.

Functions of arrays are traced only; their arguments are known there, so that their values are checked as well.
"""

from __future__ import annotations

import atexit
import importlib
import inspect
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import collision, constraints, envs, estimation, identification, planning, robots, whole_body
from rbydyn_jax.rby1 import commands
from rbydyn_jax.rby1.mobility import with_planar_base
from tests.helpers import slow
from tests.wrong_calls import check

ARM, RBY1, I3, I4 = robots.two_link_arm(), robots.rby1a(), np.eye(3), np.eye(4)
n = ARM.nv
X, X3, X4, X6 = np.full(n, 0.1), np.array([0.1, 0.2, 0.3]), np.array([1.0, 0.1, 0.0, 0.0]), np.ones(6)
MOBILE = with_planar_base(RBY1)
IMPEDANCE = commands.JointImpedanceControlCommand(
    position=X, velocity_limit=X, acceleration_limit=X, stiffness=X, damping_ratio=0.7, torque_limit=X, minimum_time=1.0
)
PATCH = constraints.ContactPatch(half_sizes=(0.1, 0.1), friction=0.5)
JOINT = rb.JointDescription("j", "fixed", "base", "tip")
LINKS = (rb.LinkDescription("base"), rb.LinkDescription("tip"))
FOLDER = tempfile.mkdtemp(prefix="wrong_calls")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
URDF = Path(FOLDER) / "pendulum.urdf"
URDF.write_text(rb.to_urdf(robots.pendulum()))
SRDF = Path(FOLDER) / "empty.srdf"
SRDF.write_text("<robot/>")
STL = Path(FOLDER) / "corner.stl"
CORNER = "facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet"
STL.write_text(f"solid a\n{CORNER}\nendsolid a")
SPHERES = Path(FOLDER) / "spheres.yml"
SPHERES.write_text("tool: [{center: [0, 0, 0], radius: 0.1}]")
ROWS = np.random.default_rng(0).normal(size=(30, n))
CSV = Path(FOLDER) / "motion.csv"
COLUMNS = ("time", *(f"{x}_{joint}" for x in ("q", "tau") for joint in ARM.joint_names))
TABLE = np.column_stack([0.1 * np.arange(len(ROWS)), ROWS, ROWS])
np.savetxt(CSV, TABLE, delimiter=",", header=",".join(COLUMNS), comments="")
SERVOS: dict[str, Any] = {"stiffness": 100.0, "damping": 10.0, "speed": 1.0}
ENV = envs.Environment(ARM, "tool", X, (X, X + 1.0), **SERVOS)
FLOOR = collision.World(collision.half_space(jnp.zeros(3), jnp.ones(3)))
RESULT = Path(FOLDER) / "result.npz"
estimation.start_payload(ARM).save(RESULT)
MJCF = Path(FOLDER) / "empty.xml"
MJCF.write_text("<mujoco/>")
RIGHT: dict[str, Any] = {
    **dict.fromkeys(("model", "other"), ARM),
    **dict.fromkeys(("q", "v", "a", "tau", "dv", "q0", "q1", "qdot", "q_desired", "v_desired"), X),
    **{"link": "tool", "point": X3, "key": jax.random.key(0), "f": rb.gravity_forces},
}
TWIST = {"v": X6, "a": X6, "m": X6, "f": X6, "p": X3, "T": I4}
RIGHT_OF: dict[str, dict[str, Any]] = {
    "spatial.to_linear_first": {"x": X6},
    "spatial.from_linear_first": {"x": X6},
    "spatial.so3": {"v": X3, "phi": X3, "R": I3, "m": I3},
    "spatial.se3": {"xi": X6, "T": I4, "R": I3, "p": X3},
    "spatial.quaternions": {"q": X4, "qdot": X4, "a": X4, "b": X4, "p": X3, "phi": X3, "omega": X3, "R": I3, "t": 0.5},
    "spatial.rpy": {"rpy": X3, "q": X4, "R": I3},
    "spatial.mrp": {"sigma": X3, "sigma_dot": X3, "omega": X3, "q": X4, "R": I3},
    "spatial.motion": TWIST,
    "spatial.inertia": {"theta": np.zeros(10), "mass": 1.0, "com": X3, "inertia": I3, "matrix": np.eye(6), "v": X6}
    | {"parameters": np.array([1.0, 0, 0, 0, 1, 0, 1, 0, 0, 1]), "T": I4},
    "spatial.inertia.from_pseudo_inertia": {"matrix": I4},
    "spatial.cones": {"friction": 0.5, "half_sizes": np.ones(2)},
    "spatial.safe": {"x": X3, "a": X3, "b": X3, "s2": X3, "w": X3, "k": 1},
    "spatial.transformations": {"T": I4, "R": I3, "omega": X3, "omegad": X3, "dt": 0.1, "jerk": X3, "v": X3, "a": X3}
    | {"p": X3, "pose": np.array([1.0, 0, 0, 0, 0, 0, 0])},
    "spatial.transformations.integrate_body_acceleration": {"v": X6, "a": X6},
    "collision": {"k": 2, "model": RBY1, "q": np.zeros(RBY1.nq), "start": X3, "end": -X3, "radius": 0.1, "center": X3}
    | {"pose": I4, "size": X3, "length": 0.1, "normal": X3, "world": FLOOR, "points": np.zeros((2, 3)), "samples": 2},
    "collision.srdf_pairs": {"path": SRDF},
    "collision.mesh_shapes": {"path": URDF},
    "collision.read_spheres": {"path": SPHERES},
    "collision.convex_hull": {"points": np.concatenate([np.zeros((1, 3)), np.eye(3)])},
    "collision.height_map": {"heights": np.zeros((2, 2)), "spacing": 0.1},
    "collision.distance_grid": {"values": np.zeros((2, 2, 2)), "spacing": 0.1},
    "collision.grid_from_points": {"points": np.zeros((2, 3)), "spacing": 0.1, "margin": 0.1},
    "collision.grid_from_mesh": {"path": STL, "spacing": 0.1, "margin": 0.1},
    "collision.with_shapes": {"shapes": {"ee_right": [collision.sphere(jnp.asarray(X3), 0.1)]}},
    "collision.sdf": {"link": "ee_right"},
    "collision.World": {"obstacle": collision.sphere(jnp.ones(3), 0.1), "point_radius": 0.1},
    "collision.capsule_distance": {"a0": X3, "a1": X3, "b0": X3, "b1": X3, "radius_a": 0.1, "radius_b": 0.1},
    "constraints": {"loops": (constraints.LoopJoint("spherical", None, "tool"),), "contacts": (), "duration": 0.1}
    | {"dt": 0.05, "x": np.zeros(2 * n), "patches": [PATCH], "wrench": X6, "com": X3, "kind": "revolute"}
    | {"predecessor": None, "successor": "tool", "half_sizes": (0.1, 0.1)},
    "constraints.Servo": {"target": X, "stiffness": X},
    "envs": {"env": ENV, "state": envs.reset(ENV, jax.random.key(0)), "action": X, "hand": "tool", "count": 2}
    | {"parameters": envs.Parameters(), "lower": envs.Parameters(), "upper": envs.Parameters(payload=1.0)},
    "envs.Environment": {"start": X, "goals": (X, X + 1.0), "parameters": (envs.Parameters(), envs.Parameters())}
    | SERVOS,
    "estimation": {"observer": estimation.MomentumObserver(*jnp.asarray([X, X, X])), "period": 0.1, "gain": 1.0}
    | {"torques": X, "threshold": 0.1, "estimate": estimation.start_payload(ARM)},
    "estimation.external_torques": dict.fromkeys(("q", "v", "tau"), np.zeros((2, n))) | {"period": 0.1},
    "identification.TrajectoryData": dict.fromkeys(("q", "v", "a", "tau"), ROWS),
    "identification.calibrate": {"q": ROWS, "poses": {"tool": np.zeros((30, 3))}},
    "identification.data_from_samples": {"q": ROWS, "tau": ROWS, "period": 0.1},
    "identification.exciting_trajectory": {"duration": 1.0, "waypoints": 1, "points": 3, "population": 8}
    | {"iterations": 1},
    "identification.fit": {"data": identification.TrajectoryData(*map(jnp.asarray, (ROWS,) * 4))},
    "identification.read_csv": {"path": CSV},
    "identification.smooth": {"samples": ROWS, "period": 0.1},
    "identification.with_parameters": {"values": identification.parameters(ARM)},
    "planning.solve_ik": {"target": I4},
    "planning.differential_ik": {"costs": [planning.LinkVelocity("tool", jnp.asarray(X6))], "dt": 0.1},
    "planning.trapezoidal_profile": {"start": X, "target": X, "velocity_limit": X, "acceleration_limit": X},
    "planning.jerk_limited_profile": {
        "start": X, "target": X, "velocity_limit": X, "acceleration_limit": X, "jerk_limit": X,
    },
    "planning.time_parametrize": {"path": np.array([[0.0, 0.1], [0.3, 0.2]]), "intervals": 2, "torques": False},
    "planning.rest_to_rest_basis": {"count": 3, "phase": X},
    "rb.attach": {"other": robots.pendulum(), "prefix": "p_"},
    "rb.attach_payload": {"mass": 1.0},
    "rb.build_model": {"description": rb.RobotDescription("r", LINKS, (JOINT,))},
    "rb.center_of_mass": {"links": ("tool",)},
    "rb.external_wrenches": {"wrenches": {"tool": X6}},
    "rb.precompile": {"functions": [rb.fk]},
    "rb.load_urdf_string": {"text": rb.to_urdf(robots.pendulum())},
    "rb.lock_joints": {"positions": {ARM.joint_names[0]: 0.1}},
    "rb.map_batch": {"x": np.zeros((2, n)), "chunk": 2},
    "rb.tiled": {"f": rb.fk},
    "rb.export_function": {"function": rb.fk},
    "rb.generate_c": {"function": rb.gravity_forces},
    "rb.load_urdf": {"path": URDF},
    "rb.load_xacro": {"path": URDF},
    "rb.load_mjcf": {"path": MJCF},
    "rb.load_function": {"path": URDF},
    "rb.load_result": {"path": RESULT},
    "rb.save_urdf": {"path": "pendulum.urdf"},
    "rb.with_limits": {"position_lower": X - 1.0},
    "rb.submodel": {"base_link": "upper"},
    "rb.from_mujoco": {"text": "right"},
    "rb.stack_models": {"models": [ARM, ARM]},
    "rb.with_armature": {"armature": X},
    "rb.with_damping": {"damping": X},
    "rb.with_friction": {"friction": X},
    "rb.with_gravity": {"gravity": X3},
    "rb.with_inertias": {"values": {"tool": np.array([1.0, 0, 0, 0, 1, 0, 1, 0, 0, 1])}},
    "rb.with_joint_parameters": {"values": {}},
    "rb.with_traversal": {"traversal": "scanned"},
    "rby1.mobility": {"model": RBY1, "wheels": np.ones(2), "twist": X3, "v": np.zeros(RBY1.nv)},
    "rby1.impedance": {"M": np.eye(2), "stiffness": np.ones(2), "A": np.eye(2)},
    "rby1.mobility.rolling_constraint": {"model": MOBILE},
    "rby1.mobility.rolling_motions": {"model": MOBILE},
    "rby1.mobility.with_rolling_wheels": {"model": MOBILE, "v": np.zeros(MOBILE.nv)},
    "rby1.impedance.impedance_torque": {"command": IMPEDANCE},
    "rby1.impedance.rollout": {"command": IMPEDANCE, "duration": 0.01, "v0": X},
    "testing": {"seed": 1},
    "whole_body": {"tasks": [whole_body.Posture(X)], "link": "tool", "target": I4, "contact": 0},
    "whole_body.Com": {"target": X3},
    "whole_body.Force": {"target": X3},
    "whole_body.Momentum": {"target": X6},
    "whole_body.Posture": {"target": X},
    "viz.capsule_surface": {"start": X3, "end": X3 + 0.1, "radius": 0.1},
    "rb.JointDescription": {"name": "j", "kind": "revolute", "parent": "base", "child": "tip", "origin": I4},
    "robots": {"mass": 1.0, "length": 1.0, "masses": (1.0, 1.0), "lengths": (1.0, 1.0)},
}  # fmt: skip

MODULES = (
    "rb", "collision", "constraints", "envs", "estimation", "identification", "planning", "robots", "spatial",
    "spatial.so3", "spatial.se3", "spatial.quaternions", "spatial.rpy", "spatial.mrp", "spatial.motion",
    "spatial.inertia", "spatial.cones", "spatial.safe", "spatial.transformations", "rby1.math", "rby1.mobility",
    "rby1.impedance", "testing", "viz", "whole_body",
)  # fmt: skip
# Made by the library and read by its users: plain containers, which check nothing.
RESULTS = {
    "AbaDerivatives", "AlgorithmPrecision", "ExecutionPlan", "ExportedFunction", "Finding", "InverseDynamicsTerms",
    "KinematicTree", "Model", "PrecisionReport", "RneaDerivatives", "Zmp", "CapsuleDistance", "ShapePairs", "Witness",
    "NearestPairs", "ClosedLoops", "ContactForces", "DynamicsResult", "InverseDynamicsResult", "Simulation",
    "SupportArea", "WrenchDistribution", "IkResult", "IkStatus", "ProfileSamples", "Trajectory", "TrajectoryReport",
    "TrajectoryResult", "TrajectorySamples", "TrajectoryStatus", "TrajectoryViolations", "TrapezoidalProfile",
    "SurfacePoints", "WorldDistance", "Rollout", "Inertial", "Mimic", "LinkDescription", "RobotDescription", "Goal",
    "Cost", "DifferentialIkResult", "ContactForce", "ContactWrench", "GeneralizedMomentum", "MomentumObserver",
    "PayloadEstimate", "JerkLimitedProfile", "TimedPath", "TimingStatus",
    "ContactPoints", "Controller", "IlqrResult", "IlqrStatus", "MppiResult", "MppiStatus", "ContactModel", "Task",
    "WholeBodyResult", "WholeBodyStatus", "CFunction", "EnvState", "Transition", "BaseParameters", "CalibrationResult",
    "ExcitingTrajectory", "FitResult",
}  # fmt: skip


def functions() -> dict[str, Callable[..., Any]]:
    """The public functions and classes, by module and name; each once, in the module that comes first."""
    found: dict[str, Callable[..., Any]] = {}
    for module in MODULES:
        space = rb if module == "rb" else importlib.import_module(f"rbydyn_jax.{module}")
        for name in dir(space):
            f = getattr(space, name)
            home = getattr(f, "__module__", "")
            own = home == space.__name__ or (hasattr(space, "__path__") and not home.endswith(("._check", "._jit")))
            if name[0] == "_" or not callable(f) or not home.startswith("rbydyn_jax") or not own:
                continue
            if inspect.isclass(f) and (issubclass(f, Exception | Warning) or name in RESULTS):
                continue
            if not any(f is g for g in found.values()):
                found[f"{module}.{name}"] = f
    return found


FUNCTIONS = functions()


def described(**joint: Any) -> rb.Model:
    """A robot with one joint."""
    return rb.build_model(rb.RobotDescription("r", LINKS, (rb.JointDescription(**joint),)))


described.__signature__ = inspect.signature(rb.JointDescription)  # type: ignore[attr-defined]


def loaded(text: Any) -> rb.Model:
    """A robot from the text of an MJCF file."""
    mujoco = pytest.importorskip("mujoco")
    return rb.from_mujoco(
        mujoco.MjModel.from_xml_string("<mujoco/>") if isinstance(text, str) and text == "right" else text
    )


# Names whose calls look otherwise, and what is to be called.
INSTEAD: dict[str, Callable[..., Any]] = {
    "rb.map_batch": lambda x, chunk, in_axes=(None, 0): rb.map_batch(rb.fk, ARM, x, in_axes=in_axes, chunk=chunk),
    "rb.with_limits": lambda model, position_lower: rb.with_limits(model, position_lower=position_lower),
    "rb.from_mujoco": loaded,
    "collision.World": lambda obstacle, points, point_radius: collision.World(
        obstacle, points=points, point_radius=point_radius
    ),
    "rb.JointDescription": described,
}
# They read or write files, edit robots on the host, or run: nothing to trace.
DIRECT = (
    "rb.attach", "rb.build_model", "rb.lock_joints", "rb.submodel", "rb.save_urdf", "rb.to_urdf", "rb.load_urdf",
    "rb.load_urdf_string", "rb.precision_report", "rb.precompile", "rb.export_function", "rb.load_mjcf",
    "rb.generate_c",
    "rb.load_xacro", "rb.load_function", "rb.from_mujoco", "rb.specialize",
    "collision.sampled_pairs", "collision.srdf_pairs", "collision.mesh_shapes", "collision.read_spheres",
    "collision.with_shapes", "collision.convex_hull", "collision.grid_from_points", "collision.grid_from_mesh",
    "rb.execution_plan", "rb.RobotBuilder", "planning.rest_to_rest_basis", "rb.map_batch", "rb.tiled",
    "rby1.mobility.with_planar_base", "rb.JointDescription", "envs.vector_env", "envs.reach", "envs.lift",
    "envs.right_arm", "identification.base_parameters", "identification.calibrate",
    "identification.data_from_samples", "identification.exciting_trajectory", "identification.fit",
    "identification.parameter_names", "identification.read_csv", "identification.smooth",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _plain_tracebacks():
    """JAX's filtering of tracebacks takes ten times as long as the calls."""
    config: Any = jax.config
    before = config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    yield
    jax.config.update("jax_traceback_filtering", before)


# Why a name has no rows here.
NOT_CALLED = {
    "rb.set_compilation_cache": "changes the settings of the process; tests/compilation",
    "rb.no_recompile": "takes no arguments",
    **dict.fromkeys(
        (f"planning.{name}" for name in ("PoseGoal", "PositionGoal", "ComGoal", "ConfigurationGoal", "LookAtGoal")),
        "a container that TrajectoryProblem and solve_ik check",
    ),
    **dict.fromkeys(
        (f"planning.{name}" for name in ("SoftGoal", "Manipulability", "LinkVelocity")),
        "a container that solve_ik and differential_ik check",
    ),
    **dict.fromkeys(
        ("planning.TrajectoryProblem", "planning.solve_trajectory", "planning.optimize_trajectory"),
        "wrong problems are in tests/planning/test_solve.py and test_optimize.py",
    ),
    **dict.fromkeys(
        (f"planning.{name}" for name in ("JointEffort", "JointLimits", "JointVelocity")),
        "a container that ControlProblem checks",
    ),
    **dict.fromkeys(
        (f"planning.{name}" for name in ("ControlProblem", "ilqr", "mpc", "mppi")),
        "wrong calls are in tests/planning/test_ilqr.py, test_mpc.py and test_mppi.py",
    ),
    **dict.fromkeys(
        ("planning.check_trajectory", "planning.sample_trajectory", "viz.draw_robot", "viz.plot_motion"),
        "wrong calls are in tests/planning/test_checks.py and tests/viz",
    ),
    **dict.fromkeys(
        ("viz.Playback", "viz.Viewer", "viz.animate", "viz.play", "viz.show"), "wrong calls are in tests/viz"
    ),
    "rby1.math.TrapezoidalMotionGenerator": "wrong calls are in tests/rby1/test_math.py",
}
# What is accepted takes long to trace or to build.
SLOW = (
    "planning.solve_ik", "planning.differential_ik", "planning.jerk_limited_profile", "planning.time_parametrize",
    "rb.attach", "rb.submodel", "rb.to_urdf", "rb.aba_derivatives", "rb.rnea_derivatives",
    "rb.hessian", "rb.point_hessian", "rb.point_jacobian", "constraints.impulse", "constraints.simulate",
    "constraints.state_derivative", "constraints.forward_dynamics", "constraints.inverse_dynamics",
    "collision.signed_distances", "collision.capsule_distances", "collision.sampled_pairs",
    "collision.contact_points", "collision.grid_from_mesh",
    "collision.world_distances", "collision.world_contacts", "collision.sdf", "rby1.impedance.impedance_torque",
    "whole_body.inverse_dynamics",
    "identification.base_parameters", "identification.calibrate", "identification.exciting_trajectory",
    "identification.fit", "rb.precision_report",
)  # fmt: skip
# A call takes long: wrong arguments only.
NOT_RUN = ("rb.precision_report", "rb.precompile", "rb.export_function", "rb.load_function")


def test_names_without_rows_exist():
    assert set(NOT_CALLED) | set(SLOW) | set(DIRECT) | set(INSTEAD) <= set(FUNCTIONS)


@pytest.mark.parametrize(
    "name", [slow(name)[0] if name in SLOW else name for name in FUNCTIONS if name not in NOT_CALLED]
)
def test_functions(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)  # where a path of the table is written
    module = name.rpartition(".")[0]
    right = RIGHT | RIGHT_OF.get(module, {}) | RIGHT_OF.get(name, {})
    traced = not (name in DIRECT or module in ("robots", "testing", "viz"))
    check(INSTEAD.get(name, FUNCTIONS[name]), right, traced=traced, run=name not in NOT_RUN)
