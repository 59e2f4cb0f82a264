"""States of rby1.dynamics: what is cached when, what goes stale, what is refused, copies and pickles."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import rbydyn_jax as rd
import rbydyn_jax.rby1.dynamics as rby_dyn
from tests.helpers import untyped

from .sdk import CHAIN, assert_all_same, assert_same, make_robots, make_states, random_motion, urdf

GRAVITY = [0, 0, 0, 0, 0, -9.81]


def an_arm(joints=3):
    """A chain of links a, b, c, ... with joints j0, j1, ..., ours."""
    links = [rby_dyn.Link(chr(ord("a") + i)) for i in range(joints + 1)]
    for i in range(joints):
        T = np.eye(4)
        T[:3, 3] = [0.1, 0.2, 0.3 + i]
        joint = rby_dyn.Joint.make_revolute(f"j{i}", axis=np.roll([0.0, 0.0, 1.0], i))
        joint.connect_links(links[i], links[i + 1], T)
    return rby_dyn.Robot(rby_dyn.RobotConfiguration("arm", links[0]))


@pytest.fixture(scope="module")
def both():
    return make_robots(urdf("rby1a"), dof=24)


def test_caches_go_stale_as_theirs_do(both):
    """A random walk over all calls that change a state; after each of them everything is compared."""
    rng = np.random.default_rng(0)
    names = both[1].get_link_names()
    for walk in range(6):
        joints = [] if walk % 2 else [str(x) for x in rng.permutation(both[1].get_joint_names())]
        states = make_states(both, names, joints)
        called = set()
        for _ in range(40):
            motion = random_motion(rng, 24)
            calls = {f"set_{name}": (value,) for name, value in motion.items()}
            calls |= {"set_gravity": (rng.normal(size=6),), "set_tau": (rng.normal(size=24),)}
            steps = [f"compute_{step}" for step in CHAIN]
            if "compute_2nd_diff_forward_kinematics" in called:  # before, theirs reads uninitialized memory
                steps.append("compute_inverse_dynamics")
            call = str(rng.choice([*calls, *steps, *steps]))
            called.add(call)
            for robot, state in zip(both, states, strict=True):
                if call in calls:
                    getattr(state, call)(*calls[call])
                else:
                    getattr(robot, call)(state)
            ref, tgt = map(int, rng.integers(len(names), size=2))
            assert_all_same(both, states, [(ref, tgt)], M=True)
            for name in ("q", "qdot", "qddot", "V0", "Vdot0"):
                assert_same(getattr(states[1], name), getattr(states[0], name), name)
            if called & {"set_tau", "compute_inverse_dynamics"}:
                assert_same(states[1].tau, states[0].tau, "tau")


def test_a_fresh_state_is_at_zero(both):
    states = make_states(both, both[1].get_link_names(), [])
    for state in states:
        state.set_q(np.ones(24))
    assert_all_same(both, states, [(0, 5), (3, 20)], M=True)
    assert not both[1].compute_space_jacobian(states[1], 0, 5).any()


@pytest.mark.parametrize("count", [0, 1, 5, 12, 23])
def test_shorter_vectors(both, count):
    """In the robot's own order, and in any in which its first joints come first, theirs sets these."""
    rng = np.random.default_rng(count)
    own = both[1].get_joint_names()
    first = [str(x) for x in rng.permutation(own[:count])]
    states = make_states(both, [], first)
    for state in states:
        state.set_q(np.arange(24.0))
        state.set_q(-1.0 - np.arange(float(count)))
    assert_same(states[1].q, states[0].q, "q")


def test_shorter_vectors_that_would_set_the_wrong_joints():
    robot = an_arm()
    state = robot.make_state([], ["j2"])
    with pytest.raises(rd.ShapeError, match="q must have 3 entries, one for each of joint_names, got 1"):
        state.set_q([1.0])


@pytest.mark.parametrize("name", ["q", "qdot", "qddot", "tau"])
def test_setters(both, name):
    states = make_states(both, [], [])
    column = np.arange(24.0)[:, None]
    for value in (column, column[:, 0].astype(np.float32), column[:, 0].tolist(), tuple(range(24))):
        for state in states:
            getattr(state, f"set_{name}")(value)
        assert_same(getattr(states[1], name), getattr(states[0], name), name)
        assert_same(getattr(states[1], f"get_{name}")(), getattr(states[0], name), name)
    for state in states:
        with pytest.raises(RuntimeError):
            getattr(state, f"set_{name}")(np.zeros(25))
        for wrong in (column.T, 1.0, "q", None):
            with pytest.raises(TypeError):
                getattr(state, f"set_{name}")(wrong)


