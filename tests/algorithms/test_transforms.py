"""What JAX's transformations must leave true: values, derivatives, errors, and how often one compiles."""

from __future__ import annotations

import dataclasses

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax.sweeps import plan
from tests.helpers import X64, assert_close, normal, slow, untyped

from .cases import robot, run, states, tips

NAMES = ("every_type", "few_types", "mimic", "short")
LINK = {name: tips(name)[0] for name in NAMES}

# Every algorithm as a function of (model, link, states); q, v, a, tau, f_ext are arguments 2 to 6.
ALGORITHMS = {
    "fk": lambda m, k, q, v, a, t, f: rb.fk(m, q),
    "link_pose": lambda m, k, q, v, a, t, f: rb.link_pose(m, q, k),
    "jacobian": lambda m, k, q, v, a, t, f: rb.jacobian(m, q, k),
    "jacobian_dot": lambda m, k, q, v, a, t, f: rb.jacobian_dot(m, q, v, k),
    "jacobian_dot_v": lambda m, k, q, v, a, t, f: rb.jacobian_dot_v(m, q, v, k),
    "hessian": lambda m, k, q, v, a, t, f: rb.hessian(m, q, k),
    "point_jacobian": lambda m, k, q, v, a, t, f: rb.point_jacobian(m, q, k, v[:3]),
    "quaternion_jacobian": lambda m, k, q, v, a, t, f: rb.quaternion_jacobian(m, q, k),
    "link_velocity": lambda m, k, q, v, a, t, f: rb.link_velocity(m, q, v, k),
    "link_acceleration": lambda m, k, q, v, a, t, f: rb.link_acceleration(m, q, v, a, k),
    "rnea": lambda m, k, q, v, a, t, f: rb.rnea(m, q, v, a, f),
    "bias_forces": lambda m, k, q, v, a, t, f: rb.bias_forces(m, q, v),
    "gravity_forces": lambda m, k, q, v, a, t, f: rb.gravity_forces(m, q),
    "coriolis_matrix": lambda m, k, q, v, a, t, f: rb.coriolis_matrix(m, q, v),
    "crba": lambda m, k, q, v, a, t, f: rb.crba(m, q),
    "mass_matrix_inverse": lambda m, k, q, v, a, t, f: rb.mass_matrix_inverse(m, q),
    "aba": lambda m, k, q, v, a, t, f: rb.aba(m, q, v, t, f),
    "kinetic_energy": lambda m, k, q, v, a, t, f: rb.kinetic_energy(m, q, v),
    "potential_energy": lambda m, k, q, v, a, t, f: rb.potential_energy(m, q),
    "joint_reaction_wrenches": lambda m, k, q, v, a, t, f: rb.joint_reaction_wrenches(m, q, v, a, f),
    "center_of_mass": lambda m, k, q, v, a, t, f: rb.center_of_mass(m, q),
    "com_acceleration": lambda m, k, q, v, a, t, f: rb.com_acceleration(m, q, v, a),
    "momentum_matrix": lambda m, k, q, v, a, t, f: rb.momentum_matrix(m, q),
    "spatial_inertia": lambda m, k, q, v, a, t, f: rb.spatial_inertia(m, q, k),
    "integrate": lambda m, k, q, v, a, t, f: rb.integrate(m, q, v),
    "difference": lambda m, k, q, v, a, t, f: rb.difference(m, q, rb.integrate(m, q, v)),
    "qdot_from_v": lambda m, k, q, v, a, t, f: rb.qdot_from_v(m, q, v),
}
# The others are derivatives themselves, or sums of these.
DIFFERENTIATED = [a for a in ALGORITHMS if a not in ("link_pose", "jacobian_dot", "hessian", "bias_forces")]
# Sums and products of others: how they depend on each type of joint, the others show.
COMPOSED = (
    "com_acceleration",
    "jacobian_dot_v",
    "kinetic_energy",
    "link_acceleration",
    "link_velocity",
    "point_jacobian",
    "quaternion_jacobian",
    "spatial_inertia",
)
SOLVES = ("aba", "mass_matrix_inverse")
core_algorithm = pytest.mark.parametrize("algorithm", ["fk", *slow("jacobian", "rnea", "crba", "aba")])


def _kind(algorithm):
    return "solve" if algorithm in SOLVES else "value"


def _function(algorithm, name):
    return lambda *s: ALGORITHMS[algorithm](robot(name), LINK[name], *s)


