"""What all public algorithms share: checks of their arguments."""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp

from .._check import check_array, check_choice
from ..model.model import check_model
from ..xla.sharding import vary_alike

Frame = Literal["local", "world", "world_aligned"]
FRAMES = ("local", "world", "world_aligned")


def check_frame(frame: str) -> None:
    """Raises unless `frame` is one of the three."""
    check_choice(frame, "frame", FRAMES)


def arguments(model: Any, **arrays: Any) -> tuple[Any, ...]:
    """The model and its array arguments, checked and of one dtype.

    Names tell the shapes: q (nq,), f_ext (nb, 6), point (3,), all others (nv,). The dtype is that of the arrays, and
    the model follows it. `f_ext` may be None.
    """
    model = check_model(model)
    shapes = {"q": ((model.nq,), "model.nq"), "f_ext": ((model.nb, 6), "model.nb, 6"), "point": ((3,), "")}
    default = ((model.nv,), "model.nv")
    checked = {
        name: None
        if x is None and name == "f_ext"
        else check_array(x, name, *shapes.get(name.removesuffix("0").removesuffix("1"), default))
        for name, x in arrays.items()
    }
    dtype = jnp.result_type(*(x for x in checked.values() if x is not None))
    model = jax.tree.map(lambda x: x.astype(dtype), model)
    return vary_alike((model, *(None if x is None else x.astype(dtype) for x in checked.values())))
