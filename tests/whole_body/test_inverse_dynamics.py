"""Whole-body inverse dynamics against quadprog on Pinocchio's matrices, and against linear programs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax.engines.pinocchio import pin_model
from rbydyn_jax.spatial import cones
from rbydyn_jax.whole_body import (
    Com,
    Effort,
    Force,
    Momentum,
    PatchContact,
    PointContact,
    Pose,
    Posture,
    WholeBodyStatus,
    inverse_dynamics,
)
from tests.helpers import assert_close, untyped
from tests.whole_body import reference

MU, FRICTION, TIGHT = 1e-2, 0.6, 22.0


def _tripod() -> rb.Model:
    """A body on three legs of three hinges each, about axes that are not aligned."""
    rng = np.random.default_rng(5)
    builder = (
        rb.RobotBuilder("tripod").link("world").link("body", 8.0, (0.02, 0.01, 0.0), 0.1).floating("f", "world", "body")
    )
    for leg in range(3):
        angle = 2 * np.pi * leg / 3
        out = np.array([np.cos(angle), np.sin(angle), 0.0])
        parent, at = "body", 0.25 * out
        axes = ((0.0, 0.0, 1.0), (-out[1], out[0], 0.0), (-out[1], out[0], 0.0))
        for k, axis in enumerate(axes):
            name = f"leg{leg}_{k}"
            builder.link(name, 0.6, rng.uniform(-0.05, 0.05, 3), 0.004)
            tilted = np.asarray(axis) + rng.uniform(-0.1, 0.1, 3)
            limits = {"lower": -1.0, "upper": 1.0, "velocity": 3.0, "effort": TIGHT}
            builder.revolute(f"joint{leg}_{k}", parent, name, xyz=at, axis=tilted, **limits)
            parent, at = name, (0.0, 0.0, -0.05) if k == 0 else 0.2 * out + (0.0, 0.0, -0.15)
        builder.link(f"foot{leg}").fixed(f"sole{leg}", parent, f"foot{leg}", xyz=0.05 * out + (0.0, 0.0, -0.2))
    return rb.build_model(builder)


MODEL = _tripod()
PIN = pin_model(MODEL)
FEET = [f"foot{leg}" for leg in range(3)]
DRIVEN = np.arange(6, MODEL.nv)
Q = rb.neutral(MODEL)


def _states(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Configurations, velocities that leave the feet where they are, targets of the centre of mass."""
    rng = np.random.default_rng(11)
    qs, vs = [], []
    for _ in range(count):
        q = np.asarray(rb.integrate(MODEL, Q, jnp.asarray(rng.uniform(-0.2, 0.2, MODEL.nv))))
        J = np.concatenate([PIN.jacobian(q, foot)[3:] for foot in FEET])
        v = rng.uniform(-0.5, 0.5, MODEL.nv)
        qs.append(q)
        vs.append(v - np.linalg.pinv(J) @ (J @ v))
    targets = np.stack([PIN.center_of_mass(q) for q in qs]) + rng.uniform(-0.15, 0.15, (count, 3))
    return np.stack(qs), np.stack(vs), targets


def _solve(q, v, target, least):
    tasks = [Com(target, 5.0), Posture(Q, 0.1), Pose("body", jnp.eye(4), jnp.array([2.0, 2.0, 2.0, 0.0, 0.0, 0.0]))]
    contacts = [PointContact(foot, friction=FRICTION, least=least, most=150.0) for foot in FEET]
    return inverse_dynamics(MODEL, q, v, tasks, contacts, horizon=0.1, damping=MU)


SOLVE = jax.jit(jax.vmap(_solve))


def _touches(q, least=0.0):
    faces = np.asarray(cones.friction_cone_faces(FRICTION))
    poses = PIN.fk(q)
    for foot in FEET:
        R = poses[MODEL.link_names.index(foot)][:3, :3]
        T = np.eye(4)
        T[:3, :3] = R.T @ _tangents()
        yield reference.Touch(foot, T, faces, least, 150.0)