@pytest.mark.slow
@core_algorithm
def test_other_and_nested_batch_axes(algorithm):
    f, s = _function(algorithm, "short"), states("short", 6)
    want, kind = run(f, *s), _kind(algorithm)
    last = tuple(jnp.moveaxis(x, 0, -1) for x in s)
    got = jax.jit(jax.vmap(f, in_axes=-1, out_axes=1))(*last)
    assert_close(jnp.moveaxis(got, 1, 0), want, kind=kind)
    blocks = tuple(x.reshape(2, 3, *x.shape[1:]) for x in s)
    assert_close(jax.jit(jax.vmap(jax.vmap(f)))(*blocks).reshape(want.shape), want, kind=kind)
    # Only the configuration is a batch; and the velocities alone.
    q_only = jax.jit(jax.vmap(f, in_axes=(0, None, None, None, None)))(s.q, *(x[0] for x in s[1:]))
    assert_close(q_only[0], want[0], kind=kind)
    v_only = jax.jit(jax.vmap(f, in_axes=(None, 0, 0, 0, 0)))(s.q[0], *s[1:])
    assert_close(v_only[0], want[0], kind=kind)


@core_algorithm
def test_a_batch_of_models(algorithm):
    """stack_models makes robots of one topology a batch like any other."""
    model, s = robot("short"), states("short", 3)
    models = [dataclasses.replace(model, inertias=model.inertias * (1.0 + 0.1 * k)) for k in range(3)]
    f = lambda m, *x: ALGORITHMS[algorithm](m, LINK["short"], *x)  # noqa: E731
    got = jax.jit(jax.vmap(f))(rb.stack_models(models), *s)
    for k, one in enumerate(models):
        assert_close(got[k], f(one, *(x[k] for x in s)), kind=_kind(algorithm))


@pytest.mark.slow
@pytest.mark.skipif(not X64, reason="finite differences need float64")
@pytest.mark.parametrize("algorithm", ["fk", "rnea", *slow(*(a for a in DIFFERENTIATED if a not in ("fk", "rnea")))])
def test_derivatives(algorithm):
    """Forward = central differences along a random direction of all arguments; reverse is the transpose of forward."""
    name = "short" if algorithm in COMPOSED else "few_types"
    f, s = _function(algorithm, name), states(name, 2, seed=9)
    row, directions = (tuple(x[k] for x in s) for k in (0, 1))
    cotangent = normal(3, *jax.eval_shape(f, *row).shape)
    both = jax.jit(lambda *x: (jax.jvp(f, x, directions)[1], jax.vjp(f, *x)[1](cotangent)))
    slope, gradient = both(*row)
    terms = [np.sum(g * d) for g, d in zip(gradient, directions, strict=True)]
    forward = np.sum(cotangent * slope)
    assert_close(sum(terms), forward, kind="solve", scale=float(np.abs(np.stack([*terms, forward])).max()))
    step = 1e-4
    ends = [f(*(x + h * step * d for x, d in zip(row, directions, strict=True))) for h in (1, -1, 2, -2)]
    want = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * step)  # of fourth order
    assert_close(slope, want, kind="difference")


@pytest.mark.skipif(not X64, reason="finite differences need float64")
@pytest.mark.parametrize("algorithm", slow("fk", "crba"))  # the others: `test_hessians_equal_...` of the rules
def test_second_derivatives(algorithm):
    """Forward over reverse = reverse over reverse = central differences of the gradient."""
    f, s = _function(algorithm, "short"), states("short", 2, seed=9)
    scalar = lambda q: jnp.sum(jnp.sin(f(q, *(x[0] for x in s[1:]))))  # noqa: E731
    gradient = jax.grad(scalar)
    q, direction = s.q[0], s.v[0]
    slope, forward, reverse = jax.jit(lambda q: (gradient(q), jax.jacfwd(gradient)(q), jax.jacrev(gradient)(q)))(q)
    assert np.abs(slope).max() > 0
    assert_close(reverse, forward, kind="solve")
    step, compiled = 1e-6, jax.jit(gradient)
    ends = [compiled(q + h * direction) for h in (step, -step)]
    assert_close(forward @ direction, (ends[0] - ends[1]) / (2 * step), kind="difference")


