"""The equations of loop joints: what each type holds, and that velocities and accelerations are rates of the gap."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax.constraints import Baumgarte, LoopJoint, forward_dynamics
from rbydyn_jax.constraints._bodies import body_motions
from rbydyn_jax.constraints.dynamics import each_stabilization
from rbydyn_jax.constraints.loops import assemble, bearing_wrenches, loop_gap
from rbydyn_jax.joints import JOINT_TYPES
from rbydyn_jax.testing import random_transform, random_tree
from tests.algorithms.cases import along
from tests.helpers import assert_close, normal, untyped

KINDS = tuple(kind for kind in JOINT_TYPES if kind != "continuous")
OWN = {kind: dict.fromkeys(joint.parameters, 0.07) for kind, joint in JOINT_TYPES.items()}  # a screw's pitch [m/rad]


@pytest.fixture(scope="module")
def robot():
    return random_tree(3, ("revolute", "spherical", "prismatic"), 4, branching=0.0, mimics=1, armature=False)


def _equations(model, q, v, loops):
    return assemble(model, body_motions(model, q, v), v, loops, (None,) * len(loops))


def _loops(model):
    """One loop joint of each type between the same two links, so placed that all are open."""
    ends = {"predecessor_pose": random_transform(1), "successor_pose": random_transform(2)}
    first, last = model.link_names[1], model.link_names[-1]
    return tuple(LoopJoint(kind, first, last, axis=(1, -2, 0.5), **ends, **OWN[kind]) for kind in KINDS)


@pytest.mark.parametrize("axis", [(1, 2, 3), (0, 0, 1), (0, 0, -1)])
@pytest.mark.parametrize("kind", JOINT_TYPES)
def test_what_a_joint_bears_does_no_work_on_what_it_allows(kind, axis):
    joint = LoopJoint(kind, None, "a", axis=axis, **OWN[kind]).cast(float)
    bearing = np.asarray(bearing_wrenches(joint))
    free = JOINT_TYPES[kind].nv
    assert bearing.shape == (6, joint.bearing_rank) == (6, 6 - free)
    # That which couples the freedoms of a screw is one newton along the axis, with its moment.
    lengths = [1.0] * (5 - free) + [np.hypot(1.0, OWN[kind].get("pitch", 0.0))]
    assert_close(bearing.T @ bearing, np.diag(lengths[: 6 - free]) ** 2)
    if free:
        S = JOINT_TYPES[kind].columns(np.asarray(joint.axis), tuple(OWN[kind].values()))
        assert_close(bearing.T @ S, np.zeros((6 - free, free)), scale=1.0)


@pytest.mark.slow
def test_the_equations_of_every_type_are_the_rates_of_twists(robot):
    """K v is the relative twist along the bearing directions, and K a + k its rate."""
    q, v, a = rb.random_configuration(robot, jax.random.key(0)), normal(1, robot.nv), normal(2, robot.nv)
    loops = tuple(joint.cast(q.dtype) for joint in _loops(robot))

    @jax.jit
    def both(q, v, a):
        found = _equations(robot, q, v, loops)
        speed = lambda q, v: _equations(robot, q, v, loops).jacobian @ v  # noqa: E731
        return found.jacobian @ a + found.bias, along(robot, speed, q, v, (v, a))

    rate, (_, want) = both(q, v, a)
    assert_close(rate, want)


@pytest.mark.slow
def test_the_gap_closes_as_its_equations_say(robot):
    """Near a closed loop the rate of the gap is K v: the gap of loops that are closed moves with K v."""
    q, v = rb.random_configuration(robot, jax.random.key(4)), normal(5, robot.nv)
    first, last = robot.link_names[1], robot.link_names[-1]
    before = random_transform(1)
    after = np.asarray(jnp.linalg.inv(rb.link_pose(robot, q, last, first))) @ before
    loops = tuple(
        LoopJoint(
            kind, first, last, axis=(1, -2, 0.5), predecessor_pose=before, successor_pose=after, **OWN[kind]
        ).cast(q.dtype)
        for kind in KINDS
    )

    @jax.jit
    def both(q, v):
        gap = lambda q: _equations(robot, q, v, loops).gap  # noqa: E731
        return along(robot, gap, q, v), _equations(robot, q, v, loops).jacobian @ v

    (gap, rate), speed = both(q, v)
    assert_close(gap, np.zeros(len(gap)), scale=1.0)
    assert_close(rate, speed)


@pytest.mark.ci
def test_a_half_turn_of_the_axis_is_a_gap_of_half_a_turn_with_finite_derivatives():
    joint, before = LoopJoint("revolute", None, "a", axis=(0, 0, 1)).cast(float), jnp.eye(4)

    def gap(R):
        return loop_gap(joint, before, before.at[:3, :3].set(R))

    slopes = jax.jit(lambda R: (gap(R), jax.jacrev(gap)(R), jax.jacfwd(jax.jacrev(gap))(R)))
    for angle in (0.0, 0.1, 1.5, 3.0, np.pi):
        c, s = (np.cos(angle), np.sin(angle)) if angle != np.pi else (-1.0, 0.0)
        found = slopes(jnp.array([[1, 0, 0], [0, c, -s], [0, s, c]]))
        assert np.linalg.norm(found[0]) == pytest.approx(angle, rel=1e-12)
        assert all(np.isfinite(x).all() for x in found)


@pytest.mark.slow
def test_stabilization_for_each_joint(robot):
    """Gains enter k as stiffness gap + damping rate, each joint with its own, rotations apart from translations."""
    q, v = rb.random_configuration(robot, jax.random.key(0)), normal(1, robot.nv)
    named = dict(zip(KINDS, _loops(robot), strict=True))
    loops = tuple(named[kind].cast(q.dtype) for kind in ("fixed", "revolute", "spherical", "prismatic"))
    gains = Baumgarte(1.0, 2.0, 3.0, 4.0)
    choices = (None, (None, gains, None, gains), Baumgarte())

    @jax.jit
    def biases(q, v):
        bodies = body_motions(robot, q, v)
        found = [assemble(robot, bodies, v, loops, each_stabilization(choice, 4)) for choice in choices]
        return found[0].gap, found[0].jacobian @ v, [x.bias for x in found]

    gap, rate, (plain, mixed, default) = biases(q, v)
    #                      fixed    revolute           spherical  prismatic
    stiffness = np.array([0] * 6 + [1, 1, 3, 3, 3] + [0] * 3 + [1, 1, 1, 3, 3])
    damping = np.array([0] * 6 + [2, 2, 4, 4, 4] + [0] * 3 + [2, 2, 2, 4, 4])
    assert_close(mixed - plain, stiffness * gap + damping * rate)
    assert_close(default - plain, 100 * gap + 20 * rate)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda r: untyped(LoopJoint)("revolut", None, "a"), rb.ModelError, "kind must be one of"),
        (lambda r: LoopJoint("revolute", None, "a", axis=(0, 0, 0)), rb.ArgumentError, "must have a direction"),
        (lambda r: LoopJoint("screw", None, "a"), rb.ModelError, "a screw joint needs pitch="),
        (lambda r: LoopJoint("screw", None, "a", pitch="x"), rb.DtypeError, "pitch must be a number"),
        (lambda r: LoopJoint("screw", None, "a", pitch=np.zeros(2)), rb.DtypeError, "pitch must be a number"),
        (lambda r: LoopJoint("revolute", None, "a", pitch=0.1), rb.DtypeError, "has no parameter 'pitch'; it has none"),
        (lambda r: LoopJoint("fixed", None, "a", successor_pose=np.eye(3)), rb.ShapeError, "successor_pose"),
        (lambda r: _solve(r, LoopJoint("fixed", None, "a")), rb.DtypeError, "sequence of LoopJoint"),
        (lambda r: _solve(r, (LoopJoint("fixed", None, "lnk_1"),)), rb.NameNotFoundError, "link_1"),
        (lambda r: _solve(r, (LoopJoint("fixed", "link_1", "link_1"),)), rb.ArgumentError, "'link_1' and 'link_1'"),
        (lambda r: _solve(r, (LoopJoint("fixed", None, r.link_names[0]),)), rb.ArgumentError, "got the world and"),
        (lambda r: _solve(r, (LoopJoint("fixed", None, "link_1"),), (None, None)), rb.ShapeError, "2 entries for 1"),
        (lambda r: _solve(r, (LoopJoint("fixed", None, "link_1"),), (1.0,)), rb.DtypeError, "must hold Baumgarte"),
    ],
)
def test_errors_say_what_is_wrong(robot, call, error, match):
    with pytest.raises(error, match=match):
        call(robot)


def _solve(robot, loops, stabilization=None):
    zero = jnp.zeros(robot.nv)
    return forward_dynamics(robot, rb.neutral(robot), zero, zero, loops, stabilization=stabilization)
