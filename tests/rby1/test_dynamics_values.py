"""rby1.dynamics computes what the vendor's library computes."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import rbydyn_jax.rby1.dynamics as rby_dyn
from tests.helpers import RBY1_DIRECTORY, rby1_file

from .sdk import (
    CHAIN,
    DOFS,
    LIMITS,
    assert_all_same,
    assert_same,
    make_robots,
    make_states,
    random_motion,
    sdk,
    urdf,
)

VENDOR = sorted(path.name for path in RBY1_DIRECTORY.glob("*.urdf"))


def move(both, states, motion):
    for robot, state in zip(both, states, strict=True):
        for name, value in motion.items():
            setattr(state, name, value)
        for step in CHAIN:
            getattr(robot, f"compute_{step}")(state)
        robot.compute_inverse_dynamics(state)


def compare_random_states(both, rng, count, M):
    links, joints = both[1].get_link_names(), both[1].get_joint_names()
    for _ in range(count):
        some = [str(x) for x in rng.permutation(links)[: rng.integers(len(links) + 1)]]
        # Their order of the links that were not asked for is that of a hash table, so all are asked for.
        chosen = some + [x for x in links if x not in some]
        states = make_states(both, chosen, [str(x) for x in rng.permutation(joints)[: rng.integers(len(joints) + 1)]])
        for what in ("joint_names", "link_names", "base_link_idx"):
            assert getattr(states[0], what) == getattr(states[1], what)
        move(both, states, random_motion(rng, len(joints)))
        assert_same(states[1].get_tau(), states[0].get_tau(), "tau")
        pairs = [(int(ref), int(tgt)) for ref, tgt in (rng.integers(len(links), size=2) for _ in range(3))]
        assert_all_same(both, states, pairs, M)
        for limit in LIMITS:
            theirs, mine = (getattr(r, f"get_limit_{limit}")(s) for r, s in zip(both, states, strict=True))
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", DOFS)
def test_every_quantity(name):
    both = make_robots(urdf(name), dof=DOFS[name])
    compare_random_states(both, np.random.default_rng(DOFS[name]), 20, M=True)


@pytest.mark.parametrize("name", VENDOR)
def test_every_quantity_of_the_vendors_files(name):
    base = "Base" if name.startswith("leader") else "base"
    both = make_robots(rby1_file(name).read_text(), base)
    compare_random_states(both, np.random.default_rng(1), 3, M=False)


@pytest.mark.parametrize("base", ["link_torso_5", "link_right_arm_2", "ee_left"])
def test_any_link_is_a_base(base):
    both = make_robots(urdf("rby1a"), base)
    assert set(both[0].get_link_names()) == set(both[1].get_link_names())
    compare_random_states(both, np.random.default_rng(2), 3, M=False)


def test_the_dynamic_class_has_a_mass_matrix():
    """Where theirs ends the process."""
    typed, mine = make_robots(urdf("rby1ub"), dof=18), make_robots(urdf("rby1ub"))[1]
    names = mine.get_link_names()
    theirs, state = typed[0].make_state(names, []), mine.make_state(names, [])
    for robot, s in ((typed[0], theirs), (mine, state)):
        s.set_q(np.linspace(-1.0, 1.2, 18))
        robot.compute_forward_kinematics(s)
    assert_same(mine.compute_mass_matrix(state), typed[0].compute_mass_matrix(theirs), "mass matrix")
    tip = names.index("ee_left")
    got, want = (r.compute_reflective_inertia(s, 0, tip) for r, s in ((mine, state), (typed[0], theirs)))
    assert_same(got, want, "reflective inertia")


def test_reflective_inertia():
    """Its error is that of inverting J M^-1 J^T: the bound grows with the condition of that matrix.

    Left out are the pairs at which theirs is no number to compare with: at a lost rank that leaves them a pivot of
    rounding size just above their threshold they return its inverse.
    """
    both = make_robots(urdf("rby1a"), dof=24)
    names = both[1].get_link_names()
    states = make_states(both, names, [])
    rng, ranks = np.random.default_rng(3), set()
    for _ in range(4):
        move(both, states, random_motion(rng, 24))
        M = both[0].compute_mass_matrix(states[0])
        for ref, tgt in rng.integers(len(names), size=(40, 2)).tolist():
            J = both[0].compute_body_jacobian(states[0], ref, tgt)
            values = np.linalg.svd(J @ np.linalg.solve(M, J.T), compute_uv=False)
            rank = int((values > 1e-9 * values[0]).sum()) if values[0] else 0
            theirs, mine = (r.compute_reflective_inertia(s, ref, tgt) for r, s in zip(both, states, strict=True))
            if rank < 6 and np.linalg.matrix_rank(theirs, 1e-13) > rank:
                continue
            condition = values[0] / values[rank - 1] if rank else 1.0
            assert_same(mine, theirs, f"reflective inertia {ref} {tgt}", max(1e-9, 1e-15 * condition))
            ranks.add(rank)
    assert ranks >= {0, 2, 3, 6}


def test_golden_values():
    """Figures of the vendor's library of version 0.10.0, on the RB-Y1 A of version 1.2."""
    text = rby1_file("rby1a_model_v1.2.urdf").read_text()
    robot = rby_dyn.Robot(rby_dyn.load_robot_from_urdf_data(text, "base"))
    wheels, torso, head = ["right_wheel", "left_wheel"], [f"torso_{i}" for i in range(6)], ["head_0", "head_1"]
    arms = [f"{side}_arm_{i}" for side in ("right", "left") for i in range(7)]
    state = robot.make_state(["base", "ee_right"], [*wheels, *torso, *arms, *head])
    i = np.arange(24)
    state.set_q((0.05 * (i + 1) * (-1.0) ** i) % 1.3 - 0.4)
    state.set_qdot(0.1 * np.sin(1 + i))
    state.set_qddot(0.3 * np.cos(2 + i))
    state.set_gravity([0, 0, 0, 0, 0, -9.81])
    for step in CHAIN:
        getattr(robot, f"compute_{step}")(state)
    robot.compute_inverse_dynamics(state)
    pose = [
        [-0.10931734, 0.139387, 0.98418544, 0.1854733],
        [0.86725136, 0.49719574, 0.02591279, 0.07193618],
        [-0.48572091, 0.85636888, -0.17523568, 0.89763585],
        [0, 0, 0, 1],
    ]
    np.testing.assert_allclose(robot.compute_transformation(state, 0, 1), pose, atol=1e-8)
    twist = [-0.16075476, 0.02586464, 0.0884317, -0.02159966, -0.02547938, -0.08765328]
    np.testing.assert_allclose(robot.compute_body_velocity(state, 0, 1), twist, atol=1e-8)
    M = robot.compute_mass_matrix(state)
    np.testing.assert_allclose([M.trace(), M[2, 2]], [102.15646857654521, 26.371113408742122], rtol=1e-12)
    np.testing.assert_allclose(np.linalg.slogdet(M)[1], -62.011610029930154, rtol=1e-12)
    gravity = [101.52605835, -283.87186231, -156.18519111, -69.29997129, 28.8176328, 16.45949828]
    np.testing.assert_allclose(robot.compute_gravity_term(state)[2:8], gravity, atol=1e-8)
    tau = [-0.0010135, -0.00241107, 94.82953319, -269.64986097, -147.14011137, -65.19190031]
    np.testing.assert_allclose(state.tau[:6], tau, atol=1e-8)
    np.testing.assert_allclose(robot.compute_center_of_mass(state, 0), [0.20114746, 0.07762689, 0.48025368], atol=1e-8)
    assert sum(robot.compute_mass(state, k) for k in range(32)) == pytest.approx(132.21919624, rel=1e-9)
    inertia = [0.12949905, 0.05105926, 0.00102564, 3.34873723, 3.87390899, 12.11364564]
    np.testing.assert_allclose(np.diag(robot.compute_reflective_inertia(state, 0, 1)), inertia, rtol=2e-6)
    com_jacobian = np.linalg.norm(robot.compute_center_of_mass_jacobian(state, 0))
    assert com_jacobian == pytest.approx(0.5122528264103798, rel=1e-12)
    nearest = [r.distance for r in robot.detect_collisions_or_nearest_links(state)[:5]]
    np.testing.assert_allclose(nearest, [-0.0584428, -0.05688864, -0.04329973, -0.02500222, -0.01391342], atol=1e-8)