LEAVES = {
    "fk": ("geometry", "mimic_multipliers", "mimic_offsets"),
    "rnea": ("geometry", "inertias", "armature", "gravity", "mimic_multipliers", "mimic_offsets"),
    "crba": ("geometry", "inertias", "armature", "mimic_multipliers", "mimic_offsets"),
    "aba": ("geometry", "inertias", "armature", "gravity", "mimic_multipliers", "mimic_offsets"),
    "center_of_mass": ("geometry", "inertias", "welded_inertias", "mimic_multipliers", "mimic_offsets"),
}


@pytest.mark.slow
@pytest.mark.skipif(not X64, reason="finite differences need float64")
@pytest.mark.parametrize("algorithm", ["fk", *slow(*(a for a in LEAVES if a != "fk"))])
def test_gradients_with_respect_to_every_leaf(algorithm):
    """Each leaf that matters has a slope, equal to the finite difference, and a leaf that does not has none."""
    model, s = robot("short"), states("short", 2)
    row = tuple(x[0] for x in s)
    weights = None

    def scalar(m):
        nonlocal weights
        y = ALGORITHMS[algorithm](m, LINK["short"], *row)
        weights = np.cos(np.arange(y.size)).reshape(y.shape)
        return jnp.sum(weights * y)

    value, slopes = jax.jit(scalar), jax.jit(jax.grad(scalar))(model)
    rng = np.random.default_rng(0)
    leaves, structure = jax.tree.flatten_with_path(model)
    for k, ((path, leaf), slope) in enumerate(zip(leaves, map(np.asarray, jax.tree.leaves(slopes)), strict=True)):
        name = jax.tree_util.keystr(path).removeprefix(".")
        if name not in LEAVES[algorithm]:
            assert not slope.any(), f"{algorithm} should not depend on {name}"
            continue
        assert np.isfinite(slope).all()
        direction = rng.normal(size=leaf.shape)
        step = 1e-6
        others = [[x + h * direction if i == k else x for i, (_, x) in enumerate(leaves)] for h in (step, -step)]
        ends = [value(jax.tree.unflatten(structure, changed)) for changed in others]
        assert slope.any(), f"{algorithm} should depend on {name}"
        assert_close(
            np.sum(slope * direction), (ends[0] - ends[1]) / (2 * step), 1e-6, scale=float(np.abs(slope).sum())
        )


@pytest.mark.ci
@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if a not in ("integrate", "difference")])
def test_wrong_shape_is_named(algorithm):
    name = "every_type"
    row = [x[0] for x in states(name, 2)]
    row[0] = row[0][:-1]
    with pytest.raises(rb.ShapeError, match=rf"^q .*{robot(name).nq}.*got .*{robot(name).nq - 1}"):
        ALGORITHMS[algorithm](robot(name), LINK[name], *row)


@pytest.mark.parametrize("path", ["unrolled", "arrays"])
def test_a_robot_without_joints_has_poses_and_masses(path, monkeypatch):
    if path == "arrays":
        monkeypatch.setattr(plan, "UNROLLED_LIMIT", -1)
    tower = rb.RobotBuilder("tower").link("base", 1.0).link("top", 2.0).fixed("mount", "base", "top", xyz=(0, 0, 3))
    model = rb.build_model(tower.build_description(), dtype=jnp.float32)
    q, f_ext = jnp.zeros(0, jnp.float32), jnp.zeros((0, 6), jnp.float32)
    call = lambda f, *x: jax.jit(f.__wrapped__)(model, *x)  # noqa: E731
    assert call(rb.fk, q)[:, 2, 3].tolist() == [0.0, 3.0]
    assert call(rb.center_of_mass, q).tolist() == [0.0, 0.0, 2.0]
    assert call(rb.crba, q).shape == call(rb.coriolis_matrix, q, q).shape == (0, 0)
    assert call(rb.rnea, q, q, q, f_ext).shape == call(rb.aba, q, q, q, f_ext).shape == (0,)
    assert call(rb.momentum_matrix, q).shape == (6, 0)
    assert call(rb.joint_reaction_wrenches, q, q, q).shape == (0, 6)


def test_a_batch_of_models_without_vmap_is_told_of_vmap():
    stacked = rb.stack_models([robot("mimic"), robot("mimic")])
    for call in (rb.total_mass, rb.neutral, lambda m: rb.damping_forces(m, jnp.zeros(m.nv))):
        with pytest.raises(rb.ShapeError, match=r"batch of 2 models; use jax\.vmap"):
            call(stacked)
    with pytest.raises(rb.ShapeError, match=r"model\.gravity must have shape \(3,\), got \(2,\)"):
        rb.fk(dataclasses.replace(robot("mimic"), gravity=jnp.zeros(2)), states("mimic").q[0])


