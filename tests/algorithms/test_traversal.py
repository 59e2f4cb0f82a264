"""The two traversals agree, each step is one kernel on a CPU, and a chain's program does not grow with its length."""

from __future__ import annotations

import dataclasses
import re

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax.algorithms import (
    aba,
    centroidal,
    coriolis,
    crba,
    derivatives,
    first_moment,
    inertial_wrench,
    jacobians,
    kinematics,
    momentum_columns,
    momentum_hessian,
    operational_space,
    rnea,
)
from rbydyn_jax.identification import regressors
from rbydyn_jax.spatial.algebra import IDENTITY
from rbydyn_jax.sweeps import plan
from rbydyn_jax.sweeps.scanned import ScannedSweep
from rbydyn_jax.sweeps.schedule import group_runs, groups, one_by_one
from rbydyn_jax.sweeps.unrolled import UnrolledSweep
from rbydyn_jax.testing import random_tree
from rbydyn_jax.xla import fusion
from rbydyn_jax.xla.layout import batch_last, join
from rbydyn_jax.xla.structural import MINUS_ONE, ONE, ZERO
from rbydyn_jax.xla.trigonometry import sincos
from rbydyn_jax.xla.tuning import fusions_available, late_barriers
from tests.algorithms.cases import robot, states, tips
from tests.helpers import X64, arithmetic_in, assert_close, compiled_text, normal, slow

ALGORITHMS = {
    "fk": lambda run, s, link: run.link_poses(
        run.outward(kinematics.body_pose_step, IDENTITY), range(len(run.tree.link_names))
    ).whole(),
    "moved_poses": lambda run, s, link: kinematics._push_forward(
        kinematics._all, run, rb.fk(run.model, s.q), s.v
    ).whole(),
    "moved_bodies": lambda run, s, link: kinematics._push_forward(
        kinematics._principal, run, rb.body_poses(run.model, s.q), s.v
    ).whole(),
    "pulled_back_poses": lambda run, s, link: kinematics._pull_back(
        kinematics._all, run, jnp.sin(3.0 * rb.fk(run.model, s.q))
    ),
    "pulled_back_bodies": lambda run, s, link: kinematics._pull_back(
        kinematics._principal, run, jnp.sin(3.0 * rb.body_poses(run.model, s.q))
    ),
    "jacobian": lambda run, s, link: jacobians._jacobian(run, link[0], link[1], "local"),
    "rnea": lambda run, s, link: rnea._rnea(run, s.v, s.a, s.f_ext),
    "gravity": lambda run, s, link: rnea._rnea(run, None, None, None),
    "crba": lambda run, s, link: crba._crba(run),
    "crba_rate": lambda run, s, link: crba._rate(run, s.v),
    "crba_gradient": lambda run, s, link: crba._gradient(run, jnp.outer(s.v, s.a)),
    "coriolis": lambda run, s, link: coriolis._coriolis(run, s.v),
    "momentum_matrix": lambda run, s, link: momentum_columns._columns(run),
    "momentum_gradient": lambda run, s, link: momentum_columns._gradient(run, jnp.outer(s.f_ext[0], s.v)),
    "first_moment": lambda run, s, link: first_moment._sum(run),
    "inertial_wrench": lambda run, s, link: inertial_wrench._taken(run, s.v, s.a),
    "composite_inertia": lambda run, s, link: operational_space._composite(run, rb.fk(run.model, s.q)[link[0]]),
    "mobility": lambda run, s, link: operational_space._by_wrenches(run, *link),
    "all_columns": lambda run, s, link: jacobians.all_columns(run, link[0], link[1], "local"),
    "turns_and_moments": lambda run, s, link: jnp.stack(centroidal._turns_and_moments(run)),
    "momentum_changes": lambda run, s, link: momentum_hessian._changes(run, s.f_ext[0, :3]),
    "aba": lambda run, s, link: aba._aba(run, s.tau, s.v, s.f_ext, gravity=True),
    "rnea_gradient": lambda run, s, link: jnp.concatenate(rnea.adjoint(("q", "v", "a"), run, s.v, s.a, s.f_ext, s.tau)),
    "torque_regressor": lambda run, s, link: jnp.concatenate(regressors._motions_and_wrenches(run, s.v, s.a), axis=1),
    "aba_derivatives": lambda run, s, link: jnp.stack(derivatives._forward_matrices(run, s.v, s.tau, s.f_ext)),
    "rnea_derivatives": lambda run, s, link: jnp.stack(derivatives._matrices(("q", "v", "a"), run, s.v, s.a, s.f_ext)),
}


