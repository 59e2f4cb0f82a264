"""The bridge to the pure world: the values of a state as JAX arrays, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._values import checked

if TYPE_CHECKING:
    from ._robot import Robot
    from ._state import State


class JaxState(eqx.Module):
    """The values of a state, joints in the order of `Robot.model`; caches are not part of it.

    Args:
        q: Positions [rad, m].
        v: Velocities [rad/s, m/s].
        a: Accelerations [rad/s^2, m/s^2].
        tau: Torques [N m, N], or None where none were set or computed.
        V0: Twist of the base link, angular first, in its frame.
        Vdot0: Spatial acceleration of the base link; `with_gravity(model, -Vdot0[3:])` is its linear part.
    """

    q: Float[Array, "n"]
    v: Float[Array, "n"]
    a: Float[Array, "n"]
    tau: Float[Array, "n"] | None
    V0: Float[Array, "6"]
    Vdot0: Float[Array, "6"]


def to_jax(state: State) -> JaxState:
    """See `State.to_jax`."""
    tau = None if state._tau is None else jnp.asarray(state._tau)
    values = (jnp.asarray(x) for x in (state._q, state._qdot, state._qddot))
    return JaxState(*values, tau, jnp.asarray(state._V0), jnp.asarray(state._Vdot0))


def from_jax(robot: Robot, values: JaxState, link_names: Sequence[str], joint_names: Sequence[str]) -> State:
    """See `State.from_jax`."""
    checked(values, "values", JaxState)
    state = robot.make_state(link_names, joint_names)
    names = ("q", "qdot", "qddot", *(("tau",) if values.tau is not None else ()))
    for name, x in zip(names, (values.q, values.v, values.a, values.tau), strict=False):
        setattr(state, name, np.asarray(x)[state._order])
    state.V0, state.Vdot0 = values.V0, values.Vdot0
    return state
