"""Self-collision of rby1.dynamics against the vendor's: order, fill, frames; and the exact distance of capsules."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import rbydyn_jax as rd
import rbydyn_jax.rby1.dynamics as rby_dyn

from .sdk import DOFS, make_robots, make_states, sdk, urdf


def poses(rng, count):
    for _ in range(count):
        R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        T = np.eye(4)
        T[:3, :3] = R * np.sign(np.linalg.det(R))
        T[:3, 3] = 0.3 * rng.normal(size=3)
        yield T


@pytest.mark.slow
@pytest.mark.parametrize("name", DOFS)
def test_order_fill_and_frames(name):
    """Theirs calls axes parallel below a fixed angle, and is then larger than the least distance: by up to 0.5 mm."""
    both = make_robots(urdf(name), dof=DOFS[name])
    rng, larger, compared = np.random.default_rng(0), 0, 0
    pairs = 29 if name == "rby1ub" else 43
    for trial in range(40):
        links = [str(x) for x in rng.permutation(both[1].get_link_names())]
        states = make_states(both, links, [])
        q = rng.uniform(-1.5, 1.5, DOFS[name]) * (trial > 0)
        for robot, state in zip(both, states, strict=True):
            state.set_q(q)
            robot.compute_forward_kinematics(state)
        for count in (0, -1, 3, 100):
            theirs, mine = (r.detect_collisions_or_nearest_links(s, count) for r, s in zip(both, states, strict=True))
            assert count < 100 or len(mine) == pairs
            assert [r.distance for r in mine] == sorted(r.distance for r in mine)
            key = {(r.link1, r.link2): r for r in theirs}
            matched = 0
            for result in mine:
                want = key.get((result.link1, result.link2))
                if want is None:  # just beyond the last one of theirs
                    continue
                matched += 1
                excess = want.distance - result.distance
                assert -1e-9 <= excess <= 5e-4
                larger += excess > 1e-9
                if excess <= 1e-9:  # theirs snaps the points: by the root of what that adds to the distance
                    np.testing.assert_allclose(result.position1, want.position1, atol=3e-5)
                    np.testing.assert_allclose(result.position2, want.position2, atol=3e-5)
            assert matched >= len(theirs) - 1 and abs(len(mine) - len(theirs)) <= 1
            compared += matched
        mine = both[1].detect_collisions_or_nearest_links(states[1], collision_threshold=100)
        assert both[1].detect_collisions_or_nearest_links(states[1]) is not None
        assert len(both[1].detect_collisions_or_nearest_links(states[1])) == sum(r.distance <= 0 for r in mine)
    assert larger <= 0.01 * compared


def test_nearest_pair_at_rest():
    robot = make_robots(urdf("rby1a"))[1]
    state = robot.make_state(["base"], [])
    first, second = robot.detect_collisions_or_nearest_links(state, 2)
    assert first.distance == pytest.approx(0.030511768393435196, abs=1e-12)
    assert second.distance == pytest.approx(first.distance, abs=1e-9)  # its mirror image


def test_a_link_that_is_listed_twice_meets_itself():
    both = make_robots(urdf("rby1a"))
    names = [*both[1].get_link_names(), "link_torso_2", "link_right_arm_5"]
    states = make_states(both, names, [])
    theirs, mine = (r.detect_collisions_or_nearest_links(s, 200) for r, s in zip(both, states, strict=True))
    assert len(theirs) == len(mine) > 43
    np.testing.assert_allclose([r.distance for r in mine], [r.distance for r in theirs], atol=1e-9)


def test_collision_objects_are_live():
    both = []
    for library in (sdk, rby_dyn):
        a, b = library.Link("a"), library.Link("b")
        T = np.eye(4)
        T[:3, 3] = [1.0, 0.0, 0.0]
        library.Joint.make_revolute("j").connect_links(a, b, T)
        both.append((library, a, b, library.Robot(library.RobotConfiguration("r", a))))
    found = []
    for library, a, b, robot in both:
        state = robot.make_state(["a", "b"], [])

        def distances(robot=robot, state=state):
            return [r.distance for r in robot.detect_collisions_or_nearest_links(state, 10)]

        steps = [distances()]
        first, second = library.Collision("c"), library.Collision("d")
        a.add_collision(first)
        b.add_collision(second)
        first.add_geom(library.GeomCapsule(0.2, 0.1, 1, 0))
        steps.append(distances())
        second.add_geom(library.GeomCapsule([0, 0, 0.3], [0, 0.1, 0.5], 0.2, 0, 1))
        steps.append(distances())
        second.add_geom(library.GeomCapsule(height=0.4, radius=0.1, coltype=2, colaffinity=2))  # filtered out
        steps.append(distances())
        T = np.eye(4)
        T[:3, 3] = [-0.5, 0.0, 0.0]
        second.set_origin(T)
        steps.append(distances())
        first.add_geom(library.GeomCapsule(0.2, 0.3, 2, 3))
        steps.append(distances())
        assert len(first.get_geoms()) == 2 and a.get_collisions() == [first]
        np.testing.assert_array_equal(second.get_origin(), T)
        found.append(steps)
    assert [len(x) for x in found[1]] == [0, 0, 1, 1, 1, 2]
    for theirs, mine in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)


def test_capsules():
    rng = np.random.default_rng(1)
    ends = rng.normal(size=(40, 4, 3))
    for (a0, a1, b0, b1), T, U in zip(ends, poses(rng, 40), poses(rng, 40), strict=True):
        results = []
        for library in (sdk, rby_dyn):
            first, second = library.GeomCapsule(a0, a1, 0.1, 1, 2), library.GeomCapsule(b0, b1, 0.2, 4, 8)
            assert not first.filter(second)  # which the distance does not care about
            np.testing.assert_array_equal(first.get_start_point(), a0)
            np.testing.assert_array_equal(first.get_end_point(), a1)
            assert (first.get_radius(), first.get_coltype(), first.get_colaffinity()) == (0.1, 1, 2)
            results.append(first.compute_minimum_distance(T, second, U))
        theirs, mine = results
        assert mine.link1 == mine.link2 == ""
        np.testing.assert_allclose(mine.distance, theirs.distance, atol=1e-9)
        np.testing.assert_allclose(mine.position1, theirs.position1, atol=1e-7)
        np.testing.assert_allclose(mine.position2, theirs.position2, atol=1e-7)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (([-1, 1, 0], [1, 1, 0]), ([0, 0, 0], [0, 0, 0])),  # a point, at which theirs returns sqrt(2)
        (([0, 0, 0], [0, 0, 0]), ([-1, 1, 0], [1, 1, 0])),
        (([0, 0, 0], [0, 0, 0]), ([0, 2, 0], [0, 2, 0])),
        (([-0.015, 0, 0], [0.015, 0, 0]), ([0, -0.025, 0], [0, 0.005, 0.01])),  # short ones, parallel to theirs
        (([0, 0, 0], [1, 0, 0]), ([0.5, 1, 0], [3, 1, 0])),
        (([0, 0, 0], [1, 0, 0]), ([0.5, -1, 0], [0.5, 1, 0])),
        (([0, 0, 0], [1, 0, 0]), ([2, 0, 0], [3, 0, 0])),
        (([0, 0, 0], [1, 1e-7, 0]), ([0.2, 0.1, 0], [1, 0.1, 1e-7])),
    ],
)
def test_distances_are_exact(a, b):
    """Against a general minimizer, started at every corner of the square of parameters."""
    (a0, a1), (b0, b1) = np.array(a, float), np.array(b, float)

    def square(x):
        gap = a0 + x[0] * (a1 - a0) - b0 - x[1] * (b1 - b0)
        return 1e4 * gap @ gap

    starts = [(s, t) for s in (0.0, 0.5, 1.0) for t in (0.0, 0.5, 1.0)]
    least = min(minimize(square, x, bounds=[(0, 1)] * 2, tol=1e-14).fun for x in starts)
    capsules = [rby_dyn.GeomCapsule(*ends, 0.0, 0, 0) for ends in (a, b)]
    result = capsules[0].compute_minimum_distance(np.eye(4), capsules[1], np.eye(4))
    assert result is not None
    assert result.distance == pytest.approx(np.sqrt(least / 1e4), abs=1e-7)
    assert np.linalg.norm(result.position1 - result.position2) == pytest.approx(result.distance, abs=1e-12)


def test_masks_of_geoms_admit_the_pairs_that_the_sdk_admits():
    for ct1, ca1, ct2, ca2 in np.random.default_rng(2).integers(0, 4, (30, 4)).tolist():
        theirs, mine = (x.Geom(ct1, ca1).filter(x.Geom(ct2, ca2)) for x in (sdk, rby_dyn))
        assert mine is theirs


def test_a_plain_geom_has_no_form():
    geom, capsule = rby_dyn.Geom(1, 1), rby_dyn.GeomCapsule(0.1, 0.1, 1, 1)
    assert capsule.get_type() is rby_dyn.GeomType.Capsule
    for call in (
        geom.get_type,
        lambda: geom.compute_minimum_distance(np.eye(4), capsule, np.eye(4)),
        lambda: capsule.compute_minimum_distance(np.eye(4), geom, np.eye(4)),
    ):
        with pytest.raises(RuntimeError, match="a plain Geom has no form"):
            call()
    a, b = rby_dyn.Link("a"), rby_dyn.Link("b")
    rby_dyn.Joint.make_fixed("j").connect_links(a, b)
    for link, shape in ((a, geom), (b, capsule)):
        link.add_collision(rby_dyn.Collision("c"))
        link.get_collisions()[0].add_geom(shape)
    robot = rby_dyn.Robot(rby_dyn.RobotConfiguration("r", a))
    with pytest.raises(rd.ModelError, match="link 'a' has a plain Geom"):
        robot.detect_collisions_or_nearest_links(robot.make_state([], []), 1)
