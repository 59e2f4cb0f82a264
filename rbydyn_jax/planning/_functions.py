"""Costs and constraints that are functions of the user: how they are called, and what they return."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float

from .._check import is_foreign
from .._errors import DtypeError, ShapeError


def checked_function(f: Any, name: str, arguments: str, kind: str = "a function") -> Any:
    """A function of the user as a pytree: plain ones are wrapped.

    Args:
        f: The function.
        name: What the user gave it as, such as ``"costs[0]"``.
        arguments: What it is called with, such as ``"(model, q, v, tau, t)"``.
        kind: What it may be.

    Raises:
        DtypeError: It is no function, or cannot be called with so many arguments.
    """
    if not callable(f):
        raise DtypeError(f"{name} must be {kind} of {arguments}, got {type(f).__name__}")
    if (own := _mismatch(f, arguments.count(",") + 1)) is not None:
        bound = "" if not isinstance(f, functools.partial) else "; what is bound comes first"
        raise DtypeError(f"{name} must be {kind} of {arguments}, got one of {own}{bound}")
    return f if isinstance(f, eqx.Module | Partial) else Partial(f)


def returned(x: Any, name: str, axes: tuple[int, ...]) -> Float[Array, "*n"]:
    """What a function of the user returned, as an array.

    Args:
        x: What it returned.
        name: What the user gave the function as, such as ``"costs[0]"``.
        axes: The numbers of axes that it may have.

    Raises:
        DtypeError: It is not an array of floats; the derivative of integers is zero, and they would not be minimized.
        ShapeError: It has another number of axes.
    """
    what = "residuals (n,), an array of floats" if "cost" in name else "an array of floats (n,) that must be <= 0"
    is_array = isinstance(x, jax.Array | np.ndarray | np.generic) and not is_foreign(x)
    if not is_array and not isinstance(x, float):
        raise DtypeError(f"{name} must return {what}, got {type(x).__name__}")
    array = jnp.asarray(x)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise DtypeError(f"{name} must return {what}, got dtype {array.dtype}")
    if array.ndim not in axes:
        raise ShapeError(f"{name} must return {what}, got shape {array.shape}")
    return array


def _mismatch(f: Any, count: int) -> str | None:
    """The arguments of a function, if it cannot be called with so many; None also if they are not known.

    A wrapper may take other arguments than what it wraps, and a compiled one has the signature of that: it is enough if
    one of these can be called.
    """
    args, kwargs, own = (None,) * count, {}, None
    while isinstance(f, functools.partial):
        args, kwargs, f = (*f.args, *args), f.keywords | kwargs, f.func
    while f is not None:
        try:
            signature = inspect.signature(f, follow_wrapped=False)
        except (TypeError, ValueError):
            signature = None
        if signature is not None:
            try:
                signature.bind(*args, **kwargs)
            except TypeError:
                own = own or str(signature.replace(return_annotation=inspect.Signature.empty))
            else:
                return None
        f = getattr(f, "__wrapped__", None)
    return own