FORMS = ("unrolled", "scanned")
EVERY = ("fk", "jacobian", "rnea", "crba", "aba", "rnea_gradient")
MIMIC = (
    *("fk", "moved_poses", "pulled_back_poses", "rnea", "crba", "crba_rate", "crba_gradient", "momentum_gradient"),
    *("coriolis", "rnea_derivatives", "all_columns", "momentum_changes"),
)


def unrolled(model, q):
    return UnrolledSweep(model, q, one_by_one(model.tree, model.tree.order))


def scanned(model, q):
    return ScannedSweep(model, q, group_runs(model.tree, model.tree.order))


def side_by_side(model, q):
    return UnrolledSweep(model, q, groups(model.tree))


@pytest.mark.slow
@pytest.mark.float32
@pytest.mark.parametrize("name, algorithm", [*(("hands", a) for a in ALGORITHMS), *(("every_type", a) for a in EVERY)])
def test_all_traversals_agree(algorithm, name):
    model, batch = robot(name), jax.tree.map(lambda x: x[:8], states(name))
    link = tuple(model.link_index(k) for k in tips(name))

    def by(traversal):
        return jax.jit(jax.vmap(lambda s: ALGORITHMS[algorithm](traversal(model, s.q), s, link)))(batch)

    want, kind = by(scanned), "solve" if algorithm.startswith("aba") else "value"
    if name == "hands":  # no limbs of the other one are alike
        assert_close(by(side_by_side), want, kind=kind)
    if name == "every_type" or algorithm not in EVERY:  # one tree each suffices for bodies one by one
        assert_close(by(unrolled), want, kind=kind)


@pytest.mark.ci
def test_scanned_sweeps_are_differentiated_along_a_batch_of_directions():
    """The directions are lanes of their own, the configuration is the same in all of them."""
    model = random_tree(2, ("revolute", "prismatic"), n=3)
    q, link = normal(1, model.nv), model.link_names[-1]
    both = (jax.jacfwd(lambda q, m=m: rb.jacobian(m, q, link))(q) for m in (rb.with_traversal(model, "scanned"), model))
    assert_close(*both)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, algorithm", [*(("mimic", a) for a in MIMIC), ("chain", "fk"), ("chain", "rnea_gradient")]
)
def test_both_traversals_agree_with_mimic_joints_and_in_mixed_runs(algorithm, name):
    model, batch = robot(name), jax.tree.map(lambda x: x[:8], states(name))
    link = tuple(model.link_index(k) for k in tips(name))

    def by(traversal):
        return jax.jit(jax.vmap(lambda s: ALGORITHMS[algorithm](traversal(model, s.q), s, link)))(batch)

    assert all(len(group.bodies) == 1 for group in groups(model.tree))  # so that side by side is one by one
    assert_close(by(unrolled), by(scanned))


@pytest.mark.ci
@pytest.mark.parametrize("name", ["hands", "every_type"])
def test_a_scan_of_the_bodies_that_carry_two_links_is_enough(name):
    model, batch = robot(name), jax.tree.map(lambda x: x[:8], states(name))
    link = tuple(model.link_index(k) for k in tips(name))
    runs = group_runs(model.tree, model.tree.paths(model.tree.link_bodies[k] for k in link))
    assert sum(g.bodies.size for g in runs) < model.nb

    def by(traversal):
        return jax.jit(jax.vmap(lambda s: ALGORITHMS["jacobian"](traversal(model, s.q), s, link)))(batch)

    assert_close(by(lambda model, q: ScannedSweep(model, q, runs)), by(unrolled))


def test_runs_cover_every_body_once_and_join_the_two_arms():
    tree = robot("rby1a").tree
    runs = group_runs(tree, tree.order)
    bodies = sorted(int(i) for g in runs for i in g.bodies.reshape(-1))
    assert bodies == list(range(tree.nb))
    assert any(g.bodies.shape == (7, 2) for g in runs)


@pytest.mark.parametrize("name", ["every_type", "hands", "rby1a", "anymal"])
def test_bodies_side_by_side_are_alike_and_stand_on_one_group(name):
    tree = robot(name).tree
    found = groups(tree)
    assert sorted(i for group in found for i in group.bodies) == list(range(tree.nb))
    for number, group in enumerate(found):
        assert len({tree.joint_types[i] for i in group.bodies}) == 1
        for patterns in (tree.axis_pattern, tree.placement_pattern):
            assert len({tuple(min(k, 0) for k in patterns[i]) for i in group.bodies}) == 1
        assert group.parent < number
        carriers = (-1,) if group.parent < 0 else found[group.parent].bodies
        assert [tree.parents[i] for i in group.bodies] == [carriers[lane] for lane in group.lanes]
        assert len(carriers) == 1 or len(set(group.lanes)) == len(group.lanes)


