r"""Fixed steps in time on the configuration manifold.

A state is (q, v, x): configuration, velocity, and further variables in a vector space (the bristles of contacts). The
vector field gives their rates (v in local coordinates, a, xdot) at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..model.configuration import difference, drift, glide, integrate, qdot_from_v
from ..model.model import Model
from ..xla.control_flow import scan

State = tuple[Array, Array, Array]
Field = Callable[[Array, State], tuple[Array, Array]]  # (t, state) -> (a, xdot)


@dataclass(frozen=True)
class Tableau:
    """An explicit Runge-Kutta method: weights a of the stages (lower triangular) and b of the step; nodes c = row sums
    of a."""

    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]


RUNGE_KUTTA_4 = Tableau(
    a=((0.0, 0.0, 0.0, 0.0), (0.5, 0.0, 0.0, 0.0), (0.0, 0.5, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)),
    b=(1 / 6, 1 / 3, 1 / 3, 1 / 6),
)


def semi_implicit_euler(model: Model, field: Field, t: Array, state: State, dt: Array) -> State:
    """v' = v + dt a(q, v), then q' = q (+) dt v': first order, and symplectic for a separable Hamiltonian.

    The velocity of a floating base is taken in axes that keep still during the step: in those of the base, which turn,
    a free body would gain energy.
    """
    q, v, x = state
    a, xdot = field(t, state)
    q, v = glide(model, q, v + dt * (a + drift(model, v)), dt)
    return q, v, x + dt * xdot


def munthe_kaas(tableau: Tableau, model: Model, field: Field, t: Array, state: State, dt: Array) -> State:
    """A Runge-Kutta step in the local coordinates phi of q = q0 (+) phi [Munthe-Kaas 1999]; of the tableau's order.

    The stages are a loop of the program, so that the dynamics are compiled once.
    """
    q0, v0, x0 = state
    origin = (jnp.zeros_like(v0), v0, x0)

    def moved(weights: Array, rates: State) -> State:
        def along(start: Array, rate: Array) -> Array:
            return start + dt * jnp.sum(weights.reshape(-1, *(1,) * start.ndim) * rate, axis=0)

        phi, v, x = map(along, origin, rates)
        return phi, v, x

    def stage(rates: State, row: tuple[Array, Array]) -> tuple[State, None]:
        i, weights = row
        phi, v, x = moved(weights, rates)
        q = integrate(model, q0, phi)
        _, phidot = jax.jvp(lambda q: difference(model, q0, q), (q,), (qdot_from_v(model, q, v),))
        found = (phidot, *field(t + dt * jnp.sum(weights), (q, v, x)))
        filled = [rate.at[i].set(new) for rate, new in zip(rates, found, strict=True)]
        return (filled[0], filled[1], filled[2]), None

    a, b = (jnp.asarray(np.array(weights), v0.dtype) for weights in (tableau.a, tableau.b))
    none = [jnp.zeros((len(tableau.b), *x.shape), x.dtype) for x in origin]
    rates, _ = scan(stage, (none[0], none[1], none[2]), (jnp.arange(len(tableau.b)), a))
    phi, v, x = moved(b, rates)
    return integrate(model, q0, phi), v, x
