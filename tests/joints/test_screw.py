"""The screw: against pinocchio, against a hinge and a slide that mimics it, and where joint types are asked."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import RobotBuilder, build_model
from rbydyn_jax.compat import pinocchio as layout
from rbydyn_jax.constraints import LoopJoint, close_loops, forward_dynamics
from rbydyn_jax.constraints.loops import loop_gap
from rbydyn_jax.io import JointDescription, LinkDescription, Mimic, RobotDescription, describe
from rbydyn_jax.testing import random_tree
from tests.algorithms.cases import along, by_rows, run
from tests.helpers import X64, assert_close, normal, oracle, untyped

needs_float64 = pytest.mark.skipif(not X64, reason="finite differences and oracles work in float64")
AXIS, PITCH = (0.0, 0.6, 0.8), 0.07


def assert_all_close(got, want, **options):
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert_close(x, y, **options)


@pytest.fixture(scope="module")
def tree():
    """Screws at the root, in the middle and at the ends, one of which mimics another."""
    return random_tree(4, ("screw", "spherical", "screw", "prismatic"), 8, mimics=1)


@pytest.fixture(scope="module")
def states(tree):
    q = jax.vmap(lambda key: rb.random_configuration(tree, key))(jax.random.split(jax.random.key(0), 100))
    return q, *(normal(k, 100, tree.nv) for k in (1, 2)), normal(3, 100, tree.nb, 6)


def press(kind: str, axis=AXIS, **pitch):
    """A body on a screw, with another one on it; or on a hinge and the slide that mimics it."""
    b = RobotBuilder("press").link("a").link("b", 2.0, (0.1, 0.2, -0.1), (0.02, 0.03, 0.04))
    b.link("tip", 0.5, (0, 0.1, 0), 0.01).revolute("wrist", "b", "tip", xyz=(0.1, 0.2, 0.3), axis=(1, 0, 0))
    where = {"xyz": (0.1, 0, 0.2), "rpy": (0.1, 0.2, 0.3), "axis": axis}
    if kind == "screw":
        return build_model(b.screw("spindle", "a", "b", **where, **pitch))
    b.link("nut").revolute("spindle", "a", "nut", **where)
    if kind == "pair":
        return build_model(b.prismatic("slide", "nut", "b", axis=axis, mimic=Mimic("spindle", pitch["pitch"])))
    return build_model(b.prismatic("slide", "nut", "b", axis=axis))


@pytest.mark.slow
@needs_float64
def test_pinocchio(tree, states):
    oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_model

    twin, (q, v, a, f) = pin_model(tree), states
    assert_close(run(lambda q: rb.fk(tree, q), q), by_rows(twin.fk, q))
    assert_close(run(lambda *x: rb.rnea(tree, *x), q, v, a, f), by_rows(twin.rnea, q, v, a, f))
    assert_close(run(lambda q: rb.crba(tree, q), q), by_rows(twin.crba, q))
    assert_close(run(lambda *x: rb.aba(tree, *x), q, v, a, f), by_rows(twin.aba, q, v, a, f), kind="solve")
    ours = rb.rnea_derivatives(tree, q[0], v[0], a[0], f[0])
    assert_all_close(ours, twin.rnea_derivatives(q[0], v[0], a[0], f[0]), kind="solve")


@pytest.mark.slow
@pytest.mark.float32
def test_traversals_agree_and_power_is_balanced(tree, states):
    """tau v is the rate of the energy along the motion that aba predicts, whichever way the tree is walked."""

    def energy(model):
        return lambda q, v: rb.kinetic_energy(model, q, v) + rb.potential_energy(model, q)

    def found(model):
        def rates(q, v, tau):
            a = rb.aba(model, q, v, tau)
            return a, rb.crba(model, q), along(model, energy(model), q, v, (v, a))[1]

        return run(rates, *states[:3])

    here, there = found(tree), found(rb.with_traversal(tree, "scanned"))
    assert_all_close(here, there, kind="solve")
    assert_close(here[2], (states[1] * states[2]).sum(axis=1), kind="solve")


@pytest.mark.slow
@needs_float64
def test_slopes_are_finite_differences(tree, states):
    """Of all bodies' poses along q, and of inverse dynamics in the pitches."""
    q, v, a = (x[0] for x in states[:3])
    step = 1e-6
    slopes = jax.jit(jax.jacfwd(lambda dq: rb.fk(tree, rb.integrate(tree, q, dq))))(jnp.zeros(tree.nv))
    torques = lambda pitches: rb.rnea(changed(tree, pitches), q, v, a)  # noqa: E731
    pitches = tree.joint_parameters
    in_pitch = jax.jit(jax.jacrev(torques))(pitches)
    for k, e in enumerate(step * np.eye(tree.nv)):
        ahead, behind = (rb.fk(tree, rb.integrate(tree, q, jnp.asarray(x))) for x in (e, -e))
        assert_close(slopes[..., k], (ahead - behind) / (2 * step), kind="difference")
    for k, e in enumerate(step * np.eye(len(pitches))):
        assert_close(in_pitch[:, k], (torques(pitches + e) - torques(pitches - e)) / (2 * step), kind="difference")


