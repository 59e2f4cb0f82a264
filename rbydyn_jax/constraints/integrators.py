r"""Fixed steps in time on the configuration manifold.

A state is (q, v, x): configuration, velocity, and further numbers in a vector space (the bristles of contacts). The
vector field gives their rates (v in local coordinates, a, xdot) at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
from jaxtyping import Array

from ..model.configuration import difference, integrate, qdot_from_v
from ..model.model import Model

State = tuple[Array, Array, Array]
Field = Callable[[Array, State], tuple[Array, Array]]  # (t, state) -> (a, xdot)


@dataclass(frozen=True)
class Tableau:
    """An explicit Runge-Kutta method: rows a_i of the stages (lower triangle) and weights b; nodes c = row sums."""

    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]


RUNGE_KUTTA_4 = Tableau(a=((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), b=(1 / 6, 1 / 3, 1 / 3, 1 / 6))


def semi_implicit_euler(model: Model, field: Field, t: Array, state: State, dt: Array) -> State:
    """v' = v + dt a(q, v), then q' = q (+) dt v': first order, and symplectic for a separable Hamiltonian."""
    q, v, x = state
    a, xdot = field(t, state)
    v = v + dt * a
    return integrate(model, q, dt * v), v, x + dt * xdot


def munthe_kaas(tableau: Tableau, model: Model, field: Field, t: Array, state: State, dt: Array) -> State:
    """A Runge-Kutta step in the local coordinates phi of q = q0 (+) phi [Munthe-Kaas 1999]; of the tableau's order."""
    q0, v0, x0 = state

    def moved(weights: tuple[float, ...], rates: list[State]) -> State:
        steps = [w * dt for w in weights]

        def total(k: int, start: Array) -> Array:
            return sum((h * r[k] for h, r in zip(steps, rates, strict=True)), start)

        return total(0, 0.0 * v0), total(1, v0), total(2, x0)

    rates: list[State] = []
    for row in tableau.a:
        phi, v, x = moved(row, rates)
        q = integrate(model, q0, phi)
        _, phidot = jax.jvp(lambda q: difference(model, q0, q), (q,), (qdot_from_v(model, q, v),))
        a, xdot = field(t + sum(row) * dt, (q, v, x))
        rates.append((phidot, a, xdot))
    phi, v, x = moved(tableau.b, rates)
    return integrate(model, q0, phi), v, x