def test_limbs_that_stand_side_by_side():
    def bodies(name):
        tree = robot(name).tree
        return [[tree.joint_names[i] for i in group.bodies] for group in groups(tree)]

    assert [f"{side}_wheel" for side in ("right", "left")] in bodies("rby1a")
    for k in range(7):
        assert [f"{side}_arm_{k}" for side in ("right", "left")] in bodies("rby1a")
    assert [["elbow0", "elbow1", "elbow2"], ["finger00", "finger10"], ["finger01"]] == bodies("hands")[2:]


def test_runs_mix_revolute_and_prismatic_joints_and_no_others():
    chain, every = robot("chain").tree, robot("every_type").tree
    assert {"revolute", "prismatic"} == set(chain.joint_types)
    assert [g.bodies.shape for g in group_runs(chain, chain.order)] == [(chain.nb, 1)]
    for group in group_runs(every, every.order):
        types = {every.joint_types[i] for i in group.bodies.reshape(-1)}
        assert len(types) == 1 or types <= {"revolute", "continuous", "prismatic"}


@pytest.mark.slow
def test_both_traversals_agree_in_the_gradients_of_a_mixed_run():
    model = random_tree(0, ("prismatic", "revolute"), 3, branching=0.0)
    assert {"revolute", "prismatic"} == set(model.tree.joint_types)
    q, v, a = (normal(k, model.nv) for k in range(3))

    def by(traversal):
        def loss(model, q):
            return (rnea._rnea(traversal(model, q), v, a, None) ** 2).sum()

        model_, q_ = jax.jit(jax.grad(loss, (0, 1)))(model, q)
        return q_, model_.inertias, model_.geometry

    for mine, other in zip(by(scanned), by(unrolled), strict=True):
        assert_close(mine, other)


@pytest.mark.slow
def test_the_gradients_with_respect_to_the_numbers_of_limbs_side_by_side():
    model, s = robot("hands"), jax.tree.map(lambda x: x[0], states("hands"))

    def by(traversal):
        def loss(model):
            return (rnea._rnea(traversal(model, s.q), s.v, s.a, None) ** 2).sum()

        model_ = jax.jit(jax.grad(loss))(model)
        return model_.inertias, model_.geometry

    for mine, other in zip(by(side_by_side), by(scanned), strict=True):
        assert_close(mine, other)


@pytest.mark.ci
def test_public_functions_do_without_fusions_where_there_are_none(monkeypatch):
    model, s = robot("rby1a"), jax.tree.map(lambda x: x[0], states("rby1a"))
    want = rb.rnea(model, s.q, s.v, s.a)
    monkeypatch.setattr(fusion, "fusions_available", lambda: False)
    text = jax.jit(lambda *x: rb.rnea.__wrapped__(*x)).lower(model, s.q, s.v, s.a).as_text()
    assert "mhlo.fusion" not in text
    assert_close(jax.jit(lambda *x: rb.rnea.__wrapped__(*x))(model, s.q, s.v, s.a), want)


CHAINS = {"revolute": ("revolute",), "mixed": ("revolute", "prismatic")}


@pytest.mark.parametrize("types", CHAINS)
def test_long_chains_are_scanned_and_their_program_does_not_grow(types):
    def program(n):
        model = random_tree(7, CHAINS[types], n, branching=0.0)
        x = jnp.zeros(model.nv)
        return len(jax.make_jaxpr(rb.rnea.__wrapped__)(model, x, x, x).eqns)

    assert program(plan.UNROLLED_LIMIT + 1) == program(2 * plan.UNROLLED_LIMIT + 2)


@pytest.mark.ci
@pytest.mark.parametrize("types", CHAINS)
def test_a_long_chain_is_right(types):
    model = random_tree(7, CHAINS[types], 70, branching=0.0)
    q, v, a = (normal(k, 4, model.nv) for k in range(3))
    tau = jax.vmap(rb.rnea, (None, 0, 0, 0))(model, q, v, a)
    # 70 bodies deep the mass matrix has a condition number of about 1e8.
    assert_close(jax.vmap(rb.aba, (None, 0, 0, 0))(model, q, v, tau), a, 1e-7)