def changed(model, pitches):
    screws = [i for i, kind in enumerate(model.tree.joint_types) if kind == "screw"]
    return rb.with_joint_parameters(model, {i: {"pitch": x} for i, x in zip(screws, pitches, strict=True)})


@pytest.mark.slow
@pytest.mark.float32
@pytest.mark.parametrize("axis", [AXIS, (0, 0, -1)])
def test_a_screw_is_a_hinge_and_a_slide_that_mimics_it(axis):
    """With its derivatives, also those in the pitch, which of the pair is the multiplier."""
    one, two = press("screw", axis, pitch=PITCH), press("pair", axis, pitch=PITCH)
    q, v, a = jnp.array([4.0, 0.3]), jnp.array([1.3, -0.4]), jnp.array([0.2, 0.9])
    assert one.nb == two.nb - 1 and one.nv == two.nv == 2

    def found(model, pitch, q, v, a):
        moved = (
            dataclasses.replace(model, mimic_multipliers=pitch[None])
            if model is two
            else rb.with_joint_parameters(model, {"spindle": {"pitch": pitch}})
        )
        return rb.link_pose(moved, q, "tip"), rb.rnea(moved, q, v, a)

    def both(model):
        f = lambda *x: found(model, *x)  # noqa: E731
        jacobians = jax.jit(lambda *x: (f(*x), jax.jacfwd(f, (0, 1))(*x)))(jnp.asarray(PITCH), q, v, a)
        return jacobians, rb.aba(model, q, v, a)

    assert_all_close(both(one), both(two), kind="solve", scale=1.0)


@pytest.mark.slow
def test_a_screw_without_pitch_is_a_hinge_and_pitches_are_parameters():
    """Of no pitch it can be given one later: it is never a constant of the program."""
    flat, hinge = press("screw", pitch=0.0), press("free")
    q = jnp.array([0.7, 0.3])
    assert_close(rb.link_pose(flat, q, "b"), rb.link_pose(hinge, jnp.array([0.7, 0.0, 0.3]), "b"))
    assert flat.tree == press("screw", pitch=1.0).tree == press("screw", pitch=PITCH).tree
    steep = rb.with_joint_parameters(flat, {"spindle": {"pitch": PITCH}})
    assert_close(steep.joint_parameters, [PITCH])
    assert_close(rb.fk(steep, q), rb.fk(press("screw", pitch=PITCH), q))
    both = rb.stack_models([flat, steep])
    poses = jax.vmap(lambda model: rb.fk(model, q))(both)
    assert_close(poses[1], rb.fk(steep, q))
    assert_close(rb.fk(rb.unstructured(steep), q), rb.fk(steep, q))
    moved = rb.with_geometry(steep, joint_placements=steep.joint_placements.at[0, 0, 3].add(1.0))
    assert_close(rb.fk(moved, q)[1:, 0, 3], rb.fk(steep, q)[1:, 0, 3] + 1.0)


@pytest.mark.slow
def test_a_screw_that_closes_a_loop_couples_a_hinge_and_a_slide():
    one, two = press("screw", pitch=PITCH), press("free")
    where = one.joint_placements[one.joint_index("spindle")]
    loop = LoopJoint("screw", "a", "b", predecessor_pose=where, axis=AXIS, pitch=PITCH)
    spindle, slide, wrist = (two.tree.v_slices[two.joint_index(x)].start for x in ("spindle", "slide", "wrist"))
    order = np.array([spindle, wrist])

    def spread(x, *, factor=1.0):
        return jnp.zeros(3).at[order].set(x).at[slide].set(factor * PITCH * x[0])

    for angle in (0.4, 3.0, -8.0):  # more than one turn: another thread of the same screw
        q, v, tau = jnp.array([angle, 0.3]), jnp.array([1.3, -0.4]), jnp.array([0.2, 0.9])
        gap = loop_gap(loop.cast(q.dtype), where, rb.link_pose(two, spread(q), "b"))
        assert_close(gap, np.zeros(5), scale=1.0)
        found = forward_dynamics(two, spread(q), spread(v), spread(tau, factor=0.0), (loop,), stabilization=None)
        # The loop's other four equations hold in any case: only the coupling bears a load.
        assert_close(found.a, spread(rb.aba(one, q, v, tau)), kind="solve")
    start = jnp.zeros(3).at[spindle].set(0.5)
    closed = close_loops(two, start, (loop,))
    assert_close(closed.q[slide], PITCH * closed.q[spindle], kind="solve")
    assert bool(jnp.isfinite(jax.jacrev(lambda R: loop_gap(loop.cast(R.dtype), jnp.eye(4), R))(jnp.eye(4))).all())


