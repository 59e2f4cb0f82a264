"""Converts the values of a state to JAX arrays, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._structure import structure_of
from ._values import array, checked

if TYPE_CHECKING:
    from ._robot import _Robot
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
    q, v, a = (jnp.asarray(x) for x in (state._q, state._qdot, state._qddot))
    return JaxState(q, v, a, tau, jnp.asarray(state._V0), jnp.asarray(state._Vdot0))


def from_jax(robot: _Robot, values: JaxState, link_names: Sequence[str], joint_names: Sequence[str]) -> State:
    """See `State.from_jax`."""
    structure_of(robot)
    checked(values, "values", JaxState)
    state = robot.make_state(link_names, joint_names)
    n = robot.get_dof()
    for name, x in (("_q", values.q), ("_qdot", values.v), ("_qddot", values.a), ("_tau", values.tau)):
        if x is not None:
            setattr(state, name, array(x, name[1:], n))
    state.set_V0(values.V0)
    state.set_Vdot0(values.Vdot0)
    return state
