"""Robots of files: Talos on two feet and on one, RB-Y1 with one object in both hands, and strict priorities."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.constraints import LoopJoint
from rbydyn_jax.constraints import inverse_dynamics as of_loops
from rbydyn_jax.engines.pinocchio import pin_from_urdf, pin_model
from rbydyn_jax.spatial import cones
from rbydyn_jax.whole_body import (
    Com,
    Effort,
    Force,
    Momentum,
    PatchContact,
    Pose,
    Posture,
    WholeBodyStatus,
    inverse_dynamics,
)
from tests.helpers import assert_close, example_robot
from tests.whole_body import reference

MU = 1e-2


@pytest.mark.slow
def test_talos_on_two_feet_and_on_one():
    """The optimum is that of quadprog, with any force on the right foot or hardly any."""
    text = example_robot("talos_data/robots/talos_reduced.urdf").read_text()
    states = ET.parse(example_robot("talos_data/srdf/talos.srdf")).iter("group_state")
    model = rb.load_urdf_string(text, floating_base=True)
    pin = pin_from_urdf(text, model)
    posture = next(x for x in states if x.get("name") == "half_sitting")
    angles = {x.get("name"): float(x.get("value", "nan").split()[-1]) for x in posture}
    q0 = np.array(rb.neutral(model))
    for name, at in zip(model.joint_names, model.tree.q_slices, strict=True):
        if name in angles and at.stop - at.start == 1:
            q0[at] = angles[name]
    q0[6] = 1.01927
    q0 = jnp.asarray(q0)
    feet = ["left_sole_link", "right_sole_link"]
    half, driven, nv = np.array([0.1, 0.06]), np.arange(6, model.nv), model.nv

    def solve(q, v, target, most):
        tasks = [
            Com(target, 10.0),
            Posture(q0, 0.1),
            Momentum(weight=1e-2),
            Pose(feet[1], rb.link_pose(model, q0, feet[1])),
        ]
        contacts = [PatchContact(feet[0], None, half, 0.6), PatchContact(feet[1], None, half, 0.6, most=most)]
        return inverse_dynamics(model, q, v, tasks, contacts, damping=MU)

    rng = np.random.default_rng(2)
    count, faces = 6, np.asarray(cones.wrench_cone_faces(jnp.asarray(half), 0.6))
    most = np.array([np.inf, 5.0] * (count // 2))
    qs, vs, targets = [], [], []
    for limit in most:
        q = np.asarray(rb.integrate(model, q0, jnp.asarray(rng.uniform(-0.03, 0.03, nv))))
        J = np.concatenate([pin.jacobian(q, foot) for foot in feet])
        v = rng.uniform(-0.2, 0.2, nv)
        qs.append(q)
        vs.append(v - np.linalg.pinv(J) @ (J @ v))
        targets.append(pin.center_of_mass(q) + rng.uniform(-0.05, 0.05, 3) + (0.0, 0.1 if limit < 10.0 else 0.0, 0.0))
    result = jax.jit(jax.vmap(solve))(np.stack(qs), np.stack(vs), np.stack(targets), most)
    assert (result.status == WholeBodyStatus.OPTIMAL).all()
    for i, (q, v, target) in enumerate(zip(qs, vs, targets, strict=True)):
        touches = [reference.Touch(feet[0], np.eye(4), faces), reference.Touch(feet[1], np.eye(4), faces, 0.0, most[i])]
        problem = reference.whole(pin, q, v, touches, driven)
        zero, com = np.zeros(nv), pin.center_of_mass(q)
        J, drift = pin.com_jacobian(q), pin.com_motion(q, v, zero)[1]
        tasks = [reference.on_accelerations(J, 100 * (target - com) - 20 * J @ v - drift, 10.0, 12)]
        wanted = 100 * np.asarray(rb.difference(model, jnp.asarray(q), q0)) - 20 * v
        tasks.append(reference.on_accelerations(np.eye(nv)[6:], wanted[6:], 0.1, 12))
        A, rate = _momentum(pin, q, v)
        tasks.append(reference.on_accelerations(A, -10 * A @ v - rate, 1e-2, 12))
        x = problem.best(tasks, reference.damping_of(pin, 12, driven, MU))
        a, tau, forces = np.split(x, [nv, 2 * nv])
        assert_close(result.a[i], a, 1e-6)
        assert_close(result.tau[i], tau, 1e-6)
        assert_close(jnp.concatenate([f[i] for f in result.forces]), forces, 1e-6)
    assert float(result.forces[1][1::2, 5].max()) < 5.0 + 1e-6
    weight = 9.81 * float(rb.total_mass(model))
    assert (result.forces[0][1::2, 5] > 0.5 * weight).all()


def _momentum(pin, q, v) -> tuple[np.ndarray, np.ndarray]:
    """The centroidal momentum matrix, and the rate of the momentum at constant joint velocities, by differences."""

    def matrix(t):
        moved = np.asarray(rb.integrate(pin.ours, jnp.asarray(q), jnp.asarray(t * v)))
        A, c = pin.momentum_matrix(moved), pin.center_of_mass(moved)
        return np.concatenate([A[:3] - np.cross(c[:, None], A[3:], axis=0), A[3:]])

    h = 1e-5
    slopes = [(matrix(k * h) - matrix(-k * h)) @ v / (2 * k * h) for k in (1, 2)]
    return matrix(0.0), (4 * slopes[0] - slopes[1]) / 3


@pytest.mark.slow
def test_rby1_holds_an_object_with_both_hands():
    """A closed grasp: the loop's forces and the torques are those of dynamics of loops, within the limits of torque."""
    model = rb.attach_payload(robots.rby1a(), "ee_right", 6.0)
    arms = [n for n in model.joint_names if "arm" in n or "torso" in n]
    q = np.array(rb.neutral(model))
    for side, out in (("right", -0.25), ("left", 0.25)):
        for k, angle in ((0, -0.6), (1, out), (3, -1.6)):
            q[model.tree.q_slices[model.joint_index(f"{side}_arm_{k}")]] = angle
    q = jnp.asarray(q)
    right, left = (np.asarray(rb.link_pose(model, q, f"ee_{side}")) for side in ("right", "left"))
    grasp = LoopJoint("fixed", "ee_right", "ee_left", predecessor_pose=np.linalg.inv(right) @ left)
    up = right.copy()
    up[2, 3] += 0.05
    still = jnp.zeros(model.nv)

    @jax.jit
    def lift(load, weight):
        tasks = [Pose("ee_right", up, 10.0), Posture(q, 0.01), Effort(0.0, weight)]
        return inverse_dynamics(load, q, still, tasks, loops=[grasp], actuated=tuple(arms), horizon=0.05)

    result = lift(model, 1e-6)
    assert result.status == WholeBodyStatus.OPTIMAL
    assert (np.abs(result.tau) <= np.asarray(model.effort_limit) * (1 + 1e-9)).all()
    assert float(rb.jacobian(model, q, "ee_right")[5] @ result.a) > 1.0
    moved = [np.asarray(rb.jacobian(model, q, f"ee_{side}")) @ np.asarray(result.a) for side in ("right", "left")]
    arm = left[:3, 3] - right[:3, 3]
    assert_close(moved[1], np.concatenate([moved[0][:3], moved[0][3:] + np.cross(moved[0][:3], arm)]), 1e-9)
    pin, force = pin_model(model), -np.asarray(result.multipliers)
    J = [pin.jacobian(q, f"ee_{side}", "local") for side in ("right", "left")]
    pushed = (J[1] - _across(right, left) @ J[0]).T @ force
    assert_close(pin.rnea(q, still, result.a) - pushed, result.tau, 1e-8)
    heavy = rb.attach_payload(model, "ee_right", 300.0)
    share = np.abs(lift(heavy, 1e-6).tau) / np.asarray(model.effort_limit)
    assert 1.0 - 1e-6 < share.max() < 1.0 + 1e-9
    alone = of_loops(model, q, still, result.a, (grasp,), actuated=tuple(arms))
    assert float(alone.tau @ alone.tau) <= float(result.tau @ result.tau) * (1 + 1e-9)
    assert_close(alone.residual, np.zeros(model.nv), 1e-8, scale=100.0)


