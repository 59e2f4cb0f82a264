"""The Lie groups of `spatial` with which joint types map coordinates, imported when first used; see `_lazy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import LazyModule

if TYPE_CHECKING:
    from ..spatial import _small as _small
    from ..spatial import mrp as mrp
    from ..spatial import quaternions as quaternions
    from ..spatial import safe as safe
    from ..spatial import se3 as se3
    from ..spatial import so3 as so3
else:
    _small, mrp, quaternions, safe, se3, so3 = (
        LazyModule(f"rbydyn_jax.spatial.{name}") for name in ("_small", "mrp", "quaternions", "safe", "se3", "so3")
    )