@pytest.mark.parametrize("name", ["rby1a", "rby1m"])
def test_wheel_rates_and_twists_of_the_base_are_those_of_the_sdk(name):
    both = make_robots(urdf(name), dof=DOFS[name])
    rng = np.random.default_rng(4)
    states = make_states(both, [], [str(x) for x in rng.permutation(both[1].get_joint_names())])
    for state in states:
        state.set_qdot(np.arange(float(DOFS[name])))
    for twist in rng.normal(size=(5, 3)):
        for how in ([twist], [twist[1:], twist[0]]):
            for robot, state in zip(both, states, strict=True):
                robot.compute_mobility_inverse_diff_kinematics(state, *how)
            assert_same(states[1].qdot, states[0].qdot, "wheels")
        theirs, mine = (r.compute_mobility_diff_kinematics(s) for r, s in zip(both, states, strict=True))
        assert_same(mine, theirs, "twist")
    named = dict(linear_velocity=[0.1, 0.2], angular_velocity=0.3)
    for robot, state in zip(both, states, strict=True):
        robot.compute_mobility_inverse_diff_kinematics(state, **named)
        robot.compute_mobility_inverse_diff_kinematics(state=state, body_velocity=[0.3, 0.1, 0.2])
    assert_same(states[1].qdot, states[0].qdot, "wheels")


