"""The joint-space inertia matrix by the composite-rigid-body algorithm, and its inverse."""

from __future__ import annotations

from jaxtyping import Array, Float

from .._check import jit_public
from ..model.model import Model
from ..sweeps.block_matrix import inverse, mass_matrix
from ..sweeps.plan import traverse
from ..sweeps.sweep import Sweep
from ..sweeps.world_frame import composite_momenta, symmetric
from ..xla.batch_last import matrix_major
from .arguments import arguments


def _crba(run: Sweep) -> Array:
    S, momenta = composite_momenta(run)
    return symmetric(run, momenta, S)


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
    return traverse(model, _crba, q, result="joint_matrix")


def _inverse(run: Sweep) -> Array:
    S, momenta = composite_momenta(run)
    return run.lanes(matrix_major)(inverse(run, mass_matrix(run, momenta, S)).dense(run))


@jit_public()
def mass_matrix_inverse(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nv nv"]:
    r"""The inverse $M(q)^{-1}$ of `crba`, by elimination of blocks; not finite where M is singular. O(n^3).

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Raises:
        ShapeError: `q` is not of shape `(model.nq,)`.
    """
    model, q = arguments(model, q=q)
    return traverse(model, _inverse, q, result="joint_matrix")