def test_base_motion_setters(both):
    states = make_states(both, [], [])
    for state in states:
        state.set_V0(np.arange(7.0))
        state.Vdot0 = np.arange(8.0)
    assert_same(states[1].V0, states[0].V0, "V0")
    assert_same(states[1].Vdot0, states[0].Vdot0, "Vdot0")
    for state in states:
        state.set_gravity(GRAVITY)
        for method in (state.set_Vdot0, state.set_gravity):
            with pytest.raises(TypeError):
                method(np.zeros(7))
    assert_same(states[1].Vdot0, states[0].Vdot0, "Vdot0")
    for short in (lambda s: s.set_V0(np.zeros(5)), lambda s: setattr(s, "Vdot0", np.zeros(5))):
        with pytest.raises(rd.ShapeError, match="must have 6 entries, got 5"):
            short(states[1])


def test_what_theirs_leaves_uninitialised():
    robot = an_arm()
    state = robot.make_state([], [])
    with pytest.raises(rd.StaleStateError, match=r"compute_inverse_dynamics\(state\)"):
        state.get_tau()
    robot.compute_forward_kinematics(state)
    robot.compute_diff_forward_kinematics(state)
    with pytest.raises(RuntimeError, match="call compute_2nd_diff_forward_kinematics"):
        robot.compute_inverse_dynamics(state)


def test_getters_return_copies(both):
    state = make_states(both, [], [])[1]
    for name in ("q", "qdot", "V0", "Vdot0"):
        getattr(state, name)[0] = 5.0
        assert getattr(state, name)[0] == 0.0
    given = np.ones(24)
    state.set_q(given)
    given[:] = 2.0
    assert (state.q == 1.0).all()
    state.joint_names.clear()
    assert len(state.joint_names) == 24


@pytest.mark.parametrize("name", ["base_link_idx", "joint_names", "link_names"])
def test_names_are_read_only(both, name):
    with pytest.raises(AttributeError):
        setattr(make_states(both, [], [])[1], name, None)


def test_names_come_in_a_documented_order():
    robot = make_robots(urdf("rby1a"))[1]
    assert robot.joint_names[:10] == ["right_wheel", "left_wheel", *(f"torso_{i}" for i in range(6)), *ARMS]
    assert robot.link_names[:5] == ["base", "wheel_r", "wheel_l", "link_torso_0", "link_torso_1"]
    state = robot.make_state(["ee_left", "base", "ee_left"], ["head_1"])
    assert state.link_names[:5] == ["ee_left", "base", "ee_left", "wheel_r", "wheel_l"]
    assert state.joint_names[:3] == ["head_1", "right_wheel", "left_wheel"]
    assert state.get_base_link_idx() == 1


def test_the_index_of_the_base_is_that_of_the_sdk(both):
    for names in (["ee_right", "base"], ["base", "ee_right", "base"], ["base", "base", "ee_left"]):
        theirs, ours = (robot.make_state(names, []) for robot in both)
        assert ours.base_link_idx == theirs.base_link_idx
        assert ours.link_names[ours.base_link_idx] == "base"


def test_names_may_be_arrays(both):
    """As for the SDK: of strings, or of objects that are strings."""
    for links, joints in ((np.array(["base", "ee_right"]), np.array(["head_1"], object)), (np.zeros(0), np.zeros(0))):
        theirs, ours = (robot.make_state(links, joints) for robot in both)
        assert ours.link_names[: len(links)] == theirs.get_link_names()[: len(links)] == links.tolist()
        assert ours.joint_names[: len(joints)] == theirs.get_joint_names()[: len(joints)] == joints.tolist()
    base = rby_dyn.MobileBase(rby_dyn.MobileBaseType.Differential, np.eye(4), np.array(["l", "r"]), [0.5, 0.1])  # pyright: ignore[reportArgumentType]
    assert base.joints == ["l", "r"]


ARMS = ("right_arm_0", "left_arm_0")


@pytest.mark.parametrize(
    ("links", "joints", "error", "message"),
    [
        (["bx"], [], rd.NameNotFoundError, "no link named 'bx'"),
        ([], ["j9"], rd.NameNotFoundError, "no joint named 'j9'; the joints are"),
        ([], ["j0", "j0"], rd.ArgumentError, "a joint more than once"),
        ([], ["j0", "j1", "j2", "j0"], rd.ArgumentError, "a joint more than once"),
        ("base", [], TypeError, "link_names must be a list of names"),
        (None, [], TypeError, "link_names must be a list of names"),
        (np.array([["base"]]), [], TypeError, "link_names must be a list of names"),
        (np.array("base"), [], TypeError, "link_names must be a list of names"),
    ],
)
def test_make_state_refuses(links, joints, error, message):
    with pytest.raises(error, match=message) as caught:
        an_arm().make_state(links, joints)
    assert isinstance(caught.value, RuntimeError | TypeError)  # what scripts for the SDK catch