def _tangents() -> np.ndarray:
    """The axes of a contact on the ground: its first tangent is normal to the world's first axis and to the normal."""
    return np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def _wanted(q, v, target):
    """The tasks, by Pinocchio."""
    nv, count = MODEL.nv, 3 * len(FEET)
    zero = np.zeros(nv)
    J = PIN.com_jacobian(q)
    com, drift = PIN.center_of_mass(q), PIN.com_motion(q, v, zero)[1]
    b = 100.0 * (target - com) - 20.0 * (J @ v) - drift
    yield reference.on_accelerations(J, b, 5.0, count)
    posture = 100.0 * np.asarray(rb.difference(MODEL, q, Q)) - 20.0 * v
    yield reference.on_accelerations(np.eye(nv)[DRIVEN], posture[DRIVEN], 0.1, count)
    J = PIN.jacobian(q, "body")[:3]
    turn = np.asarray(rb.spatial.so3.log(jnp.asarray(PIN.fk(q)[MODEL.link_names.index("body")][:3, :3].T)))
    b = 100.0 * turn - 20.0 * (J @ v) - PIN.acceleration(q, v, zero, "body")[:3]
    yield reference.on_accelerations(J, b, 2.0, count)


@pytest.mark.slow
def test_the_optimum_is_that_of_quadprog():
    qs, vs, targets = _states(12)
    result = SOLVE(qs, vs, targets, np.zeros(12))
    assert (result.status == WholeBodyStatus.OPTIMAL).all()
    active = 0
    for i, (q, v, target) in enumerate(zip(qs, vs, targets, strict=True)):
        problem = reference.whole(PIN, q, v, list(_touches(q)), DRIVEN, horizon=0.1)
        x = problem.best(list(_wanted(q, v, target)), reference.damping_of(PIN, 9, DRIVEN, MU))
        a, tau, forces = np.split(x, [MODEL.nv, 2 * MODEL.nv])
        assert_close(result.a[i], a, 1e-6)
        assert_close(result.tau[i], tau, 1e-6)
        assert_close(jnp.concatenate([f[i] for f in result.forces]), forces, 1e-6)
        active += int((problem.C @ x - problem.d < 1e-7).sum())
    assert active > 12
    assert_close(result.residual, np.zeros_like(vs), 1e-10, scale=100.0)
    assert_close(result.slip, np.zeros((12, 9)), 1e-10, scale=100.0)


@pytest.mark.ci
def test_the_status_is_that_of_a_linear_program():
    qs, vs, targets = _states(12)
    least = np.linspace(5.0, 80.0, 12)
    result = SOLVE(qs, vs, targets, least)
    possible = [
        reference.whole(PIN, q, v, list(_touches(q, low)), DRIVEN, horizon=0.1).feasible()
        for q, v, low in zip(qs, vs, least, strict=True)
    ]
    assert 2 <= sum(possible) <= 10
    want = [WholeBodyStatus.OPTIMAL if x else WholeBodyStatus.INFEASIBLE for x in possible]
    assert result.status.tolist() == want


@pytest.mark.ci
def test_weights_and_targets_are_lists_and_integers_too():
    ones = [1, 0, 2, 1, 1, 3]
    for given in (ones, tuple(ones), np.array(ones)):
        assert np.asarray(Pose("sole", np.eye(4), given).weight).tolist() == ones
        assert np.asarray(Momentum(weight=given).weight).tolist() == ones
        assert (
            np.asarray(Effort(given, given).target).tolist() == np.asarray(Posture(ones, given).weight).tolist() == ones
        )
    assert np.asarray(Com((0, 0, 1), [1, 1, 0]).weight).tolist() == [1, 1, 0]
    with pytest.raises(rb.ShapeError, match=r"weight must be a number or have shape \(6,\), got \(3,\)"):
        Pose("sole", np.eye(4), (1, 1, 1))
    with pytest.raises(rb.DtypeError, match="weight must be 3 real numbers"):
        Com((0, 0, 1), untyped((1, None, 1)))
    with pytest.raises(rb.DtypeError, match="target must be an array of floats, got NoneType"):
        Pose("sole", None)


def test_arguments_that_are_not_finite_are_said():
    qs, vs, targets = _states(12)
    vs[3, 7], targets[5, 0] = np.nan, np.inf
    status = SOLVE(qs, vs, targets, np.zeros(12)).status
    assert status[3] == status[5] == WholeBodyStatus.NOT_FINITE
    assert (np.delete(status, [3, 5]) == WholeBodyStatus.OPTIMAL).all()


