"""Hazards of functions of robots: points where a formula is singular, and functions that have none.

`POINTS` are compared with differences to first order, forward and reverse; where a derivative has two sides, it has to
be finite. The functions of a state, `ON_STATES` of `test_public_functions.py`, are compared at rest, at the identity
and at half a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import rbydyn_jax as rb
from rbydyn_jax import estimation, identification, robots
from rbydyn_jax.constraints import (
    ContactPatch,
    close_loops,
    distribute_wrench,
    impulse,
    inverse_dynamics,
    state_derivative,
    static_equilibrium_polygon,
    zmp_support_area,
)
from rbydyn_jax.planning import LinkVelocity, Manipulability, differential_ik, solve_ik, time_parametrize
from rbydyn_jax.rby1.commands import JointImpedanceControlCommand
from rbydyn_jax.rby1.impedance import damping_matrix, impedance_torque
from tests.constraints.mechanisms import four_bar


class Hazard(NamedTuple):
    """A function of a vector, its hazards, and those of them where the derivative is one of several, or none exists."""

    f: Callable[[jax.Array], Any]
    points: Mapping[str, Sequence[float]]
    sides: tuple[str, ...] = ()


_ARM = rb.with_friction(robots.two_link_arm(), 0.5)
_BALL = rb.build_model(rb.RobotBuilder("ball").link("w").link("a", 1.0, (0.1, 0, 0.2), 0.1).spherical("j", "w", "a"))
_BAR, _HINGE = four_bar()
_CLOSED = (0.9, -1.1, 1.8)  # not closed: the constraints count as they are
_PATCH = ContactPatch(half_sizes=(0.1, 0.05), friction=0.6)
_POINT = (0.0, 0.0, 0.0)
_FLAT = (0.1, 0.05, 0.02, -0.01)
_STRAIGHT, _BENT = (0.3, 0.0), (0.3, 0.8)
_STIFF = {"stiffness": jnp.array([60.0, 40.0]), "damping_ratio": 0.7, "torque_limit": jnp.array([30.0, 30.0])}
_LIMITS = {"velocity_limit": jnp.ones(2), "acceleration_limit": jnp.ones(2), "minimum_time": 1.0}
_COMMAND = JointImpedanceControlCommand(position=jnp.zeros(2), **_STIFF, **_LIMITS)
_IDENTITY, _HALF_TURN = (1.0, 0, 0, 0), (0.0, 0.6, 0, 0.8)
_TURNS = {"identity": (*_IDENTITY, 0, 0, 0), "half a turn": (*_HALF_TURN, 0, 0, 0)}
_REST = {"at rest": (*_BENT, 0, 0), "straight, at rest": (*_STRAIGHT, 0, 0)}
_WIDTH = 0.1


def _foot(x: jax.Array) -> ContactPatch:
    """A flat foot by its half sizes and its place."""
    return ContactPatch(jnp.eye(4, dtype=x.dtype).at[:2, 3].set(x[2:]), x[:2], 0.6)


def _reached(shift: jax.Array) -> jax.Array:
    """The arm that reaches for where it is, moved."""
    q = jnp.asarray(_STRAIGHT, shift.dtype)
    target = rb.link_pose(_ARM, q, "tool").at[:3, 3].add(shift)
    return solve_ik(_ARM, "tool", target, q0=q, attempts=1).q


def _followed(x: jax.Array, *costs: Any) -> jax.Array:
    q, twist = x[:2], x[2:]
    return differential_ik(_ARM, q, [LinkVelocity("tool", twist), *costs], dt=0.01, damping=1e-2).v


def _timed(x: jax.Array) -> jax.Array:
    return time_parametrize(_ARM, jnp.stack([x, x + jnp.array([0.4, 0.0])]), torques=False, intervals=8).duration


def _of_observer(x: jax.Array) -> Any:
    before = estimation.MomentumObserver(jnp.zeros(2), jnp.zeros(2), jnp.zeros(2))
    return estimation.observe(_ARM, before, x[:2], x[2:], jnp.zeros(2), 0.01, 10.0, width=_WIDTH)


def _of_samples(x: jax.Array) -> Any:
    q, v = x.reshape(2, 2, 2)
    return estimation.external_torques(_ARM, q, v, jnp.zeros((2, 2)), 0.01, 10.0, width=_WIDTH)


def _of_payload(x: jax.Array) -> Any:
    start = estimation.start_payload(_ARM)
    return estimation.observe_payload(_ARM, start, x[:2], x[2:], jnp.zeros(2), jnp.ones(2), "tool")


def _of_ball(f: Callable[..., Any]) -> Hazard:
    return Hazard(lambda x: f(_BALL, x[:4], x[4:]), _TURNS)


POINTS: dict[str, Hazard] = {
    "planning.solve_ik": Hazard(_reached, {"stretched": _POINT}, ("stretched",)),
    "planning.differential_ik": Hazard(
        _followed, {"straight": (*_STRAIGHT, 0, 0, 0.1, 0.2, 0.1, 0), "no motion": (*_BENT, *_POINT, *_POINT)}
    ),
    "planning.differential_ik with manipulability": Hazard(
        lambda x: _followed(x, Manipulability("tool", 0.1)),
        {"straight": (*_STRAIGHT, 0, 0, 0.1, 0.2, 0.1, 0)},
        ("straight",),
    ),
    "planning.time_parametrize": Hazard(_timed, {"a joint that rests": (0.1, 0.2)}, ("a joint that rests",)),
    "constraints.close_loops": Hazard(
        lambda x: close_loops(_BAR, jnp.asarray(_CLOSED, x.dtype) + x, (_HINGE,), fixed=("a",)).q,
        {"closed": _POINT},
        ("closed",),
    ),
    "constraints.impulse": Hazard(
        lambda x: impulse(_BAR, jnp.asarray(_CLOSED, x.dtype), x, (_HINGE, _HINGE)), {"at rest, redundant": _POINT}
    ),
    "constraints.inverse_dynamics": Hazard(
        lambda x: inverse_dynamics(_BAR, jnp.asarray(_CLOSED, x.dtype), x[:3], x[3:], (_HINGE, _HINGE)).tau,
        {"at rest, redundant": (*_POINT, *_POINT)},
    ),
    "constraints.state_derivative": Hazard(lambda x: state_derivative(_BALL, x, jnp.zeros(3, x.dtype)), _TURNS),
    "constraints.distribute_wrench": Hazard(
        lambda x: distribute_wrench([_PATCH], x).forces,
        {"no wrench": (*_POINT, *_POINT), "no friction": (*_POINT, 0, 0, 10.0)},
        ("no wrench",),
    ),
    "constraints.static_equilibrium_polygon": Hazard(
        lambda x: static_equilibrium_polygon([_foot(x)], directions=4).offsets, {"an edge, a flat foot": _FLAT}
    ),
    "constraints.zmp_support_area": Hazard(
        lambda x: zmp_support_area([_foot(x)], jnp.array([0.0, 0, 0.8], x.dtype), directions=4).offsets,
        {"an edge, a flat foot": _FLAT},
    ),
    "estimation.contact_force": Hazard(
        lambda x: estimation.contact_force(_ARM, x[:2], x[2:], "tool", jnp.zeros(3)).force,
        {"no torque": (*_BENT, 0, 0), "straight": (*_STRAIGHT, 0.1, 0.2)},
        ("straight",),
    ),
    "estimation.contact_wrench": Hazard(
        lambda x: estimation.contact_wrench(_ARM, x[:2], x[2:], "tool").wrench,
        {"no torque": (*_BENT, 0, 0), "straight": (*_STRAIGHT, 0.1, 0.2)},
        ("straight",),
    ),
    "estimation.observe": Hazard(_of_observer, _REST),
    "estimation.start_observer": Hazard(
        lambda x: estimation.start_observer(_ARM, x[:2], x[2:], jnp.zeros(2), width=_WIDTH), _REST
    ),
    "estimation.external_torques": Hazard(
        _of_samples,
        {"at rest": (*_BENT, *_BENT, 0, 0, 0, 0)},
    ),
    "estimation.observe_payload": Hazard(_of_payload, _REST),
    "estimation.payload_regressor": Hazard(
        lambda x: estimation.payload_regressor(_ARM, x[:2], x[2:], jnp.zeros(2), "tool"), _REST
    ),
    "identification.motor_torques": Hazard(
        lambda x: identification.motor_torques(_ARM, x[:2], x[2:], jnp.zeros(2), _WIDTH), _REST
    ),
    "identification.actuator_regressor": Hazard(
        lambda x: identification.actuator_regressor(_ARM, x, jnp.zeros(2), _WIDTH), {"at rest": (0.0, 0.0)}
    ),
    "identification.energy_regressor": _of_ball(identification.energy_regressor),
    "identification.momentum_regressor": _of_ball(identification.momentum_regressor),
    "identification.torque_regressor": _of_ball(lambda m, q, v: identification.torque_regressor(m, q, v, 0.5 * v)),
    "rby1.impedance.damping_matrix": Hazard(
        lambda x: damping_matrix(x.reshape(2, 2), jnp.array([4.0, 4.0])), {"equal eigenvalues": (1.0, 0, 0, 1.0)}
    ),
    "rby1.impedance.impedance_torque": Hazard(
        lambda x: impedance_torque(_ARM, _COMMAND, x[:2], x[2:], x[:2], jnp.zeros(2)), _REST
    ),
}

# Where another file has the hazards of a function, or all its derivatives against differences.
COVERED = {
    "rb.map_batch": "test_distributed.py::test_a_gradient_keeps_the_arguments_and_not_what_came_between",
    "rb.tiled": "compilation/test_tiled.py::test_second_derivatives",
    "rb.with_geometry": "model/test_edit.py::test_gradient_with_respect_to_lengths",
    "rb.specialize": "model/test_specialize.py::test_derivatives_with_respect_to_the_state",
    "constraints.forward_dynamics": "test_hazards.py::test_second_derivatives_of_redundant_constraints",
    "constraints.simulate": "constraints/test_hard_contact.py::test_gradients_of_rollouts_with_contact",
    "planning.jerk_limited_profile": "planning/test_jerk_limited.py::test_derivatives_are_finite_where_nothing_moves",
    "rby1.impedance.square_root": "rby1/test_impedance.py::test_square_root_has_derivatives_at_equal_eigenvalues",
    "rby1.impedance.rollout": "rby1/test_impedance.py::test_derivatives_with_respect_to_everything",
}

# Sums and products of their arguments, and of poses of links.
SMOOTH = """
rb.subtree_mass rb.total_mass rb.attach rb.attach_payload rb.lock_joints rb.submodel planning.sample_trajectory
constraints.ode_term estimation.start_payload identification.parameters identification.with_parameters
rby1.mobility.mobility_twist rby1.mobility.wheel_velocities rby1.mobility.with_rolling_wheels
rby1.mobility.rolling_constraint rby1.mobility.rolling_motions
""".split()

_EDITS = "armature damping friction gravity inertias joint_parameters limits traversal".split()
_READ = "build_model from_mujoco load_mjcf load_urdf load_urdf_string load_xacro save_urdf to_urdf".split()
_COMPILED = "generate_c execution_plan export_function load_function precompile".split()
_ON_HOST = "calibrate exciting_trajectory fit base_parameters data_from_samples smooth".split()
WITHOUT_DERIVATIVES = {
    **{f"rb.with_{name}": "its arguments" for name in _EDITS},
    **dict.fromkeys(("rb.stack_models", "rb.unstructured"), "its arguments"),
    **{f"rb.{name}": "robots on the host" for name in _READ},
    **{f"rb.{name}": "programs" for name in _COMPILED},
    **dict.fromkeys(("rb.set_compilation_cache", "rb.no_recompile"), "settings"),
    "rb.precision_report": "a report",
    "rb.neutral": "a constant of the robot",
    "rb.random_configuration": "random numbers",
    **{f"identification.{name}": "data and solvers on the host" for name in _ON_HOST},
    **dict.fromkeys(("identification.read_csv", "rb.load_result"), "files"),
    "identification.parameter_names": "names",
    "estimation.touched_body": "an index",
    "rby1.mobility.with_planar_base": "a robot on the host",
    **{f"planning.{name}": "refuses tracers" for name in ("check_trajectory", "optimize_trajectory", "mpc")},
    **{f"planning.{name}": "a search, which stops at a tolerance" for name in ("ilqr", "mppi", "solve_trajectory")},
    "planning.rest_to_rest_basis": "constants of a spline",
}
