"""The matrices that make momenta of velocities: the momenta of composite bodies, with derivative rules."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..model.model import Model
from ..sweeps.sweep import Sweep, Table
from ..sweeps.world_frame import composites
from ..xla.layout import batch_last
from .composite import gradient, rates
from .derivative_rule import with_derivative


def _gathered(run: Sweep, momenta: Table) -> Array:
    return run.coordinates.gather(jnp.stack(momenta).T).T


def _columns(run: Sweep) -> Array:
    return _gathered(run, composites(run).momenta)


def _rate(run: Sweep, v: Array) -> Array:
    return _gathered(run, rates(run, composites(run), v)[1])


def _gradient(run: Sweep, cotangent: Array) -> Array:
    return gradient(run, composites(run), None, batch_last(jax.vmap(run.coordinates.spread_v)(cotangent)))


momentum_columns = with_derivative(_columns, _rate, _gradient, "world_matrix")
_about_root = with_derivative(_columns, _rate, _gradient, "joint_matrix")


def linear_momentum_matrix(model: Model, q: Array) -> Float[Array, "3 nv"]:
    """The matrix that makes the linear momentum in world axes of velocities: the same wherever the root is."""
    return _about_root(model, q)[3:]