@pytest.mark.parametrize("kind", [tuple, list, np.array, jnp.array])
def test_targets_may_be_lists(kind):
    """Of all tasks; of a wrong size they are refused where the size is known."""
    numbers = [0.0, 0.0, 0.0, 0.0, 0.0, 40.0]
    for task in (Force(0, kind(numbers)), Posture(kind(numbers)), Momentum(kind(numbers)), Com(kind(numbers[3:]))):
        assert_close(task.target, np.array(numbers)[-np.size(task.target) :])
    with pytest.raises(rb.ShapeError, match=r"tasks\[0\]\.target must have shape"):
        inverse_dynamics(MODEL, Q, jnp.zeros(MODEL.nv), [Posture(kind(numbers[:2]))])
    for wrong in (["a"], [[1.0], [2.0, 3.0]], None):
        with pytest.raises(rb.DtypeError, match="target must be"):
            Force(0, untyped(wrong))


@pytest.mark.ci
def test_traced_numbers_that_are_none_are_said():
    @jax.vmap
    def status(weight, damping, horizon):
        return inverse_dynamics(
            MODEL, Q, jnp.zeros(MODEL.nv), [Posture(Q, weight)], damping=damping, horizon=horizon
        ).status

    right = 1.0, MU, 0.1
    wrong = [right[:k] + (x,) + right[k + 1 :] for k in range(3) for x in (-1.0, np.nan, np.inf)]
    found = status(*(jnp.array(x) for x in zip(right, *wrong, strict=True)))
    assert found[0] != WholeBodyStatus.NOT_FINITE and (found[1:] == WholeBodyStatus.NOT_FINITE).all()


@pytest.mark.slow
def test_derivatives_are_those_of_differences():
    """An arm that pushes against a wall, with limits of torque and friction that are active; backward."""
    b = rb.RobotBuilder("arm").link("base")
    for k, axis in enumerate(((0, 0, 1), (0, 1, 0.2), (0, 1, 0), (0.3, 1, 0))):
        b.link(f"link{k}", 1.0, (0.1, 0.01, 0.0), 0.01)
        b.revolute(f"j{k}", f"link{k - 1}" if k else "base", f"link{k}", xyz=(0.2, 0, 0), axis=axis, effort=9.0)
    arm = rb.build_model(b)

    def value(x):
        q, v, force = x[:4], x[4:8], x[8:]
        tasks = [Posture(jnp.zeros(4), 0.3), Force(0, force, 1.0), Effort(0.0, 0.01)]
        wall = PointContact("link3", (0.2, 0.0, 0.0), (-1.0, 0.0, 0.0), 0.5, damping=5.0)
        result = inverse_dynamics(arm, q, v, tasks, [wall], horizon=0.1, damping=MU)
        return jnp.concatenate([result.a, result.tau, result.forces[0]])

    rng = np.random.default_rng(3)
    x = rng.uniform(-0.5, 0.5, (20, 11)) + np.array([0, 0.8, -1.2, 0.7] + [0] * 4 + [5, 0, 20.0])
    weights, along = np.cos(np.arange(11.0)), rng.normal(size=x.shape)
    found = jax.jit(jax.vmap(jax.grad(lambda x: value(x) @ weights)))(x)
    solve = jax.jit(jax.vmap(value))
    steps = [(solve(x + h * along) - solve(x - h * along)) @ weights / (2 * h) for h in (1e-6, 3e-6)]
    smooth = np.abs(steps[0] - steps[1]) < 1e-6 * np.abs(steps[0]) + 1e-4  # no limit becomes active nearby
    assert smooth.sum() >= 15
    assert_close((found * along).sum(axis=1)[smooth], steps[0][smooth], 1e-5)
    limited = np.abs(solve(x)[:, 4:8]) > 9.0 - 1e-6
    assert limited.any() and np.isfinite(found).all()


@pytest.mark.slow
def test_a_level_leaves_what_a_position_alone_has_reached():
    arm = rb.robots.panda_like()
    q, v = jnp.array([0.3, -0.4, 0.2, -1.8, 0.1, 1.6, 0.5]), jnp.zeros(7)
    target = rb.link_pose(arm, q, "tool").at[0, 3].add(0.02)
    place = Pose("tool", target, jnp.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0]))  # three rows of nothing come first
    alone = inverse_dynamics(arm, q, v, [place]).errors[0][3:]
    first = inverse_dynamics(arm, q, v, [place, Posture(q + 0.3, priority=1)]).errors[0][3:]
    assert_close(first, alone, 1e-4, scale=1.0)