def test_wheels_of_a_robot_without_any():
    both = make_robots(urdf("rby1ub"))
    states = make_states(both, [], [])
    for robot, state in zip(both, states, strict=True):
        robot.compute_mobility_inverse_diff_kinematics(state, [1.0, 2.0, 3.0])
        assert not state.qdot.any()
        np.testing.assert_array_equal(robot.compute_mobility_diff_kinematics(state), np.zeros(3))


def test_resolved_mobile_base():
    differential = make_robots(urdf("rby1a"))[1].mobile_base
    assert isinstance(differential, rby_dyn.MobileBaseDifferential)
    assert (differential.right_wheel_idx, differential.left_wheel_idx) == (0, 1)
    assert (differential.wheel_base, differential.wheel_radius) == (0.53, 0.1)
    mecanum = make_robots(urdf("rby1m"))[1].mobile_base
    assert isinstance(mecanum, rby_dyn.MobileBaseMecanum)
    assert (mecanum.wheel_idx, mecanum.L_x, mecanum.L_y, mecanum.wheel_radius) == ((0, 1, 2, 3), 0.245, 0.245, 0.076)


def test_helical_scaled_and_displaced_screws():
    """Axes are never normalized, a helix advances, and the pose given to make_revolute moves the axis alone."""
    both = []
    for library in (sdk, rby_dyn):
        a, b, c, d, e = (library.Link(name, inertia) for name, inertia in zip("abcde", _inertias(5), strict=True))
        T = np.eye(4)
        T[:3, 3] = [0.3, -0.2, 0.5]
        library.Joint.make_revolute("far", T, np.array([0.0, 2.0, 0.0])).connect_links(a, b, T, T)
        library.Joint.make("helix", np.array([0.0, 0.6, 0.8, 0.1, 0.2, -0.3])).connect_links(b, c, T)
        library.Joint.make_prismatic("slide", T, np.array([0.0, 0.0, 3.0])).connect_links(c, d)
        library.Joint.make("nothing", np.zeros(6)).connect_links(c, e, T)
        both.append(library.Robot(library.RobotConfiguration("odd", a)))
    compare_random_states((both[0], both[1]), np.random.default_rng(5), 10, M=False)


