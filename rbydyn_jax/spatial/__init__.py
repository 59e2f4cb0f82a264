"""Lie groups and spatial algebra of rigid bodies.

Spatial vectors are angular first, transforms are (4, 4) with T_AB taking B's coordinates to A's, quaternions are wxyz.
Functions take single items; use `jax.vmap` for batches. All are differentiable to any order, also at the identity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import cones as cones
    from . import inertia as inertia
    from . import motion as motion
    from . import mrp as mrp
    from . import quaternions as quaternions
    from . import rpy as rpy
    from . import safe as safe
    from . import se3 as se3
    from . import so3 as so3
    from . import transformations as transformations
    from .order import from_linear_first as from_linear_first
    from .order import to_linear_first as to_linear_first
else:
    from .._lazy import lazy_submodules as _lazy_submodules

    __getattr__, __dir__ = _lazy_submodules(
        __name__, "cones", "inertia", "motion", "mrp", "quaternions", "rpy", "safe", "se3", "so3", "transformations",
        order=("from_linear_first", "to_linear_first"),
    )  # fmt: skip
