"""Whether a robot has the tree for which a program was made, in another process perhaps."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Mapping

from .._errors import ModelError
from ..model.tree import KinematicTree


@functools.lru_cache(maxsize=64)
def tree_digest(tree: KinematicTree) -> dict[str, str]:
    """A digest of each part of a tree that programs depend on."""
    names = (f.name for f in dataclasses.fields(tree) if f.name not in ("report", "traversal"))
    return {name: hashlib.sha256(repr(getattr(tree, name)).encode()).hexdigest()[:16] for name in names}


def check_tree(tree: KinematicTree, digest: Mapping[str, str], what: str) -> None:
    """Raises unless a tree has this digest; `what` is as "rnea was exported for 'arm'".

    Raises:
        ModelError: It has another.
    """
    found = tree_digest(tree)
    if found != digest:
        parts = ", ".join(name for name, key in digest.items() if found.get(name) != key)
        raise ModelError(f"{what}; of {tree.name!r} differs: {parts}")