INDEXED = ("transformation", "body_velocity", "space_jacobian", "body_jacobian", "reflective_inertia")
ONE = ("mass", "total_inertial", "center_of_mass", "center_of_mass_jacobian")


@pytest.mark.parametrize("what", [*INDEXED, *ONE])
def test_indices_are_checked(what):
    robot = an_arm()
    state = robot.make_state([], [])
    call = getattr(robot, f"compute_{what}")
    rest = (0,) if what in INDEXED else ()
    with pytest.raises(rd.ArgumentError, match="must be less than 4, the number of links of the state, got 4"):
        call(state, 4, *rest)
    for wrong in (-1, 1.0, "base", None):
        with pytest.raises(TypeError):
            call(state, wrong, *rest)
    call(state, np.int64(3), *rest)


def test_center_of_mass_indices_are_checked():
    robot = an_arm()
    state = robot.make_state([], [])
    for target in (4, [0, 4], np.array([4])):
        with pytest.raises(rd.ArgumentError, match="must be less than 4"):
            untyped(robot.compute_center_of_mass)(state, 0, target)
    with pytest.raises(
        rd.DtypeError, match=r"target_link must be an index or a list of them, got an array of shape \(\)"
    ):
        untyped(robot.compute_center_of_mass)(state, 0, np.array(1))
    with pytest.raises(rd.ArgumentError, match="target_link must be less than 4"):
        robot.compute_center_of_mass_jacobian(state, 0, 4)


def test_states_belong_to_their_robot():
    robot = an_arm()
    with pytest.raises(rd.ArgumentError, match="made by another robot"):
        robot.compute_forward_kinematics(an_arm(4).make_state([], []))
    robot.compute_forward_kinematics(an_arm().make_state([], []))  # an equal one, as in the SDK
    with pytest.raises(TypeError, match="must be a State, got NoneType"):
        untyped(robot.compute_forward_kinematics)(None)
    both = [make_robots(urdf("rby1a"), dof=dof)[1] for dof in (24, None)]
    for one, other in (both, both[::-1]):
        with pytest.raises(TypeError, match="state must be a State"):
            one.compute_forward_kinematics(other.make_state([], []))


def test_typed_robots():
    for name, dof, kind in (("rby1a", 24, rby_dyn.Robot_24), ("rby1m", 26, rby_dyn.Robot_26)):
        configuration = rby_dyn.load_robot_from_urdf_data(urdf(name), "base")
        state = kind(configuration).make_state([], [])
        assert type(state) is getattr(rby_dyn, f"State_{dof}")
        with pytest.raises(rd.ModelError, match=f"Robot_18 needs 18 joints, and robot .* has {dof}"):
            rby_dyn.Robot_18(configuration)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_states_and_robots_are_copied_and_pickled(copied):
    robot = make_robots(urdf("rby1a"), dof=24)[1]
    state = robot.make_state(["base", "ee_left"], ["head_0"])
    state.set_q(np.linspace(-1.0, 1.0, 24))
    state.set_gravity(GRAVITY)
    robot.compute_forward_kinematics(state)
    pose = robot.compute_transformation(state, 0, 1)
    robot.detect_collisions_or_nearest_links(state, 1)
    other, second = copied(state), copied(robot)
    assert type(other) is rby_dyn.State_24 and type(second) is rby_dyn.Robot_24
    state.set_q(np.zeros(24))  # the copy keeps its own
    robot.compute_forward_kinematics(state)
    np.testing.assert_array_equal(second.compute_transformation(other, 0, 1), pose)
    np.testing.assert_array_equal(other.q, np.linspace(-1.0, 1.0, 24))
    second.compute_forward_kinematics(other)
    np.testing.assert_array_equal(second.compute_transformation(other, 0, 1), pose)
    nearest = second.detect_collisions_or_nearest_links(other, 1)[0]
    assert pickle.loads(pickle.dumps(nearest)).distance == nearest.distance


def test_errors_are_pickled():
    for error in (_error(lambda: an_arm().make_state(["x"], [])), _error(lambda: load("<robot><link/></robot>"))):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and isinstance(again, RuntimeError) and str(again) == str(error)


def load(text):
    return rby_dyn.load_robot_from_urdf_data(text, "base")


def _error(call):
    with pytest.raises(rd.RbydynError) as caught:
        call()
    return caught.value


def test_nan_stays_nan():
    robot = an_arm()
    state = robot.make_state(["a", "d"], [])
    state.set_q(np.full(3, np.nan))
    robot.compute_forward_kinematics(state)
    assert np.isnan(robot.compute_transformation(state, 0, 1)[:3]).any()
    assert np.isnan(robot.compute_reflective_inertia(state, 0, 1)).all()