def kernels_of(text):
    """The loops with several results of a compiled program."""
    return [line for line in text.splitlines() if re.search(r"= \(.*\) fusion\(.*rbydyn_boundary", line)]


@pytest.mark.ci
@pytest.mark.parametrize("algorithm", ["rnea", "aba"])
def test_every_step_is_one_kernel_in_the_compiled_program(algorithm):
    """Were it not, XLA would clone values into every consumer: seconds become minutes, silently."""
    assert fusions_available()
    model = robot("rby1a")
    x = jnp.zeros((8, model.nv), model.inertias.dtype)
    lowered = jax.jit(jax.vmap(getattr(rb, algorithm), (None, 0, 0, 0))).lower(model, x, x, x)
    text = compiled_text(lowered)
    passes = {"rnea": 2, "aba": 3}[algorithm]
    steps = passes * (model.nb - 8)  # the left arm and wheel go with the right
    # Those of a wheel have one result or none; a few others have results of two shapes. Where barriers live until after
    # fusion, a step with one result is a loop like any other.
    with_one_result = 5 if late_barriers() else 1
    assert steps - with_one_result <= len(kernels_of(text)) <= steps + 6
    assert len(text.splitlines()) < 40_000
    # What the results of a step share is computed once. Without kernels there is ten times as much.
    assert arithmetic_in(text) < 1.1 * arithmetic_in(lowered.as_text())


LARGE = {
    "poses": rb.fk,
    "gradient": lambda m, x: jax.grad(lambda y: (rb.fk(m, y) ** 2).sum())(x),
}


@pytest.mark.ci
@pytest.mark.parametrize("which", LARGE)
def test_large_batches_compile(which):
    """On several cores XLA:CPU shares large operations among threads."""
    model, f = robot("panda_like"), jax.jit(jax.vmap(LARGE[which], (None, 0)))
    x = normal(3, 64, model.nv)
    few = f(model, x)
    program = f.lower(model, jnp.tile(x, (256, 1))).compile()
    assert kernels_of(program.as_text())
    assert_close(program(model, jnp.tile(x, (256, 1)))[-64:], few)


PARTS = {
    "rnea": lambda m, x: rb.rnea(m, x, x, x),
    "gradient": lambda m, x: jax.grad(lambda y: (rb.rnea(m, y, y, y) ** 2).sum())(x),
    "derivatives": lambda m, x: rb.aba_derivatives(m, x, x, x),
}


@pytest.mark.ci
@pytest.mark.parametrize("which, size", [*((which, 500) for which in PARTS), ("rnea", 769)])  # two equal parts; a prime
def test_large_batches_are_computed_in_parts(which, size):
    model, f = robot("panda_like"), jax.jit(jax.vmap(PARTS[which], (None, 0)))
    x = normal(3, size, model.nv)
    text = compiled_text(f.lower(model, x))
    assert " while(" in text and kernels_of(text)
    assert f"[{size}" not in "".join(kernels_of(text))
    few = slice(size - 64, size)
    for got, want in zip(jax.tree.leaves(f(model, x)), jax.tree.leaves(f(model, x[few])), strict=True):
        assert_close(got[few], want, kind="solve")


@pytest.mark.ci
@pytest.mark.parametrize("size, part, lanes", [(1024, 128, 136), (1000, 125, 125)])
def test_arrays_of_a_power_of_two_do_not_begin_at_the_same_place_of_the_cache(size, part, lanes):
    model, f = robot("panda_like"), jax.jit(jax.vmap(rb.fk, (None, 0)))
    x = normal(3, size, model.nv)
    found = "".join(kernels_of(compiled_text(f.lower(model, x))))
    assert f"f64[{lanes}," in found and (lanes == part or f"f64[{part}," not in found)
    assert_close(f(model, x)[-64:], f(model, x[-64:]))


@pytest.mark.ci
def test_a_loss_of_a_large_batch_has_a_gradient():
    model, x = robot("panda_like"), normal(3, 500, 7)

    def loss(x):
        return (jax.vmap(rb.crba, (None, 0))(model, x) ** 2).sum()

    gradient = jax.jit(jax.grad(loss))
    assert_close(gradient(x)[:100], gradient(x[:100]))
    assert_close(jax.jit(jax.jvp, static_argnums=0)(loss, (x,), (x,))[1], (gradient(x) * x).sum(), kind="solve")


