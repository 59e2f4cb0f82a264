r"""How the matrices that make momenta of velocities change with the configuration.

The column $A_j = I^c_j S_j$ is the momentum that joint $j$ gives to the composite body that it carries. A joint $i$
that carries $j$, or is $j$, moves this body as one: $\partial A_j / \partial q_i = S_i \times^* A_j$. One that $j$
carries changes the composite inertia alone, by $D_i = S_i \times^* I^c_i - I^c_i\, S_i \times$: the derivative is
$D_i S_j$. All others do nothing to it.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..model.model import Model
from ..spatial.algebra import IDENTITY, Force, Motion, Transform, Vec3
from ..sweeps.cross_products import crossed
from ..sweeps.plan import traverse
from ..sweeps.sweep import Sweep, Table
from ..sweeps.topology import masks
from ..sweeps.world_frame import composites, force, inertia, motion, outside, per_dof, second_order


def _changes(run: Sweep, point: Array) -> Array:
    """About a point, for each degree of freedom: motion (6), momentum (6), rate of the composite inertia (h, I: 9)."""
    found = composites(run)

    def about(S: Table, F: Table, C: Table, at: Table) -> tuple[Motion, Force, Vec3, tuple[Array, ...]]:
        p, s, f = Vec3(*at), motion(S), force(F)
        moved = Motion(s.w, s.v + s.w.cross(p))
        rate = inertia(C).transform(Transform(IDENTITY.R, -p)).rate(moved)
        return moved, Force(f.n - p.cross(f.f), f.f), rate.h, rate.I

    rows = run.map_tables(about, found.S, found.momenta, per_dof(run, found.composite), point[:, None])
    return outside(run, rows)


def momentum_hessian(
    model: Model, q: Array, point: Float[Array, "3"], mass: Float[Array, ""] | None = None
) -> Float[Array, "nv 6 nv"]:
    r"""Derivatives $H_{i,:,j} = \partial A_{:,j} / \partial q_i$ of the momentum matrix about a point; O(n^2).

    Args:
        model: The robot.
        q: Configuration.
        point: The point, in world coordinates.
        mass: If given, the point is the centre of mass of so much, and moves with it.
    """
    found = traverse(model, _changes, q, point, result="world_matrix")
    w, v, n, f, h = (found[at : at + 3] for at in range(0, 15, 3))
    xx, xy, xz, yy, yz, zz = found[15:]
    none = jnp.zeros_like(w)
    rate = (jnp.stack(row)[:, :, None] for row in ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))

    def six(upper: Array, lower: Array) -> Array:
        return jnp.concatenate([upper, lower])

    moved = crossed(six(w, w), six(n, f)) + crossed(six(v, none), six(f, none))
    turned = sum(jnp.swapaxes(column, 0, 1) * x[None, None] for column, x in zip(rate, w, strict=True))
    reshaped = crossed(six(h, -h), six(v, w)) + jnp.pad(turned, ((0, 0), (0, 3), (0, 0)))
    below, same = (x[:, None] for x in masks(model.tree))
    full = jnp.where(np.swapaxes(below | same, 0, 2), moved, jnp.where(below, reshaped, 0.0))
    if mass is not None:
        full = full - crossed(six(f / mass, none), six(f, none))
    return second_order(model, full)
