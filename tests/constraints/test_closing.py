"""Closing loops from any initial configuration."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.constraints import LoopJoint, close_loops
from tests.helpers import assert_close, normal

from .mechanisms import COUPLER, CRANK, GROUND, ROCKER, four_bar, place


@pytest.mark.slow
@pytest.mark.float32
def test_a_four_bar_linkage_closes_from_anywhere():
    """The distances of its pins are then those of the bars, by trigonometry."""
    model, loop = four_bar()
    q = 3.0 * normal(0, 100, 3)
    found = jax.jit(jax.vmap(lambda q: close_loops(model, q, (loop,))))(q)
    assert np.asarray(found.solved).all()
    a, b, d = np.asarray(found.q, float).T
    # About +y a positive angle turns x towards -z.
    pin_b = CRANK * np.stack([np.cos(a), -np.sin(a)])
    pin_c = np.stack([GROUND + ROCKER * np.cos(d), -ROCKER * np.sin(d)])
    bound = 1e-10 if found.q.dtype == jnp.float64 else 3e-3
    assert np.abs(np.linalg.norm(pin_c - pin_b, axis=0) - COUPLER).max() < bound
    end = pin_b + COUPLER * np.stack([np.cos(a + b), -np.sin(a + b)])
    assert np.abs(end - pin_c).max() < bound


@pytest.mark.ci
def test_joints_that_are_fixed_stay_where_they_are():
    model, loop = four_bar()
    q = jnp.array([0.3, 0.0, 0.0])
    found = close_loops(model, q, (loop,), fixed=("a",))
    assert found.solved
    assert float(found.q[0]) == 0.3


@pytest.mark.slow
def test_two_loops_of_a_parallel_manipulator_close_together():
    """A platform on three legs in the plane: two loops in series with each other."""
    b = rb.RobotBuilder("platform").link("ground")
    corners = [(0.0, 0.0), (1.0, 0.0), (0.5, 0.9)]
    for k, (x, z) in enumerate(corners):
        b.link(f"upper{k}", 1.0, (0.2, 0, 0), 0.02).link(f"lower{k}", 1.0, (0.2, 0, 0), 0.02)
        b.continuous(f"hip{k}", "ground", f"upper{k}", xyz=(x, 0, z), axis=(0, 1, 0))
        b.continuous(f"knee{k}", f"upper{k}", f"lower{k}", xyz=(0.4, 0, 0), axis=(0, 1, 0))
    b.link("platform", 2.0, (0, 0, 0), 0.05)
    b.continuous("wrist", "lower0", "platform", xyz=(0.4, 0, 0), axis=(0, 1, 0))
    model = rb.build_model(b)
    loops = tuple(
        LoopJoint(
            "revolute", "platform", f"lower{k}", axis=(0, 1, 0), predecessor_pose=corner, successor_pose=place(0.4)
        )
        for k, corner in ((1, place(0.2)), (2, place(0.1, 0, 0.17)))
    )
    found = close_loops(model, 0.5 * normal(1, model.nv), loops)
    assert found.solved
    for loop in loops:
        before = rb.link_pose(model, found.q, "platform") @ loop.predecessor_pose
        after = rb.link_pose(model, found.q, str(loop.successor)) @ loop.successor_pose
        assert_close(before[:3, 3], after[:3, 3], 1e-9)


@pytest.mark.ci
def test_what_cannot_be_closed_is_said_and_approached():
    """A point out of reach: the arm is stretched towards it."""
    arm = robots.two_link_arm()
    ball = LoopJoint("spherical", None, "tool", predecessor_pose=place(2.0, 0.0))
    found = close_loops(arm, jnp.array([0.4, 0.5]), (ball,))
    assert not found.solved
    assert int(found.iterations) == 100
    assert np.abs(np.asarray(found.gap)).max() == pytest.approx(1.1, abs=1e-4)


def test_a_closed_loop_is_left_as_it_is():
    arm, q = robots.two_link_arm(), jnp.array([0.4, 0.5])
    ball = LoopJoint("spherical", None, "tool", predecessor_pose=rb.link_pose(arm, q, "tool"))
    found = close_loops(arm, q, (ball,))
    assert found.solved and int(found.iterations) == 0
    assert_close(found.q, q)


@pytest.mark.slow
def test_rows_of_a_batch_that_are_not_finite_leave_the_others_alone():
    """And no routine of LAPACK runs in the loop, which could wait for ever there."""
    model, loop = four_bar()
    q = 3.0 * normal(0, 6, 3)
    bad = q.at[1].set(jnp.nan).at[4, 2].set(jnp.inf)
    close = jax.jit(jax.vmap(lambda q: close_loops(model, q, (loop,))))
    text = close.lower(bad).as_text()
    assert "while" in text and "getrf" not in text and "lu_pivots" not in text
    found, expected = close(bad), close(q)
    assert np.asarray(found.solved).tolist() == [True, False, True, True, False, True]
    for k in (0, 2, 3, 5):
        assert_close(found.q[k], expected.q[k])


def test_errors_say_what_is_wrong():
    model, loop = four_bar()
    q = jnp.zeros(3)
    with pytest.raises(rb.ArgumentError, match="iterations"):
        close_loops(model, q, (loop,), iterations=0)
    with pytest.raises(rb.NameNotFoundError, match="hinge"):
        close_loops(model, q, (loop,), fixed=("hinge",))
    with pytest.raises(rb.ShapeError, match="q must have shape"):
        close_loops(model, jnp.zeros(2), (loop,))