@pytest.mark.slow
def test_more_contacts_of_a_foot_than_it_needs_do_not_slip():
    q, v, _ = (x[0] for x in _states(1))
    corners = [(x, y, 0.0) for x in (0.03, -0.03) for y in (0.02, -0.02)]
    contacts = [PointContact(FEET[0], corner, friction=FRICTION) for corner in corners]
    contacts += [PointContact(foot, friction=FRICTION) for foot in FEET[1:]]
    result = inverse_dynamics(MODEL, q, v, [Com(PIN.center_of_mass(q), 5.0), Posture(Q, 0.1)], contacts)
    assert result.status == WholeBodyStatus.OPTIMAL
    assert float(jnp.abs(result.slip).max()) < 1e-9


def _heel_and_toe() -> rb.Model:
    """A pelvis on two legs of six hinges; the left foot has a toe on a hinge of its own."""
    builder = rb.RobotBuilder("walker").link("w").link("pelvis", 10.0, inertia=0.2).floating("base", "w", "pelvis")
    axes = ((0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 0, 0))
    for side, y in (("l", 0.1), ("r", -0.1)):
        above = "pelvis"
        for k, axis in enumerate(axes):
            name, at = f"{side}{k}", (0.0, y if k == 0 else 0.0, -0.3 if k in (3, 4) else 0.0)
            builder.link(name, 1.0, (0.0, 0.0, -0.1 if k in (2, 3) else 0.0), 0.01)
            builder.revolute(f"{side}j{k}", above, name, xyz=at, axis=axis, lower=-2, upper=2, effort=200)
            above = name
    builder.link("toe", 0.2, inertia=1e-3)
    builder.revolute("toe_joint", "l5", "toe", xyz=(0.12, 0.0, 0.0), axis=(0, 1, 0), lower=-1, upper=1, effort=50)
    return rb.build_model(builder)


@pytest.mark.slow
def test_a_heel_and_its_toe_share_all_joints_but_one_and_their_order_does_not_matter():
    """Whatever the order, the objective is the same, and what is said to be feasible keeps every condition."""
    model = _heel_and_toe()
    soles = {name: PatchContact(name, None, size) for name, size in (("l5", (0.05, 0.04)), ("r5", (0.1, 0.04)))}
    soles["toe"] = PatchContact("toe", None, (0.03, 0.04))
    bent = rb.neutral(model).at[jnp.array([9, 10, 11, 15, 16, 17])].set(jnp.array([-0.3, 0.6, -0.3] * 2))
    tasks = [Com(rb.center_of_mass(model, bent), 10.0), Posture(bent, 0.1)]
    keys = jax.random.split(jax.random.key(0), 8)
    random = jax.vmap(rb.random_configuration, (None, 0))(model, keys)
    orders = (("l5", "r5", "toe"), ("l5", "toe", "r5"), ("toe", "r5", "l5"))
    driven, mass = np.arange(6, model.nv), float(rb.total_mass(model))
    costs = []
    for order in orders:
        solve = jax.jit(
            jax.vmap(lambda q, order=order: inverse_dynamics(model, q, jnp.zeros(19), tasks, [soles[x] for x in order]))
        )
        found = solve(jnp.concatenate([bent[None], random]))
        assert (found.status == WholeBodyStatus.OPTIMAL).all()
        assert_close(found.slip, np.zeros_like(found.slip), 1e-9, scale=1.0)
        assert_close(found.residual[:, :6], np.zeros((9, 6)), 1e-9, scale=1.0)
        for name, force in zip(order, found.forces, strict=True):
            faces = np.asarray(soles[name].faces())
            assert (np.einsum("ij,nj->ni", faces, force) <= 1e-6).all() and (np.asarray(force)[:, 5] >= -1e-6).all()
        com, posture = found.errors
        size = (np.asarray(found.a)[:, driven] ** 2).sum(1) + sum(
            (np.asarray(f) ** 2).sum(1) for f in found.forces
        ) / mass**2
        costs.append(10.0 * (com**2).sum(1) + 0.1 * (posture[:, 6:] ** 2).sum(1) + 1e-4 * size)
    assert_close(costs[1], costs[0], 1e-6)
    assert_close(costs[2], costs[0], 1e-6)


