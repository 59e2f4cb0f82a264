"""The lines that stand for a robot where it has no shapes."""

from __future__ import annotations

import numpy as np

from ..model.model import Model


def bones(model: Model) -> np.ndarray:
    """The links (n, 2) between which lines are drawn: from the parent's link to that of each body, and from there to
    the other links on the body."""
    tree = model.tree
    root = next((link for link, body in enumerate(tree.link_bodies) if body < 0), None)
    found = []
    for link, body in enumerate(tree.link_bodies):
        if body < 0:
            continue
        own, parent = tree.principal_links[body], tree.parents[body]
        start = own if own != link else tree.principal_links[parent] if parent >= 0 else root
        if start is not None:
            found.append((start, link))
    return np.array(found, int).reshape(-1, 2)


def has_body(model: Model) -> bool:
    """Whether most of the bodies have a collision shape, so that these are enough to recognize the robot."""
    covered = {model.tree.link_bodies[link] for link in model.tree.shape_links} - {-1}
    return 2 * len(covered) >= model.nb
