"""Calibrations: poses of robots whose files are perturbed, by Pinocchio; ranks that are known; derivatives."""

from __future__ import annotations

import functools
import xml.etree.ElementTree as ET
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.identification import calibrate
from rbydyn_jax.identification.geometry import Geometry, Target, linearized
from rbydyn_jax.model.states import random_states
from rbydyn_jax.spatial import se3
from rbydyn_jax.testing import random_tree
from tests.helpers import X64, assert_close, oracle

pytestmark = pytest.mark.skipif(not X64, reason="calibrations are of microns")
NOISE = (1e-3, 3e-4)  # [rad, m]


@functools.cache
def arm() -> rb.Model:
    return robots.panda_like()


def measure(joints: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Configurations, offsets, and the poses of the tool by Pinocchio, in a frame that is off, too.

    In the file that Pinocchio reads the origins of some joints are off by about 1 cm and 20 mrad.
    """
    oracle("pinocchio")
    from rbydyn_jax.engines.pinocchio import pin_from_urdf

    rng = np.random.default_rng(0)
    file = ET.fromstring(rb.to_urdf(arm()))
    for joint in file.iter("joint"):
        origin = joint.find("origin")
        assert origin is not None
        for key, by in (("xyz", 0.01), ("rpy", 0.02)):
            moved = np.array(origin.get(key, "0 0 0").split(), float) + by * rng.normal(size=3)
            if joint.get("name") in joints:
                origin.set(key, " ".join(map(repr, moved.tolist())))
    offsets = 0.03 * rng.normal(size=arm().nq)
    frame = np.asarray(se3.exp(jnp.asarray([0.1, -0.05, 0.08, 0.05, -0.02, 0.03])))
    text = ET.tostring(file, encoding="unicode")
    pin = pin_from_urdf(text, rb.load_urdf_string(text))
    q = np.asarray(random_states(arm(), jax.random.key(1), 200)[0])
    tool = arm().link_index("tool")
    return q, offsets, np.stack([frame @ pin.fk(x + offsets)[tool] for x in q])


def predicted(found: Any, q: np.ndarray) -> np.ndarray:
    poses = jax.vmap(lambda q: rb.link_pose(found.model, q, "tool"))(jnp.asarray(q + found.offsets))
    return found.frame @ np.asarray(poses)


@pytest.mark.slow
def test_all_placements_are_found_and_the_rank_is_that_of_a_complete_model():
    """Of an arm of n hinges poses tell 4 n + 6 numbers [Everett, Driels and Mooring 1987]."""
    links = [*arm().link_names[1:]]
    names = tuple(joint.get("name", "") for joint in ET.fromstring(rb.to_urdf(arm())).iter("joint"))
    q, _, poses = measure(names)
    found = calibrate(arm(), jnp.asarray(q[:100]), {"tool": jnp.asarray(poses[:100])}, placements=links)
    assert found.converged and found.residual.max() < 1e-9
    assert len(found.names) == 7 + 6 * 8 and found.identifiability.rank == 4 * 7 + 6
    assert_close(predicted(found, q[100:]), poses[100:], 1e-8)


@pytest.mark.ci
def test_the_measuring_frame_may_stand_anywhere():
    """Three metres away and turned by more than two radians: what is left is the noise."""
    q, offsets, exact = measure(("tool_fixed",))
    frame = np.asarray(se3.exp(jnp.array([0.5, 1.0, -2.0, 2.0, 2.0, 0.5])))
    noise = np.random.default_rng(1).normal(size=(len(q), 6)) * np.repeat(NOISE, 3)
    poses = frame @ exact @ np.asarray(jax.vmap(se3.exp)(jnp.asarray(noise)))
    found = calibrate(arm(), jnp.asarray(q), {"tool": jnp.asarray(poses)}, placements=["tool"], unknown_frame=True)
    assert found.converged
    assert_close(found.residual, np.array(NOISE), 0.15)
    assert np.abs(found.values[1:6] - offsets[1:6]).max() < 1e-3


@pytest.mark.ci
@pytest.mark.parametrize("oriented", [True, False])
def test_a_measuring_frame_a_kilometre_away_is_found(oriented):
    """Half a turn, which NumPy applies to the poses; the elbow is off by 20 mrad."""
    two, q = robots.two_link_arm(), jax.random.uniform(jax.random.key(0), (40, 2), minval=-1.5, maxval=1.5)
    off = np.array([0.0, 0.02])
    exact = np.asarray(jax.vmap(lambda q: rb.link_pose(two, q + off, "tool"))(q))
    frame = np.diag([-1.0, -1.0, 1.0, 1.0])
    frame[:3, 3] = 600.0, -800.0, 40.0
    poses = frame @ exact
    seen = jnp.asarray(poses if oriented else poses[:, :3, 3])
    found = calibrate(two, q, {"tool": seen}, unknown_frame=True)
    assert found.converged and found.residual[1] < 1e-6
    got = found.frame @ np.asarray(jax.vmap(lambda q: rb.link_pose(found.model, q + found.offsets, "tool"))(q))
    assert np.abs(got - poses)[:, :3, 3].max() < 1e-5
    assert np.abs(found.offsets[1] - 0.02) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("huber", [None, 2.0])
def test_offsets_are_found_within_their_deviations(huber):
    q, offsets, exact = measure(("tool_fixed",))
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(len(q), 6)) * np.repeat(NOISE, 3)
    if huber is not None:
        noise[::20] *= 100.0
    poses = exact @ np.asarray(jax.vmap(se3.exp)(jnp.asarray(noise)))
    options: dict[str, Any] = {"placements": ["tool"], "unknown_frame": True, "huber": huber}
    found = calibrate(arm(), jnp.asarray(q), {"tool": jnp.asarray(poses)}, **options)
    assert found.converged
    # The first joint turns as the measuring frame does, the last one as the tool.
    assert found.identifiability.rank == 7 + 6 + 6 - 2
    told = found.identifiability.identifiable
    assert {f"offset of joint{k}" for k in range(2, 7)} <= set(told) and "offset of joint1" not in told
    wrong = (found.values[1:6] - offsets[1:6]) / found.deviation[1:6]
    assert np.abs(wrong).max() < 4.0 and found.deviation[1:6].max() < 1e-3
    assert found.deviation[0] > 0.02  # not told apart: that of the prior
    assert_close(predicted(found, q), exact, 1e-3)
    if huber is None:
        assert_close(found.noise, np.array(NOISE), 0.15)
        assert "offset of joint7" in str(found) and "17 combinations" in str(found)


@pytest.mark.slow
def test_positions_of_one_arm_seen_from_the_other():
    """A camera that is not where it is believed to be sees a point of another branch."""
    model = random_tree(3, ("revolute", "prismatic"), 4, branching=0.6)
    camera, point = (model.link_names[k] for k in model.tree.principal_links[-2:])
    q = random_states(model, jax.random.key(0), 60)[0]
    off = jnp.asarray([0.02, -0.01, 0.015, 0.03])
    seen = jax.vmap(lambda q: rb.link_pose(model, q + off, point, camera)[:3, 3])(q)
    found = calibrate(model, q, {point: seen}, ref=camera)
    assert found.converged and np.isnan(found.noise[0]) and found.residual[1] < 1e-9
    again = jax.vmap(lambda q: rb.link_pose(model, q + found.offsets, point, camera)[:3, 3])(q)
    assert_close(again, seen, 1e-8)


@pytest.mark.slow
def test_derivatives_are_those_of_the_errors():
    model = random_tree(1, ("revolute", "prismatic", "screw", "fixed"), 6, branching=0.5)
    assert model.tree.parents == (-1, 0, 1, 2, 2) and model.tree.link_bodies == (-1, 0, 1, 2, 3, 3, 4)
    welded, ref = 5, 6
    geometry = Geometry((0, 1, 2, 3, 4), (2, 3, 5, 6), True, (Target(welded, True), Target(4, False)), ref)
    x = 0.1 * jax.random.normal(jax.random.key(0), (len(geometry.names(model)),))
    q = random_states(model, jax.random.key(1), 2)[0]
    measured = (jnp.stack([se3.exp(0.1 * jnp.arange(6.0))] * 2), jnp.ones((2, 3)))
    h = 1e-5

    def errors(x: jax.Array) -> np.ndarray:
        return np.asarray(linearized(geometry, model, x, q, measured)[0])

    slopes = [(errors(x + h * step) - errors(x - h * step)) / (2 * h) for step in jnp.eye(len(x))]
    assert_close(linearized(geometry, model, x, q, measured)[1], -np.stack(slopes, axis=2), kind="difference")


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"huber": 2.0}, {"unknown_frame": True}, {"placements": ["tool"]}])
def test_it_ends_in_float32_too(options):
    """At noise of any size, within its own deviations and rounding of the true offsets; not before it is there."""
    q, offsets, exact = measure(())
    frame = np.asarray(se3.exp(jnp.asarray([0.1, -0.05, 0.08, 0.05, -0.02, 0.03])))
    seen = exact if options.get("unknown_frame") else np.linalg.inv(frame) @ exact
    single = jax.tree.map(lambda x: x.astype(jnp.float32), arm())
    for noise in (0.0, 1e-6, 1e-5, 1e-4, 1e-3):
        errors = noise * np.random.default_rng(2).normal(size=(len(q), 6))
        poses = seen @ np.asarray(jax.vmap(se3.exp)(jnp.asarray(errors)))
        for measured in (poses, poses[:, :3, 3]):
            found = calibrate(single, jnp.asarray(q), {"tool": jnp.asarray(measured)}, **options)
            assert found.converged and found.iterations < 10
            told = found.deviation[1:6]  # the first and the last joint turn about the frame's and the tool's axes
            assert (np.abs(found.offsets - offsets)[1:6] < 5.0 * told + 1e-6).all()
            early = calibrate(single, jnp.asarray(q), {"tool": jnp.asarray(measured)}, **options, iterations=1)
            assert not early.converged


def test_wrong_arguments():
    two, q, poses = robots.two_link_arm(), jnp.zeros((3, 2)), jnp.stack([jnp.eye(4)] * 3)
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"prior": (0.1, 0.0)}, "prior must be finite and positive"),
        ({"noise": (-1.0, 1.0)}, "noise must be finite and positive"),
        ({"offsets": ()}, "there is nothing to find"),
        ({"poses": {}}, "there is nothing measured"),
        ({"poses": {"tool": 2.0 * poses}}, "poses of 'tool' must be a rigid transform"),
        ({"poses": {"tool": jnp.full((3, 3), jnp.nan)}}, "poses of 'tool' must be finite"),
        ({"q": jnp.zeros((0, 2))}, "q must have at least one row"),
    )
    for wrong, message in cases:
        with pytest.raises(rb.ArgumentError, match=message):
            calibrate(two, **({"q": q, "poses": {"tool": poses}} | wrong))
    with pytest.raises(rb.ShapeError, match=r"must have shape \(3, 4, 4\) or \(3, 3\)"):
        calibrate(two, q, {"tool": poses[:2]})
    with pytest.raises(rb.NameNotFoundError, match="no link named 'tol'"):
        calibrate(two, q, {"tol": poses})
    ball = rb.build_model(rb.RobotBuilder("r").link("a").link("b", 1.0, inertia=0.1).spherical("j", "a", "b"))
    with pytest.raises(rb.ModelError, match="joint 'j' has no single coordinate"):
        calibrate(ball, jnp.zeros((3, 4)), {"b": poses}, offsets=["j"])
