"""The adapter to diffrax: adaptive steps, and events."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.constraints import close_loops, ode_term, simulate
from tests.helpers import X64, assert_close

from .mechanisms import falling_ball, four_bar

diffrax = pytest.importorskip("diffrax")
optimistix = pytest.importorskip("optimistix")
pytestmark = pytest.mark.skipif(not X64, reason="the tolerances are those of float64")
ADAPTIVE = diffrax.PIDController(rtol=1e-9, atol=1e-11)


def test_adaptive_steps_reach_what_small_steps_reach():
    """Of a linkage, with a control that changes in time."""
    model, loop = four_bar()
    q = close_loops(model, jnp.array([0.9, -0.5, 1.2]), (loop,)).q
    control = lambda t, q, v: jnp.array([1.0, 0.0, 0.0]) * jnp.cos(3 * t)  # noqa: E731
    x = jnp.concatenate([q, jnp.zeros(3)])
    term = ode_term(model, loops=(loop,), control=control)
    solved = diffrax.diffeqsolve(term, diffrax.Dopri8(), 0.0, 0.5, None, x, stepsize_controller=ADAPTIVE)
    want = simulate(model, q, jnp.zeros(3), 0.5, 1e-3, loops=(loop,), control=control)
    assert_close(solved.ys[0, :3], want.qs[-1], 1e-8)
    assert_close(solved.ys[0, 3:], want.vs[-1], 1e-8)
    assert int(solved.stats["num_steps"]) < 200


def test_an_event_stops_the_ball_at_the_ground():
    """A ball thrown upwards from 1 m with a spin comes down when 1 + 2 t - g t^2 / 2 = 0; its quaternion keeps its
    length."""
    ball = falling_ball()
    start = jnp.concatenate([rb.neutral(ball).at[6].set(1.0), jnp.array([3.0, 1.0, 2.0, 0.0, 0.0, 2.0])])
    event = diffrax.Event(lambda t, y, args, **_: y[6], optimistix.Newton(1e-11, 1e-11))
    solved = diffrax.diffeqsolve(
        ode_term(ball), diffrax.Dopri8(), 0.0, 5.0, 0.01, start, stepsize_controller=ADAPTIVE, event=event
    )
    assert float(solved.ts[0]) == pytest.approx((2 + np.sqrt(4 + 2 * 9.81)) / 9.81, rel=1e-8)
    assert np.linalg.norm(solved.ys[0, :4]) == pytest.approx(1.0, abs=1e-7)


def test_the_adapter_names_its_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "diffrax", None)
    with pytest.raises(rb.MissingExtraError, match="ode"):
        ode_term(robots.pendulum())