CONSTANT = {
    "robot": lambda m, q, v: jax.vmap(lambda x: rb.rnea(m, x, v, v))(jnp.stack([q, q])),
    "state": lambda m, q, v: jax.jit(lambda g: rb.rnea(rb.with_gravity(m, g), q, jnp.zeros_like(v), v))(m.gravity),
    "all": lambda m, q, v: rb.aba(m, q, v, v),
    "cotangent": lambda m, q, v: jax.grad(lambda x: rb.rnea(m, x, v, v)[1:3].sum())(q),
    "tangents": lambda m, q, v: jax.jacfwd(lambda x: rb.crba(m, x)[0])(q),
}


@pytest.mark.ci
@pytest.mark.parametrize("which", CONSTANT)
@pytest.mark.parametrize("name", ["mimic", *slow("every_type")])
def test_constants_of_a_program_do_not_end_the_process(name, which):
    """XLA:CPU aborts on a kernel whose parameter it has folded away; zero armature of mimic joints was one."""
    model = dataclasses.replace(robot(name), armature=jnp.zeros_like(robot(name).armature))
    q, v = (x[0] for x in states(name)[:2])
    captured = jax.jit(lambda: CONSTANT[which](model, q, v))()
    given = jax.jit(lambda m, q, v: CONSTANT[which](m, q, v))(model, q, v)
    assert_close(captured, given, kind="solve")


@pytest.mark.float32
def test_sine_and_cosine_of_any_finite_angle():
    dtype = np.float64 if X64 else np.float32
    rng = np.random.default_rng(0)
    scales = np.concatenate([10.0 ** rng.uniform(-8, 15 if X64 else 7, 300), np.arange(0, 30) * np.pi / 4])
    x = (scales * np.where(rng.uniform(size=scales.size) < 0.5, -1, 1)).astype(dtype)
    with mpmath.workdps(60):
        want = np.array([[mpmath.sin(t), mpmath.cos(t)] for t in map(mpmath.mpf, x.tolist())], float)
    for part in (np.abs(x) < 1e3, np.abs(x) > 1e3):  # without and with an angle too large for the fast reduction
        got = np.stack(jax.jit(sincos)(jnp.asarray(x[part])), axis=1)
        assert np.abs(got - want[part]).max() <= 2 * np.finfo(dtype).eps
        batched = np.stack(jax.jit(jax.vmap(sincos))(jnp.asarray(x[part])[:, None]), axis=1)[..., 0]
        assert np.array_equal(batched, got)


def test_derivatives_of_sine_and_cosine():
    x = jnp.array([0.0, 0.3, -2.0, 4e6])
    s, c = sincos(x)
    assert_close(jnp.diagonal(jax.jacrev(lambda t: sincos(t)[0])(x)), c)
    assert_close(jnp.diagonal(jax.jacfwd(lambda t: sincos(t)[1])(x)), -s)
    assert np.isnan(np.asarray(sincos(jnp.array([jnp.nan, 1.0]))[0])[0])


def test_join_is_a_stack_whatever_is_batched():
    a, b = normal(0, 5), normal(1, 5, 3)

    def f(x, y):
        return join([x, ZERO, y, ONE, MINUS_ONE], a.dtype)

    want = np.stack(
        [np.broadcast_to(np.asarray(a)[:, None], (5, 3)), np.zeros((5, 3)), b, np.ones((5, 3)), -np.ones((5, 3))], -1
    )
    nested = jax.vmap(jax.vmap(f, (None, 0)), (0, 0))(a, b)
    assert np.array_equal(nested, want.astype(a.dtype))
    pull = jax.vjp(f, a[0], b[0, 0])[1]
    assert [float(x) for x in pull(jnp.arange(5.0, dtype=a.dtype))] == [0.0, 2.0]
    pushed = jax.jvp(f, (a[0], b[0, 0]), (jnp.ones_like(a[0]), jnp.zeros_like(a[0])))[1]
    assert pushed.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert np.array_equal(jax.vmap(batch_last, in_axes=1, out_axes=1)(b), b)


@pytest.mark.slow
def test_second_derivatives_along_a_direction_that_is_not_in_the_batch():
    base, s = robot("few_types"), jax.tree.map(lambda x: x[:3], states("few_types"))
    along = jnp.linspace(-1.0, 1.0, base.nv)

    def curvature(model, q, v):
        def at(t):
            return rb.rnea(model, rb.integrate(model, q, t * along), v + t * along, v)

        return jax.jvp(lambda t: jax.jvp(at, (t,), (1.0,))[1], (0.0,), (1.0,))[1]

    by = [jax.jit(jax.vmap(curvature, (None, 0, 0)))(rb.with_traversal(base, form), s.q, s.v) for form in FORMS]
    assert_close(*by, kind="solve")
