"""Fields of messages, by attributes or by keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._check import check_finite, real_numbers
from ..._errors import ArgumentError, DtypeError, ShapeError


def has(message: Any, path: str) -> bool:
    """Whether a message has a field, such as ``"pose.position"``."""
    for name in path.split("."):
        if isinstance(message, Mapping):
            if name not in message:
                return False
            message = message[name]
        elif hasattr(message, name):
            message = getattr(message, name)
        else:
            return False
    return True


def get(message: Any, path: str, kind: str) -> Any:
    """A field of a message of some kind, such as ``"a JointState"``.

    Raises:
        DtypeError: There is no such field.
    """
    if not has(message, path):
        raise DtypeError(f"{kind} must have the field {path}, got {type(message).__name__}")
    for name in path.split("."):
        message = message[name] if isinstance(message, Mapping) else getattr(message, name)
    return message


def numbers(message: Any, path: str, kind: str, size: int | None = None) -> np.ndarray:
    """A field of real numbers.

    Raises:
        DtypeError: There is no such field, or it does not consist of numbers.
        ShapeError: There are not as many as `size`.
    """
    value = get(message, path, kind)
    found = real_numbers(value, truth_values=False)
    if found is None:
        raise DtypeError(f"{path} of {kind} must be real numbers, got {value!r:.100}")
    if found.ndim != 1 or (size is not None and len(found) != size):
        raise ShapeError(f"{path} of {kind} must be {'' if size is None else f'{size} '}numbers, got {found.shape}")
    return found


def components(message: Any, path: str, names: str, kind: str) -> np.ndarray:
    """Numbers that are fields of their own, such as x, y and z.

    Raises:
        ArgumentError: One is not finite.
        DtypeError: There is no such field, or it is not a number.
    """
    given = [get(message, f"{path}.{name}", kind) for name in names]
    found = real_numbers(given, truth_values=False)
    if found is None or found.ndim != 1:
        raise DtypeError(f"{path} of {kind} must be real numbers, got {given!r:.100}")
    check_finite(found, f"{path} of {kind}")
    return found


def names(message: Any, path: str, kind: str) -> list[str]:
    """A field of different names.

    Raises:
        ArgumentError: A name comes twice.
        DtypeError: There is no such field, or it does not consist of names.
    """
    value = get(message, path, kind)
    if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
        raise DtypeError(f"{path} of {kind} must be names, got {value!r:.100}")
    found = [str(x) if isinstance(x, str) else x for x in value]
    if not all(isinstance(x, str) for x in found):
        raise DtypeError(f"{path} of {kind} must be names, got {value!r:.100}")
    if twice := next((x for k, x in enumerate(found) if x in found[:k]), None):
        raise ArgumentError(f"{path} of {kind} must name each joint once, got {twice!r} twice")
    return found


def filled(message: Any, fields: Mapping[str, Any]) -> Any:
    """A message with these fields set; the fields themselves if there is none.

    Raises:
        DtypeError: The message has no such field.
    """
    if message is None:
        return fields
    for name, value in fields.items():
        if not hasattr(message, name):
            raise DtypeError(f"message must have the field {name}, got {type(message).__name__}")
        if isinstance(value, Mapping):
            filled(getattr(message, name), value)
        else:
            setattr(message, name, value)
    return message