@pytest.mark.slow
def test_the_velocities_of_points_that_move_keep_their_components_in_the_axes_of_the_link():
    rng = np.random.default_rng(3)
    contacts = [PointContact(foot, (0.0, 0.02, 0.01), (0.1, 0.2, 1.0), friction=FRICTION) for foot in FEET]
    solve = jax.jit(lambda q, v: inverse_dynamics(MODEL, q, v, [Posture(Q, 0.1), Com(jnp.zeros(3), 1.0)], contacts))
    for _ in range(4):
        q = rb.integrate(MODEL, Q, jnp.asarray(rng.uniform(-0.2, 0.2, MODEL.nv)))
        v = jnp.asarray(rng.uniform(-0.5, 0.5, MODEL.nv))
        a = solve(q, v).a

        def placed(t, q=q, v=v, a=a):
            poses = rb.fk(MODEL, rb.integrate(MODEL, q, v * t + 0.5 * a * t**2))
            return jnp.stack([poses[MODEL.link_index(foot)] for foot in FEET])

        def seen(t, placed=placed):
            speed = jax.jacfwd(lambda t: placed(t) @ jnp.array([0.0, 0.02, 0.01, 1.0]))(t)
            return jnp.einsum("fji,fj->fi", placed(t)[:, :3, :3], speed[:, :3])

        assert float(jnp.abs(seen(0.0)).max()) > 0.05
        assert_close(jax.jacfwd(seen)(0.0), np.zeros((3, 3)), 1e-9, scale=1.0)


def _on_a_stand() -> rb.Model:
    """An arm and a leg on a base that does not move, each with a joint that mimics another."""
    builder = rb.RobotBuilder("stand").link("base", 5.0, (0.01, 0.02, 0.05), 0.2)
    hinges = (
        ("j1", "base", "l1", (0.1, 0.0, 0.1), (0.1, 0.0, 0.2), (0, 1, 0), None),
        ("j3", "l2", "l3", (0.05, 0.0, 0.2), (0.2, 0.0, 0.0), (1, 0, 0), None),
        ("g1", "l3", "finger", (0.0, 0.03, 0.1), (0.0, 0.0, 0.0), (1, 0, 0), None),
        ("g2", "l3", "thumb", (0.0, -0.03, 0.1), (0.0, 0.0, 0.0), (1, 0, 0), rb.Mimic("g1", -0.7, 0.2)),
        ("j4", "base", "l4", (-0.1, 0.0, -0.1), (0.0, 0.2, 0.0), (0, 1, 0), None),
        ("j5", "l4", "foot", (0.0, 0.0, -0.3), (0.0, 0.0, 0.0), (1, 0, 0), rb.Mimic("j4", 0.5, -0.1)),
    )
    for k, name in enumerate(("l1", "l2", "l3", "finger", "thumb", "l4", "foot")):
        builder.link(name, 1.0 + 0.1 * k, (0.02, 0.01 * k, 0.03), 0.02)
    builder.prismatic("j2", "l1", "l2", axis=(0, 0, 1), xyz=(0.0, 0.1, 0.2), rpy=(0.0, 0.3, 0.0))
    for name, parent, child, xyz, rpy, axis, mimic in hinges:
        builder.revolute(name, parent, child, axis=axis, xyz=xyz, rpy=rpy, mimic=mimic)
    return rb.build_model(builder)


@pytest.mark.ci
def test_what_does_not_move_is_no_task_and_touches_nothing():
    """The rows of zeros of its Jacobian made XLA end the process."""
    model = _on_a_stand()
    q = jnp.zeros(model.nv)
    posture, still = Posture(q + 0.1), Pose("base", jnp.eye(4))
    found, alone = (inverse_dynamics(model, q, q, tasks) for tasks in ([still, posture], [posture]))
    assert found.status == alone.status == WholeBodyStatus.OPTIMAL
    assert_close(found.a, alone.a, kind="solve")
    with pytest.raises(rb.ArgumentError, match=r"contacts\[0\] must move relative to the world, got 'base'"):
        inverse_dynamics(model, q, q, [posture], [PointContact("base")])
    with pytest.raises(rb.ModelError, match="actuated must not hold the mimic joint 'g2'"):
        inverse_dynamics(model, q, q, [posture], [PointContact("foot")], actuated=("j1", "g2"))
    with pytest.raises(rb.ModelError, match="actuated must not hold the mimic joint 'g2'"):
        rb.constraints.inverse_dynamics(model, q, q, q, (), ("g2",))
