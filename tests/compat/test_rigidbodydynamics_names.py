"""Every name of RigidBodyDynamics.jl is on our page, or missing for a reason; what the page names exists here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.joints import JOINT_TYPES

PAGE = (Path(__file__).parents[2] / "docs" / "rigidbodydynamics.md").read_text()
QUOTED = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", PAGE, flags=re.S))

# The index of its page *Algorithms*.
ALGORITHMS = """
    DynamicsResult _point_jacobian! center_of_mass default_constraint_stabilization_gains dynamics! dynamics_bias
    dynamics_bias! geometric_jacobian geometric_jacobian! inverse_dynamics inverse_dynamics! mass mass_matrix
    mass_matrix! momentum_matrix momentum_matrix! point_jacobian point_jacobian! subtree_mass
""".split()
# All forms of those with several.
FORMS = (
    "center_of_mass(state)",
    "center_of_mass(state, bodies)",
    "dynamics!(result, state)",
    "dynamics!(result, state, torques)",
    "dynamics!(result, state, torques, externalwrenches)",
    "dynamics!(result, state, torques, externalwrenches; stabilization_gains)",
    "dynamics!(xdot, result, state, x, torques, externalwrenches)",
    "dynamics_bias(state, externalwrenches)",
    "geometric_jacobian!(jac, state, path, transformfun)",
    "geometric_jacobian!(out, state, path)",
    "geometric_jacobian!(out, state, path, root_to_desired)",
    "inverse_dynamics(state, vd, externalwrenches)",
    "momentum_matrix!(mat, state)",
    "momentum_matrix!(mat, state, root_to_desired)",
    "momentum_matrix!(mat, state, transformfun)",
)
# What its modules export besides.
EXPORTED = """
    RigidBody Joint JointType Mechanism MechanismState StateCache DynamicsResultCache SegmentedVectorCache WrenchesCache
    QuaternionFloating SPQuatFloating Revolute Prismatic Fixed Planar QuaternionSpherical SinCosRevolute
    has_defined_inertia default_frame frame_before frame_after joint_type add_frame! root_frame root_body
    non_root_bodies isroot bodies path joints tree_joints non_tree_joints successor predecessor in_joints out_joints
    joints_to_children joint_to_parent num_bodies num_positions num_velocities num_additional_states num_constraints
    isfloating configuration_range velocity_range has_fixed_subspaces spatial_inertia! add_body_fixed_frame!
    fixed_transform findbody findjoint body_fixed_frame_to_body position_bounds velocity_bounds effort_bounds
    rand_chain_mechanism rand_tree_mechanism rand_floating_tree_mechanism attach! remove_joint! replace_joint!
    maximal_coordinates submechanism remove_fixed_tree_joints! remove_subtree! contact_points add_contact_point!
    add_environment_primitive! local_coordinates! global_coordinates! configuration_derivative!
    configuration_derivative velocity_to_configuration_derivative! configuration_derivative_to_velocity!
    configuration_derivative_to_velocity_adjoint! configuration velocity additional_state joint_transform
    motion_subspace constraint_wrench_subspace bias_acceleration spatial_inertia crb_inertia twist_wrt_world
    relative_twist transform_to_root relative_transform setdirty! rand_configuration! zero_configuration! rand_velocity!
    zero_velocity! set_configuration! set_velocity! set_additional_state! zero! normalize_configuration!
    principal_value! point_velocity point_acceleration relative_acceleration kinetic_energy
    gravitational_potential_energy spatial_accelerations! momentum momentum_rate_bias simulate SegmentedVector JointDict
    BodyDict JointID BodyID segments default_urdf_joint_types parse_urdf write_urdf CartesianFrame3D Transform3D
    FreeVector3D Point3D GeometricJacobian PointJacobian Twist SpatialAcceleration MomentumMatrix WrenchMatrix Momentum
    Wrench SpatialInertia transform rotation translation angular linear change_base log_with_time_derivative
    newton_euler torque torque! rotation_vector_rate quaternion_derivative spquat_derivative angular_velocity_in_body
    velocity_jacobian linearized_rodrigues_vec