def _inertias(count):
    rng = np.random.default_rng(6)
    for _ in range(count):
        mass, com, half = rng.uniform(0.5, 2.0), rng.normal(size=3), rng.normal(size=(3, 3))
        cross = np.cross(com, np.eye(3)).T
        yield np.block([[half @ half.T - mass * cross @ cross, mass * cross], [-mass * cross, mass * np.eye(3)]])


def test_robot_without_joints():
    both = [x.Robot(x.RobotConfiguration("stone", x.Link("a"))) for x in (sdk, rby_dyn)]
    states = make_states((both[0], both[1]), ["a"], [])
    move(both, states, {})
    assert states[1].q.shape == states[1].tau.shape == (0,)
    assert_all_same((both[0], both[1]), states, [(0, 0)], M=False)
    assert both[1].compute_mass_matrix(states[1]).shape == (0, 0)
    np.testing.assert_array_equal(both[1].compute_reflective_inertia(states[1], 0, 0), np.zeros((6, 6)))


@pytest.mark.float32
@pytest.mark.parametrize("x64", [False, True])
def test_float64_whatever_the_flag(x64):
    both = make_robots(urdf("rby1a"), dof=24)
    states = make_states(both, both[1].get_link_names(), [])
    with jax.enable_x64(x64):
        move(both, states, random_motion(np.random.default_rng(7), 24))
        assert_same(states[1].tau, states[0].tau, "tau", 1e-12)
        assert_all_same(both, states, [(0, 5)], M=True)


def test_massless_links_do_not_spoil_the_center_of_mass():
    """Theirs divides by the mass of each link, and returns NaN for the whole robot if one has none."""
    a, b = rby_dyn.Link("a", np.zeros((6, 6))), rby_dyn.Link("b")
    rby_dyn.Joint.make_fixed("weld").connect_links(a, b, np.diag([1.0, 1.0, 1.0, 1.0]) + np.eye(4, k=3) * 2.0)
    robot = rby_dyn.Robot(rby_dyn.RobotConfiguration("two", a))
    state = robot.make_state(["a", "b"], [])
    np.testing.assert_array_equal(robot.compute_center_of_mass(state, 0), [2.0, 0.0, 0.0])
    np.testing.assert_array_equal(robot.compute_center_of_mass(state, 0, [0, 1]), [2.0, 0.0, 0.0])
    assert np.isnan(robot.compute_center_of_mass(state, 0, 0)).all()
    assert np.isnan(robot.compute_center_of_mass(state, 0, [])).all()


def test_inertias_that_no_body_has():
    """Negative, singular, with coupled blocks: the SDK accepts any symmetric matrix. Columns of M are torques."""
    both = []
    for library in (sdk, rby_dyn):
        rng, links = np.random.default_rng(7), [library.Link("l0")]
        for i in range(4):
            A = rng.normal(size=(6, 6))
            links.append(library.Link(f"l{i + 1}", np.diag([1, 0, 1, 1, 1, 1.0]) if i == 3 else A + A.T))
            T = np.eye(4)
            T[:3, 3] = rng.normal(size=3)
            library.Joint.make_revolute(f"j{i}", np.eye(4), rng.normal(size=3)).connect_links(links[i], links[-1], T)
        both.append(library.Robot(library.RobotConfiguration("odd", links[0])))
    states = [robot.make_state([], [f"j{i}" for i in range(4)]) for robot in both]
    q, columns = rng.normal(size=4), [[], []]
    for a in np.eye(4):
        for robot, state, found in zip(both, states, columns, strict=True):
            state.set_q(q)
            state.set_qddot(a)
            for step in CHAIN:
                getattr(robot, f"compute_{step}")(state)
            robot.compute_inverse_dynamics(state)
            found.append(state.get_tau())
    M = both[1].compute_mass_matrix(states[1])
    assert np.linalg.eigvalsh(M).min() < 0.0
    np.testing.assert_allclose(M, np.array(columns[0]).T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(columns[1], columns[0], rtol=1e-12, atol=1e-12)
    for state in states:
        state.set_gravity([0.5, 0, 0, 0, 1.0, -9.81])
    theirs, mine = (r.compute_gravity_term(s) for r, s in zip(both, states, strict=True))
    np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-11)
