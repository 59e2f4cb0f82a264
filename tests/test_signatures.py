"""The shapes written in the signatures are those of the arguments and results, checked by jaxtyping and beartype.

In a process of its own, since the checks are woven in when the package is imported.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.helpers import ROOT

SCRIPT = """
import jax, jax.numpy as jnp
from jaxtyping import install_import_hook

names = "kinematics jacobians inverse_dynamics forward_dynamics mass_matrix coriolis energy external centroidal"
names += " momentum zmp"
checked_modules = [f"rbydyn_jax.algorithms.{name}" for name in names.split()] + ["rbydyn_jax.model.configuration"]
checked_modules += [f"rbydyn_jax.constraints.{name}" for name in "loops dynamics closing contact simulate".split()]
checked_modules += [f"rbydyn_jax.identification.{name}" for name in "regressors parameter_vector".split()]
with install_import_hook(checked_modules, "beartype.beartype"):
    import rbydyn_jax as rb
    from rbydyn_jax import constraints, identification
    from rbydyn_jax.testing import random_tree

model = random_tree(1, n=9)
link, ref = model.link_names[-1], model.link_names[2]
q, key = rb.neutral(model), jax.random.key(0)
v = a = tau = jnp.ones(model.nv)
f_ext, point = jnp.zeros((model.nb, 6)), jnp.zeros(3)
loops = constraints.LoopJoint("revolute", None, link), constraints.LoopJoint("fixed", ref, link)
contacts = (constraints.Contact(link), constraints.Contact(ref, point))
calls = [
    lambda: rb.fk(model, q), lambda: rb.body_poses(model, q), lambda: rb.link_pose(model, q, link, ref),
    lambda: rb.jacobian(model, q, link, ref=ref), lambda: rb.jacobian_dot(model, q, v, link),
    lambda: rb.jacobian_dot_v(model, q, v, link), lambda: rb.hessian(model, q, link),
    lambda: rb.link_velocity(model, q, v, link), lambda: rb.link_acceleration(model, q, v, a, link),
    lambda: rb.point_jacobian(model, q, link, point), lambda: rb.point_hessian(model, q, link, point),
    lambda: rb.quaternion_jacobian(model, q, link), lambda: rb.rnea(model, q, v, a, f_ext),
    lambda: rb.bias_forces(model, q, v), lambda: rb.gravity_forces(model, q),
    lambda: rb.inverse_dynamics_terms(model, q, v, a), lambda: rb.joint_reaction_wrenches(model, q, v, a),
    lambda: rb.coriolis_matrix(model, q, v), lambda: rb.crba(model, q), lambda: rb.mass_matrix_inverse(model, q),
    lambda: rb.aba(model, q, v, tau, f_ext), lambda: rb.kinetic_energy(model, q, v),
    lambda: rb.potential_energy(model, q), lambda: rb.damping_forces(model, v), lambda: rb.friction_forces(model, v),
    lambda: rb.external_wrenches(model, q, {link: jnp.ones(6)}), lambda: rb.total_mass(model),
    lambda: rb.subtree_mass(model, link), lambda: rb.center_of_mass(model, q, links=(link,), ref=ref),
    lambda: rb.com_velocity(model, q, v), lambda: rb.com_acceleration(model, q, v, a),
    lambda: rb.com_jacobian(model, q), lambda: rb.com_hessian(model, q), lambda: rb.momentum(model, q, v),
    lambda: rb.momentum_matrix(model, q), lambda: rb.spatial_inertia(model, q, ref),
    lambda: rb.centroidal_momentum(model, q, v), lambda: rb.centroidal_momentum_matrix(model, q),
    lambda: rb.centroidal_momentum_rate(model, q, v, a), lambda: rb.centroidal_momentum_hessian(model, q),
    lambda: rb.angular_momentum(model, q, v, point), lambda: rb.angular_momentum_jacobian(model, q, point),
    lambda: rb.angular_momentum_hessian(model, q, point), lambda: rb.gravito_inertial_wrench(model, q, v, a, point),
    lambda: rb.net_contact_wrench(model, q, v, a, point), lambda: rb.zmp(model, q, v, a, point),
    lambda: rb.operational_space_inertia(model, q, link, ref), lambda: rb.random_configuration(model, key),
    lambda: rb.integrate(model, q, v), lambda: rb.difference(model, q, q), lambda: rb.normalize(model, q),
    lambda: constraints.forward_dynamics(model, q, v, tau, loops, f_ext), lambda: constraints.simulate(
        model, q, v, 0.1, 0.05, loops=loops, contacts=contacts),
    lambda: constraints.inverse_dynamics(model, q, v, a, loops, (0,), f_ext),
    lambda: constraints.impulse(model, q, v, loops, jnp.ones((2, model.nv))),
    lambda: constraints.close_loops(model, q, loops), lambda: constraints.contact_forces(model, q, v, contacts),
    lambda: constraints.joint_limit_forces(model, q, v),
    lambda: constraints.state_derivative(model, jnp.concatenate([q, v]), tau, loops, f_ext),
    lambda: identification.torque_regressor(model, q, v, a), lambda: identification.actuator_regressor(model, v, a),
    lambda: identification.momentum_regressor(model, q, v), lambda: identification.energy_regressor(model, q, v),
    lambda: identification.motor_torques(model, q, v, a, 0.1),
    lambda: identification.with_parameters(model, identification.parameters(model)),
    lambda: rb.clamp(model, q), lambda: rb.qdot_from_v(model, q, v), lambda: rb.v_from_qdot(model, q, q),
]
for call in calls:
    jax.eval_shape(call)
try:
    rb.neutral("no model")
except Exception as error:
    assert "TypeCheckError" in type(error).__name__, "the checks are not in place"
print("checked", len(calls))
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning")
def test_results_have_the_shapes_of_the_signatures():
    pytest.importorskip("beartype")
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("checked")