""".split()
# Why a name is not on the page.
STATE = "there is no object of the state: q and v are arguments"
FRAMES = "arrays carry no frame: the argument `frame` states it"
GRAPH = "joints and links are found by name"
CONTAINER = "arrays take its place"
EXCUSED = {
    **dict.fromkeys("StateCache DynamicsResultCache SegmentedVectorCache WrenchesCache setdirty! zero!".split(), STATE),
    **dict.fromkeys("configuration velocity additional_state set_configuration! set_velocity!".split(), STATE),
    **dict.fromkeys("set_additional_state! rand_velocity! zero_velocity! num_additional_states".split(), STATE),
    **dict.fromkeys("default_frame frame_before frame_after add_frame! root_frame fixed_transform".split(), FRAMES),
    **dict.fromkeys("add_body_fixed_frame! body_fixed_frame_to_body CartesianFrame3D change_base".split(), FRAMES),
    **dict.fromkeys("root_body non_root_bodies isroot non_tree_joints successor predecessor in_joints".split(), GRAPH),
    **dict.fromkeys("out_joints joints_to_children joint_to_parent joint_type isfloating".split(), GRAPH),
    **dict.fromkeys("SegmentedVector JointDict BodyDict BodyID segments SpatialInertia".split(), CONTAINER),
    **dict.fromkeys(
        "FreeVector3D Point3D GeometricJacobian PointJacobian MomentumMatrix WrenchMatrix".split(), CONTAINER
    ),
    "JointType": "kinds of joints are named by strings",
    "default_urdf_joint_types": "kinds of joints are named by strings",
    "has_defined_inertia": "a link without inertia has zeros",
    "has_fixed_subspaces": "true of every type of joint here",
    "num_constraints": "the number of rows of the constraint Jacobian",
    "maximal_coordinates": "an oracle of its tests",
    "torque!": "the form in place of `torque`",
    "configuration_derivative!": "the form in place of `configuration_derivative`",
    "velocity_jacobian": "the Jacobians of rotations are `jax.jacfwd`",
    "log_with_time_derivative": "`jax.jvp` of `spatial.se3.log`",
    **dict.fromkeys(
        "rotation_vector_rate quaternion_derivative spquat_derivative angular_velocity_in_body".split(),
        "of parametrizations of one joint: `qdot_from_v` and `v_from_qdot`",
    ),
    "linearized_rodrigues_vec": "the error of a loop's rotation is its angle",
}


def on_the_page(name: str) -> bool:
    word = re.compile(rf"(?<![\w!]){re.escape(name)}(?![\w!])")
    return any(word.search(text) for text in QUOTED)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_algorithms(name: str):
    assert on_the_page(name)


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str):
    assert form in QUOTED


@pytest.mark.parametrize("name", EXPORTED)
def test_exported(name: str):
    assert on_the_page(name) != (name in EXCUSED)  # a name that is there needs no excuse


def test_excuses_are_of_exported_names():
    assert set(EXCUSED) <= set(EXPORTED)


def counterparts() -> Iterator[str]:
    """What the table *Other names* has in its second column: functions and attributes of a model."""
    for row in PAGE.partition("## Other names")[2].splitlines():
        if row.startswith("| `"):
            for text in re.findall(r"`([^`]+)`", row.split("|")[2]):
                yield re.split(r"[(\[]", text)[0]


@pytest.mark.parametrize("name", sorted(set(counterparts()) - {"", "T", "frame=", "ref="}))
def test_counterparts_exist(name: str):
    if name.startswith('"'):
        assert name.strip('"') in JOINT_TYPES
        return
    scopes = {"model": robots.two_link_arm(), "jax": jax}
    first, *rest = name.split(".")
    owners = [scopes[first]] if first in scopes else [rb, rb.constraints]
    path = rest if first in scopes else [first, *rest]
    assert any(_has(owner, path) for owner in owners) or f"def {name}(" in PAGE


def _has(owner: object, path: list[str]) -> bool:
    for part in path:
        if not hasattr(owner, part):
            return False
        owner = getattr(owner, part)
    return True
