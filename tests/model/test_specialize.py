"""A specialised model is the model to every function, and static data to JAX."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import collision, planning, robots
from tests.algorithms.cases import robot, states
from tests.compilation.support import counted
from tests.helpers import assert_close, normal, untyped


@pytest.fixture(scope="module")
def arm():
    return robots.two_link_arm()


@pytest.mark.slow
def test_dynamics_is_the_same():
    """Massless and motionless parts are constants here, on which XLA:CPU could fold a kernel's parameter away."""
    model = robot("mimic")
    armature = jnp.zeros_like(model.armature).at[-1].set(0.5)
    model = dataclasses.replace(model, armature=armature, inertias=model.inertias.at[2].set(0.0))
    s = jax.tree.map(lambda x: x[0], states("mimic"))

    @jax.jit
    def values(m, s):
        return rb.rnea(m, s.q, s.v, s.a, s.f_ext), rb.crba(m, s.q)

    jax.tree.map(assert_close, values(rb.specialize(model), s), values(model, s))


def control(model):
    return planning.ControlProblem(model, [planning.JointEffort()], [planning.JointVelocity()], dt=0.1, steps=3)


FUNCTIONS = {
    "fk": lambda m, q: rb.fk(m, q),
    "aba": lambda m, q: rb.aba(m, q, q, q),
    "jacobian": lambda m, q: rb.jacobian(m, q, "tool"),
    "center_of_mass": lambda m, q: rb.center_of_mass(m, q),
    "mass": lambda m, q: rb.total_mass(m) + rb.subtree_mass(m, "lower"),
    "energy": lambda m, q: rb.potential_energy(m, q),
    "losses": lambda m, q: rb.friction_forces(m, q) + rb.damping_forces(m, q),
    "limits": lambda m, q: rb.clamp(m, 9.0 * q) + rb.random_configuration(m, jax.random.key(0)),
    "wrenches": lambda m, q: rb.external_wrenches(m, q, {"tool": jnp.ones(6)}),
    "collision": lambda m, q: collision.min_distance(m, q),
    "control": lambda m, q: planning.ilqr(control(m), q, q, iterations=2, tolerance=0.0).taus,
    "sampled control": lambda m, q: planning.mppi(control(m), q, q, key=jax.random.key(0), samples=8).taus,
    "predictive control": lambda m, q: planning.mpc(control(m))(np.asarray(q), np.asarray(q)),
}


@pytest.mark.slow
@pytest.mark.parametrize("which", FUNCTIONS)
def test_functions_take_it_for_the_model(arm, which):
    q = normal(0, 2)
    assert_close(FUNCTIONS[which](rb.specialize(arm), q), FUNCTIONS[which](arm, q), kind="solve")


@pytest.mark.ci
def test_batches_and_attributes(arm):
    special, q = rb.specialize(arm), normal(0, 5, 2)
    assert_close(jax.vmap(rb.fk, (None, 0))(special, q), jax.vmap(rb.fk, (None, 0))(arm, q))
    assert special.nv == 2 and special.link_index("tool") == arm.link_index("tool")
    assert_close(special.joint_placements, arm.joint_placements)
    assert repr(special) == "SpecializedModel('two_link_arm', nq=2, nv=2, joints=2, links=4)"


@pytest.mark.slow
def test_derivatives_with_respect_to_the_state(arm):
    def loss(model, q):
        return (rb.rnea(model, q, q, q) ** 2).sum()

    q = normal(0, 2)
    assert_close(jax.grad(loss, 1)(rb.specialize(arm), q), jax.grad(loss, 1)(arm, q), kind="solve")
    assert jax.tree.leaves(jax.grad(loss)(rb.specialize(arm), q)) == []


@pytest.mark.ci
def test_there_is_nothing_to_pass_and_equal_numbers_share_a_compilation(arm):
    q = jnp.zeros(2)
    special, again = rb.specialize(arm), rb.specialize(robots.two_link_arm())
    other = rb.specialize(rb.attach_payload(arm, "tool", 1.0))
    assert jax.tree.leaves(special) == []
    assert special == again == rb.specialize(special) and hash(special) == hash(again)
    assert special != other and special != arm
    copies = (again, pickle.loads(pickle.dumps(special)), copy.deepcopy(special))
    rb.gravity_forces(special, q)
    with counted() as counts:
        for one in copies:
            rb.gravity_forces(one, q)
        assert not counts
        rb.gravity_forces(other, q)
        assert counts["backend_compile"] == 1


def test_edits_make_an_ordinary_model(arm):
    special, moon = rb.specialize(arm), jnp.array([0.0, 0.0, -1.62])
    for edit in (
        lambda m: rb.with_gravity(m, moon),
        lambda m: rb.with_limits(m, effort_limit=jnp.ones(2)),
        lambda m: rb.with_inertias(m, {"upper": jnp.arange(10.0)}),
        lambda m: rb.attach_payload(m, "tool", 1.0),
        lambda m: rb.with_geometry(m, joint_axes=jnp.array([[0.0, 1, 0], [0, 1, 0]])),
        rb.unstructured,
        lambda m: rb.lock_joints(m, {"elbow": 0.3}),
        lambda m: rb.stack_models([m, m]),
    ):
        got, want = edit(special), edit(arm)
        assert isinstance(got, rb.Model) and got.tree == want.tree
        chex.assert_trees_all_equal(got, want)


def test_what_cannot_be_specialised(arm):
    with pytest.raises(rb.DtypeError, match="outside of jit"):
        jax.jit(lambda m: rb.fk(rb.specialize(m), jnp.zeros(2)))(arm)
    with pytest.raises(rb.DtypeError, match="must be a Model"):
        untyped(rb.specialize)("two_link_arm")
    with pytest.raises(rb.ShapeError, match="batch of 2 models"):
        rb.specialize(rb.stack_models([arm, arm]))
