"""The joint-space inertia matrix by the composite-rigid-body algorithm, and its inverse, with derivative rules."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._jit import jit_public
from ..model.model import Model
from ..sweeps.block_matrix import inverse, mass_matrix
from ..sweeps.plan import traverse
from ..sweeps.sweep import Sweep, Table
from ..sweeps.topology import masks
from ..sweeps.world_frame import composites, outside, symmetric
from ..xla.batch_last import matrix_major
from ..xla.layout import batch_last
from ..xla.transpose import jvp_of
from .arguments import arguments
from .composite import gradient, rates
from .derivative_rule import with_derivative


def _crba(run: Sweep) -> Array:
    found = composites(run)
    return symmetric(run, found.momenta, found.S)


def _rate(run: Sweep, v: Array) -> Array:
    found = composites(run)
    dS, d_momenta = rates(run, found, v)
    return symmetric(run, (*d_momenta, *found.momenta), (*found.S, *dS), rotors=False)


def _gradient(run: Sweep, cotangent: Array) -> Array:
    below, same = masks(run.tree)
    spread = run.coordinates.spread_v
    full = jax.vmap(spread, 1, 1)(jax.vmap(spread)(cotangent)) if run.tree.has_mimics else cotangent
    diagonal = np.eye(len(same), dtype=bool)
    weights = jnp.where(below | np.tril(same, -1), full + full.T, jnp.where(diagonal, full, 0.0))
    found = composites(run)

    def weighted(table: Table, weights: Array) -> Array:
        return batch_last(jnp.matmul(outside(run, table), weights, precision=jax.lax.Precision.HIGHEST))

    return gradient(run, found, weighted(found.momenta, weights), weighted(found.S, weights.T))


joint_space_inertia = with_derivative(_crba, _rate, _gradient, "joint_matrix")


@jit_public()
def crba(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nv nv"]:
    r"""Joint-space inertia matrix $M(q)$, symmetric and positive definite where no moving part is massless.

    Composite-rigid-body algorithm in world coordinates, $M_{ij} = S_i \cdot I^c_j S_j$ for $i$ an ancestor of $j$,
    O(n d) [Featherstone 2008, table 6.2], plus the rotors' inertia `model.armature` on the diagonal.

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Returns:
        M [kg m^2, kg m, kg], with a row and a column for each velocity.

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> arm = robots.pendulum(mass=2.0, length=0.5)
        >>> float(crba(arm, jnp.zeros(1))[0, 0])  # m l^2
        0.5
    """
    model, q = arguments(model, q=q)
    return joint_space_inertia(model, q)


def _inverse(run: Sweep) -> Array:
    found = composites(run)
    return run.lanes(matrix_major)(inverse(run, mass_matrix(run, found.momenta, found.S)).dense(run))


def _plain_inverse(model: Model, q: Array) -> Array:
    return traverse(model, _inverse, q, result="joint_matrix")


_inverse_at = jax.custom_jvp(_plain_inverse)


def _inverse_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Any]:
    """d(M^-1) = -M^-1 dM M^-1."""
    found = _inverse_at(*primals)
    rate = jvp_of(joint_space_inertia, primals, tangents)
    return found, -jnp.linalg.multi_dot([found, rate, found], precision=jax.lax.Precision.HIGHEST)


_inverse_at.defjvp(_inverse_jvp, symbolic_zeros=True)


@jit_public()
def mass_matrix_inverse(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nv nv"]:
    r"""The inverse $M(q)^{-1}$ of `crba`, by elimination of blocks; not finite where M is singular. O(n^3).

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> float(mass_matrix_inverse(robots.pendulum(mass=2.0, length=0.5), jnp.zeros(1))[0, 0])  # 1 / (m l^2)
        2.0
    """
    model, q = arguments(model, q=q)
    return _inverse_at(model, q)
