"""Results in files: arrays and what holds them, in a `.npz` file that needs no pickle.

Only what a result consists of is read: arrays, numbers, strings, and the library's own classes by name.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from os import PathLike
from pathlib import Path
from typing import IO, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ._errors import ArgumentError, DtypeError

_TREE = "tree"  # the entry that tells how the others belong together
_PACKAGE = __name__.split(".")[0]


def write_result(result: Any, path: str | PathLike[str]) -> None:
    """Writes a result, or a tuple, list or dict of some.

    Raises:
        DtypeError: A value is traced, or is none of those that a result consists of; or `path` is no path.
    """
    file, arrays = _path(path), dict[str, np.ndarray]()
    tree = _encoded(result, type(result).__name__, arrays)
    contents: dict[str, Any] = {_TREE: np.array(json.dumps(tree)), **arrays}
    with file.open("wb") as stream:
        np.savez(stream, **contents)


def load_result(path: str | PathLike[str]) -> Any:
    """Reads what `save` of a result has written.

    Arrays have the dtype that they had; without `jax_enable_x64` those of float64 become float32, as everywhere in JAX.

    Args:
        path: The file.

    Returns:
        An object of the same class, with the same values.

    Raises:
        ArgumentError: The file is none of these, or of a version of the library whose results have other fields.
        DtypeError: `path` is no path.
        FileNotFoundError: There is no such file.

    Example:
        >>> import tempfile
        >>> from rbydyn_jax.planning import solve_ik
        >>> arm = robots.panda_like()
        >>> found = solve_ik(arm, "tool", link_pose(arm, jnp.full(7, 0.3), "tool"))
        >>> path = f"{tempfile.mkdtemp()}/posture.npz"
        >>> found.save(path)
        >>> bool((load_result(path).q == found.q).all())
        True
    """
    file = _path(path)
    if file.is_dir():
        raise _foreign(str(file))
    with file.open("rb") as stream:
        try:
            arrays = _arrays(stream)
            tree = json.loads(str(arrays.pop(_TREE)))
        except Exception as error:  # the readers of archives, of arrays and of text raise whatever they raise
            raise _foreign(str(file)) from error
    return _decoded(tree, arrays, str(file))


def _arrays(stream: IO[bytes]) -> dict[str, np.ndarray]:
    stored = np.load(stream, allow_pickle=False)
    if isinstance(stored, np.ndarray):
        raise ValueError("it holds one array")
    with stored:
        return dict(stored)


def _path(path: Any) -> Path:
    if not isinstance(path, str | PathLike):
        raise DtypeError(f"path must be a path, got {type(path).__name__}")
    return Path(path)


def _encoded(x: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(x, Tracer):
        raise DtypeError(f"{name} is traced: a result is saved outside of jit, vmap and grad")
    if x is None or isinstance(x, bool | str):
        return x
    if isinstance(x, jax.Array | np.ndarray | np.generic) and np.asarray(x).dtype.kind in "biufc":
        key = f"array_{len(arrays)}"
        arrays[key] = np.asarray(x)
        return {"array": key, "jax": isinstance(x, jax.Array)}
    if type(x) in (int, float):
        return {"number": repr(x)}
    fields = _fields(x)
    if fields is not None:
        inside = {key: _encoded(value, f"{name}.{key}", arrays) for key, value in fields.items()}
        return {"class": f"{type(x).__module__}:{type(x).__qualname__}", "fields": inside}
    if isinstance(x, tuple | list) and type(x) in (tuple, list):
        return {type(x).__name__: [_encoded(value, f"{name}[{k}]", arrays) for k, value in enumerate(x)]}
    if type(x) is dict and all(isinstance(key, str) for key in x):
        return {"dict": {key: _encoded(value, f"{name}[{key!r}]", arrays) for key, value in x.items()}}
    raise DtypeError(f"{name} cannot be saved: it is of the type {type(x).__name__}")


def _fields(x: Any) -> dict[str, Any] | None:
    """The fields of an object of one of the library's classes; None for anything else."""
    if not type(x).__module__.startswith(f"{_PACKAGE}."):
        return None
    if isinstance(x, eqx.Module):
        return {field.name: getattr(x, field.name) for field in dataclasses.fields(x)}
    as_dict = getattr(x, "_asdict", None)  # of a named tuple
    return as_dict() if isinstance(x, tuple) and as_dict is not None else None


def _decoded(tree: Any, arrays: dict[str, np.ndarray], file: str) -> Any:
    if not isinstance(tree, dict):
        return tree
    try:
        if "array" in tree:
            array = arrays[tree["array"]]
            return jnp.asarray(array) if tree["jax"] else array
        if "number" in tree:
            return float(tree["number"]) if any(c in tree["number"] for c in ".en") else int(tree["number"])
        if "class" in tree:
            return _object(tree, {key: _decoded(x, arrays, file) for key, x in tree["fields"].items()}, file)
        if "dict" in tree:
            return {key: _decoded(x, arrays, file) for key, x in tree["dict"].items()}
        kind = tuple if "tuple" in tree else list
        return kind(_decoded(x, arrays, file) for x in tree[kind.__name__])
    except ArgumentError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise _foreign(file) from error


def _foreign(file: str) -> ArgumentError:
    return ArgumentError(f"{file} must be a file of a result, as `save` writes it")


def _object(tree: dict[str, Any], fields: dict[str, Any], file: str) -> Any:
    module, _, name = tree["class"].partition(":")
    found: Any = None
    if module.startswith(f"{_PACKAGE}.") and name.isidentifier():
        try:
            found = getattr(importlib.import_module(module), name, None)
        except ImportError:
            found = None
    if not isinstance(found, type) or not (issubclass(found, eqx.Module) or hasattr(found, "_fields")):
        raise ArgumentError(f"{file} holds a {name or module!r}, which this version of the library does not have")
    names = {f.name for f in dataclasses.fields(found)} if issubclass(found, eqx.Module) else set(found._fields)
    if names != set(fields):
        raise ArgumentError(
            f"{file} is of another version: {name} has the fields {sorted(names)}, got {sorted(fields)}"
        )
    if not issubclass(found, eqx.Module):
        return found(**fields)
    made = object.__new__(found)  # its constructor may take something else than its fields
    for key, value in fields.items():
        object.__setattr__(made, key, value)
    return made