def _across(right: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Takes a twist of the right hand in its axes to that of the left one, held to it."""
    T = np.linalg.inv(left) @ right
    R, p = T[:3, :3], T[:3, 3]
    return np.block([[R, np.zeros((3, 3))], [np.cross(np.eye(3), p) @ R, R]])


@pytest.mark.slow
def test_levels_are_strict():
    """The first level is as good as it is alone; the second is the optimum of quadprog where the first stays."""
    b = rb.RobotBuilder("hopper").link("w").link("body", 5.0, (0.01, 0.02, 0.1), 0.2).floating("f", "w", "body")
    parent = "body"
    for k, axis in enumerate(((1, 0.1, 0), (0, 1, 0.1), (0.1, 1, 0), (1, 0, 0.1))):
        b.link(f"part{k}", 1.0, (0.0, 0.01, -0.1), 0.01)
        b.revolute(f"j{k}", parent, f"part{k}", xyz=(0, 0, -0.25), axis=axis, lower=-2, upper=2, effort=60.0)
        parent = f"part{k}"
    model = rb.build_model(b)
    pin, nv, driven = pin_model(model), model.nv, np.arange(6, model.nv)
    half, sole = np.array([0.12, 0.08]), np.eye(4)
    q = rb.integrate(model, rb.neutral(model), jnp.asarray([0.0] * 6 + [0.05, 0.4, -0.4, -0.05]))
    sole[:3, 3] = 0, 0, -0.05
    force, horizontal = np.array([0.0, 0.0, 0.0, 5.0, -3.0, 120.0]), np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.0])

    @jax.jit
    @jax.vmap
    def solve(rate):
        first = [Momentum(rate=rate, weight=horizontal)]
        later = [Effort(0.0, 1.0, priority=1), Force(0, force, 0.1, priority=1)]
        contacts = [PatchContact(parent, sole, half, 0.7)]
        both = inverse_dynamics(model, q, jnp.zeros(nv), [*first, *later], contacts, damping=MU)
        return both, inverse_dynamics(model, q, jnp.zeros(nv), first, contacts, damping=MU)

    rates = np.array([[0, 0, 0, 5.0, 2.0, 8.0], [0, 0, 0, 300.0, 0.0, -30.0]])
    both, alone = solve(rates)
    assert (both.status == WholeBodyStatus.OPTIMAL).all() and (alone.status == WholeBodyStatus.OPTIMAL).all()
    assert_close(both.errors[0][:, 3:5], alone.errors[0][:, 3:5], 1e-8, scale=10.0)
    assert float(jnp.abs(alone.errors[0][1, 3])) > 10.0  # friction does not allow it
    eye = np.eye(2 * nv + 6)
    touch = reference.Touch(parent, sole, np.asarray(cones.wrench_cone_faces(jnp.asarray(half), 0.7)))
    problem = reference.whole(pin, q, np.zeros(nv), [touch], driven)
    damping = reference.damping_of(pin, 6, driven, MU)
    A, _ = _momentum(pin, q, np.zeros(nv))
    for i, rate in enumerate(rates):
        levels = [
            [reference.on_accelerations(A[3:5], rate[3:5], 1.0, 6)],
            [
                reference.Wanted(eye[nv + driven], np.zeros(len(driven)), np.ones(len(driven))),
                reference.Wanted(eye[2 * nv :], force, np.full(6, 0.1)),
            ],
        ]
        kept = problem
        for level, slack in zip(levels, (0.0, 1e-8), strict=True):  # by rounding nothing is left of a face without room
            x = kept.best(level, damping, slack)
            kept = kept._replace(
                A=np.concatenate([kept.A, *(t.J for t in level)]), b=np.concatenate([kept.b, *(t.J @ x for t in level)])
            )
        assert_close(both.tau[i], x[nv : 2 * nv], 1e-5)
        assert_close(both.forces[0][i], x[2 * nv :], 1e-5)
