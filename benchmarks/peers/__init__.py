"""Other libraries.

A module here has `entries(case, operations, batches)` and `version()`; it fails to import where its library is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from rbydyn_jax import Model

from ..case import LOOP, Case, Entry

NAMES = ("pinocchio", "rby1_sdk", "mujoco", "frax", "mjx", "jaxsim")
IN_JAX = ("frax", "mjx", "jaxsim")  # compiled, on whole batches; the others take one configuration a call

Entries = Callable[[Case, Iterable[str], Iterable[int]], Iterable[Entry]]


def loop(f: Callable[[int], object]) -> Callable[[], None]:
    """One pass over the configurations, one call each."""

    def run() -> None:
        for k in range(LOOP):
            f(k)

    return run


def placement(model: Model, link: str) -> tuple[int, np.ndarray]:
    """The body that carries a link, and the pose of the link on it."""
    at = model.link_index(link)
    return model.tree.link_bodies[at], np.asarray(model.link_placements[at], np.float64)


def all_links(model: Model, poses: np.ndarray) -> np.ndarray:
    """The poses (..., nb, 4, 4) of the bodies as those of all links, NaN for the links that are welded to others."""
    out = np.full((*poses.shape[:-3], len(model.link_names), 4, 4), np.nan)
    out[..., list(model.tree.principal_links), :, :] = poses
    return out
