"""What all public algorithms share: compilation with static links and frames, and checks of their arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

import jax
import jax.numpy as jnp

from .._check import check_array
from .._errors import DtypeError, RbydynError
from ..model.model import Model

F = TypeVar("F", bound=Callable[..., Any])

Frame = Literal["local", "world", "world_aligned"]
FRAMES = ("local", "world", "world_aligned")


def public(*static: str) -> Callable[[F], F]:
    """Compiles a public function; the named arguments (links, frames) are static, so they have to be hashable."""

    def wrap(f: F) -> F:
        compiled = jax.jit(f, static_argnames=static)
        if not static:
            return cast(F, compiled)

        @functools.wraps(f)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return compiled(*args, **kwargs)
            except ValueError:
                given = inspect.signature(f).bind(*args, **kwargs).arguments
                for name in static:
                    if name in given and not _hashable(given[name]):
                        kind = type(given[name]).__name__
                        raise DtypeError(f"{name} must be a name, an index or a tuple of such, got {kind}") from None
                raise

        return cast(F, call)

    return wrap


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def check_model(model: Any) -> Model:
    """Returns `model`, or says that it is none."""
    if not isinstance(model, Model):
        raise DtypeError(f"model must be a Model (from load_urdf, build_model or robots), got {type(model).__name__}")
    return model


def check_frame(frame: str) -> None:
    """Raises unless `frame` is one of the three."""
    if frame not in FRAMES:
        raise RbydynError(f"frame must be one of {', '.join(map(repr, FRAMES))}, got {frame!r}")


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
    return (model, *(None if x is None else x.astype(dtype) for x in checked.values()))
