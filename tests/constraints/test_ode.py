"""The adapter to diffrax: adaptive steps, and events."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.constraints import close_loops, ode_term
from tests.helpers import X64, assert_close

from .mechanisms import falling_ball, four_bar

diffrax = pytest.importorskip("diffrax")
optimistix = pytest.importorskip("optimistix")
pytestmark = pytest.mark.skipif(not X64, reason="the tolerances are those of float64")
ADAPTIVE = diffrax.PIDController(rtol=1e-9, atol=1e-11)


@pytest.mark.slow
def test_adaptive_steps_keep_the_energy_of_a_linkage():
    """Energy changes by the work of the motor at the crank, which is integrated beside the state."""
    model, loop = four_bar()
    q = close_loops(model, jnp.array([0.9, -0.5, 1.2]), (loop,)).q
    torque = lambda t: 1.0 + jnp.cos(3 * t)  # noqa: E731
    term = ode_term(model, loops=(loop,), control=lambda t, q, v: jnp.array([1.0, 0.0, 0.0]) * torque(t))
    with_work = diffrax.ODETerm(
        lambda t, y, args: (term.vector_field(t, y[0], args), torque(t) * y[0][3])  # power of the motor
    )
    start = (jnp.concatenate([q, jnp.zeros(3)]), jnp.zeros(()))
    solved = diffrax.diffeqsolve(with_work, diffrax.Dopri8(), 0.0, 0.5, None, start, stepsize_controller=ADAPTIVE)
    q1, v1 = jnp.split(solved.ys[0][0], 2)
    energy = rb.kinetic_energy(model, q1, v1) + rb.potential_energy(model, q1) - rb.potential_energy(model, q)
    assert float(solved.ys[1][0]) > 0.1
    assert_close(energy, solved.ys[1][0], 1e-7)
    assert int(solved.stats["num_steps"]) < 200


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_adapter_names_its_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "diffrax", None)
    with pytest.raises(rb.MissingExtraError, match="ode"):
        ode_term(robots.pendulum())