def test_what_is_no_argument_at_all_is_named():
    model, q = robot("mimic"), states("mimic").q[0]
    with pytest.raises(rb.DtypeError, match=r"model must be a Model, got str; load_urdf"):
        untyped(rb.fk)("robot.urdf", q)
    with pytest.raises(rb.DtypeError, match=r"q must be an array of floats, got str"):
        untyped(rb.fk)(model, "home")
    with pytest.raises(rb.DtypeError, match=r"dv must be an array of floats, got"):
        untyped(rb.integrate)(model, q, np.array([None] * model.nv))
    with pytest.raises(TypeError, match="positional"):
        untyped(rb.jacobian)(model, q, LINK["mimic"], LINK["mimic"])


def test_a_list_of_links_is_refused_by_name():
    model, q = robot("mimic"), states("mimic").q[0]
    with pytest.raises(rb.DtypeError, match=r"links must be hashable: .*tuple.*, got list"):
        rb.center_of_mass(model, q, links=[LINK["mimic"]])
    with pytest.raises(rb.DtypeError, match=r"link must be hashable: a name.*, got list"):
        untyped(rb.jacobian)(model, q, [LINK["mimic"]])


def test_a_batch_without_vmap_is_told_of_vmap():
    with pytest.raises(rb.ShapeError, match="vmap"):
        rb.fk(robot("mimic"), states("mimic").q)


@pytest.mark.parametrize("wrong", [[0.0] * 6, (0.0,) * 6, "q", None, np.zeros(6, int), np.zeros(6, complex)])
def test_wrong_type_is_named(wrong):
    with pytest.raises((rb.DtypeError, TypeError), match="q"):
        rb.fk(robot("mimic"), wrong)


def test_wrong_model_is_named():
    with pytest.raises((rb.RbydynError, TypeError), match=r"[Mm]odel"):
        untyped(rb.rnea)("robot.urdf", jnp.zeros(2), jnp.zeros(2), jnp.zeros(2))


def test_misspelt_link_offers_the_closest():
    with pytest.raises(rb.NameNotFoundError, match="'ee_right'"):
        rb.jacobian(robot("rby1a"), states("rby1a").q[0], "ee_rigth")
    with pytest.raises(rb.NameNotFoundError):
        rb.link_pose(robot("rby1a"), states("rby1a").q[0], 10_000)


def test_unknown_frame_is_named():
    with pytest.raises(rb.ArgumentError, match="world_aligned"):
        untyped(rb.jacobian)(robot("mimic"), states("mimic").q[0], LINK["mimic"], frame="body")


@pytest.mark.slow
def test_equal_loads_trace_once_and_a_changed_number_traces_nothing():
    @jax.jit
    @chex.assert_max_traces(n=1)
    def torque(model, q):
        return rb.rnea(model, q, jnp.zeros_like(q), jnp.zeros_like(q))

    text = rb.to_urdf(robot("chain"))
    q = states("chain").q[0]
    one, two = rb.load_urdf_string(text), rb.load_urdf_string(text)
    assert one is not two and one.tree == two.tree and hash(one.tree) == hash(two.tree)
    want = torque(one, q)
    assert_close(torque(two, q), want)
    heavier = dataclasses.replace(one, inertias=2.0 * one.inertias)
    assert_close(torque(heavier, q), 2.0 * want)  # armature does not matter at rest
    leaves, structure = jax.tree.flatten(one)
    for k in range(len(leaves)):
        torque(jax.tree.unflatten(structure, [1.01 * x if i == k else x for i, x in enumerate(leaves)]), q)


def test_another_topology_traces_again():
    @jax.jit
    @chex.assert_max_traces(n=1)
    def height(model):
        return rb.center_of_mass(model, rb.neutral(model))[2]

    assert np.isfinite(height(robot("mimic")))
    with pytest.raises(AssertionError, match="traced > 1 times"):
        height(robot("chain"))


@pytest.mark.ci
def test_a_model_survives_flattening():
    model, q = robot("rby1a"), states("rby1a").q[0]
    leaves, structure = jax.tree.flatten(model)
    assert all(isinstance(leaf, jax.Array) for leaf in leaves)
    assert_close(rb.crba(jax.tree.unflatten(structure, leaves), q), rb.crba(model, q))
