"""The joint-space inertia matrix by the composite-rigid-body algorithm, and its inverse."""

from __future__ import annotations

import jax.numpy as jnp
import jax.scipy.linalg as jsl
from jaxtyping import Array, Float

from .._check import public
from .._errors import DtypeError
from ..model.model import Model
from ..spatial._algebra import IDENTITY, NO_INERTIA, Force, Inertia, Motion, Transform
from ._api import arguments
from ._body import Body
from ._traversal import Traversal, traverse

Columns = tuple[Motion, ...]


def world_step(body: Body, parent: Transform) -> tuple[Transform, tuple[Columns, Inertia]]:
    """Motion subspace and inertia of a body about the world origin, in world axes."""
    pose = parent @ body.transform
    return pose, (tuple(pose.motion(s) for s in body.subspace), body.inertia.transform(pose))


def composite_step(
    body: Body, children: Inertia, world: tuple[Columns, Inertia]
) -> tuple[Inertia, tuple[Columns, tuple[Force, ...]]]:
    """The inertia of all that a joint carries, and the momentum that each of its motions gives it."""
    columns, inertia = world
    composite = inertia + children
    return composite, (columns, tuple(composite.apply(s) for s in columns))


def composite_momenta(run: Traversal) -> list[tuple[Columns, tuple[Force, ...]]]:
    """For each joint the columns of S, and those of I_c S, about the world origin."""
    return run.inward(composite_step, NO_INERTIA, run.outward(world_step, IDENTITY))


def _crba(run: Traversal) -> Array:
    momenta = composite_momenta(run)
    return run.mass_like(run.item(momenta, 0), run.item(momenta, 1), diagonal=run.split_armature())


@public()
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
    return traverse(model, _crba, q)


@public()
def mass_matrix_inverse(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nv nv"]:
    r"""The inverse $M(q)^{-1}$ of `crba`, by its Cholesky factors; NaN where M is singular. O(n^3).

    Args:
        model: The robot.
        q: Configuration [rad, m].

    Raises:
        DtypeError: The arguments are not of float32 or float64, for which there are factorisations.
        ShapeError: `q` is not of shape `(model.nq,)`.
    """
    M = crba(model, q)
    if M.dtype not in (jnp.float32, jnp.float64):
        raise DtypeError(f"mass_matrix_inverse needs float32 or float64, got {M.dtype}")
    inverse = jsl.cho_solve(jsl.cho_factor(M, lower=True), jnp.eye(M.shape[0], dtype=M.dtype))
    return 0.5 * (inverse + inverse.T)