@pytest.mark.slow
def test_descriptions_edits_and_layouts(tree, states):
    q = states[0][0]
    again = build_model(describe(tree), joint_order=tree.joint_names)
    assert_close(rb.fk(again, q), rb.fk(tree, q))
    model, x = press("screw", pitch=PITCH), jnp.array([0.7, 0.3])
    rest = rb.lock_joints(model, {"spindle": 0.7})
    assert rest.joint_names == ("wrist",)
    assert_close(rb.link_pose(rest, x[1:], "tip"), rb.link_pose(model, x, "tip"))
    twice = rb.attach(model, "tip", model, prefix="other_")
    assert_close(twice.joint_parameters, [PITCH, PITCH])
    assert layout.q_to_pinocchio(model, x).tolist() == x.tolist()
    with pytest.raises(rb.ModelError, match="URDF has no screw joints, and this robot has 'spindle'; use a revolute"):
        rb.to_urdf(model)
    with pytest.raises(rb.ParseError, match="unknown type 'screw'"):
        rb.load_urdf_string('<robot name="r"><link name="a"/><joint name="j" type="screw"/></robot>')


def test_limits_are_those_of_the_angle():
    b = RobotBuilder().link("a").link("b", 1.0, inertia=0.1)
    model = build_model(b.screw("s", "a", "b", pitch=0.1, lower=-0.5, upper=0.25, velocity=2.0))
    assert model.position_lower.tolist() == [-0.5] and model.position_upper.tolist() == [0.25]
    q = jax.vmap(lambda key: rb.random_configuration(model, key))(jax.random.split(jax.random.key(0), 100))
    assert -0.5 <= float(q.min()) < -0.3 and 0.1 < float(q.max()) <= 0.25


def test_a_point_mass_on_the_axis_resists_a_screw_and_no_hinge():
    def report(kind, **options):
        b = RobotBuilder().link("a").link("b", 1.0, (0.3, 0, 0))
        return build_model(b.joint(kind, "j", "a", "b", **options)).report

    assert "singular" in report("revolute")[0].message
    assert "singular" in report("screw", pitch=0.0)[0].message
    assert report("screw", pitch=0.1) == report("prismatic") == ()


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda b: b.screw("j", "a", "b"), rb.ModelError, "joint 'j': a screw joint needs pitch="),
        (lambda b: b.screw("j", "a", "b", pitch="x"), rb.DtypeError, "pitch must be a number, got 'x'"),
        (lambda b: b.screw("j", "a", "b", pich=1), rb.DtypeError, "no option 'pich'; did you mean 'pitch'"),
        (lambda b: b.revolute("j", "a", "b", pitch=1), rb.DtypeError, "no option 'pitch'"),
        (lambda b: b.screw("j", "a", "b", pitch=np.inf).build_description(), rb.ModelError, "pitch must be finite"),
        (lambda b: _described({}), rb.ModelError, "parameters of a screw joint: pitch; got none"),
        (lambda b: _described({"lead": 1.0}), rb.ModelError, "parameters of a screw joint: pitch; got lead"),
        (lambda b: untyped(rb.with_joint_parameters)(_screw(), 0.1), rb.DtypeError, "values must be a mapping"),
        (
            lambda b: untyped(rb.with_joint_parameters)(_screw(), {"spindle": 0.1}),
            rb.DtypeError,
            "spindle must be a mapping",
        ),
        (lambda b: rb.with_joint_parameters(_screw(), {"j": {}}), rb.NameNotFoundError, "spindle"),
        (lambda b: rb.with_joint_parameters(_screw(), {"wrist": {"pitch": 1.0}}), rb.ArgumentError, "parameters: none"),
        (lambda b: rb.with_joint_parameters(_screw(), {0: {"pitch": np.nan}}), rb.ArgumentError, "must be finite"),
        (lambda b: rb.with_joint_parameters(_screw(), {0: {"pitch": jnp.ones(1)}}), rb.ShapeError, "pitch"),
    ],
)
def test_errors_say_what_is_wrong(call, error, match):
    with pytest.raises(error, match=match):
        call(RobotBuilder().link("a").link("b", 1.0))


def _screw():
    return press("screw", pitch=PITCH)


def _described(parameters):
    joint = JointDescription("j", "screw", "a", "b", parameters=parameters)
    return build_model(RobotDescription("r", (LinkDescription("a"), LinkDescription("b")), (joint,)))
