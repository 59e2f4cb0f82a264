"""A robot whose parameters are constants of the compiled program."""

from __future__ import annotations

import hashlib
from typing import Any

import jax
import numpy as np


@jax.tree_util.register_static
class SpecializedModel:
    """What `specialize` makes of a `Model`: the same attributes, but for JAX static data, equal by value.

    Attributes:
        model: The model.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        digest = hashlib.sha256(repr(hash(model.tree)).encode())
        for leaf in map(np.asarray, jax.tree.leaves(model)):
            digest.update(f"{leaf.dtype}{leaf.shape}".encode() + leaf.tobytes())
        self._key = digest.hexdigest()
        self._hash = int(self._key[:15], 16)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("model", "_key", "_hash"):  # not yet there while it is copied or unpickled
            raise AttributeError(name)
        return getattr(self.model, name)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, SpecializedModel) and self._key == other._key and self.model.tree == other.model.tree
        )

    def __repr__(self) -> str:
        return f"Specialized{self.model!r}"
