"""The library's errors as subclasses of RuntimeError, which the SDK raises and its scripts catch.

`StaleStateError` is a `RuntimeError` already. Where the SDK raises `TypeError` so does the library's `DtypeError`; the
one in here is for what a function returns, which the SDK can tell no sooner.
"""

from __future__ import annotations

from ..._errors import ArgumentError as _ArgumentError
from ..._errors import DtypeError as _DtypeError
from ..._errors import ModelError as _ModelError
from ..._errors import NameNotFoundError as _NameNotFoundError
from ..._errors import ParseError as _ParseError
from ..._errors import ShapeError as _ShapeError


class ArgumentError(_ArgumentError, RuntimeError):
    """An argument of the right type with a wrong value."""


class DtypeError(_DtypeError, RuntimeError):
    """A result of a function that was given, of the wrong type."""


class ModelError(_ModelError, RuntimeError):
    """An invalid robot, or an invalid element of one."""


class ParseError(_ParseError, RuntimeError):
    """A robot description that cannot be read."""

    def __reduce__(self):
        return (ParseError, (self.findings,))


class NameNotFoundError(_NameNotFoundError, RuntimeError):
    """A link or joint name that the robot does not have."""

    def __reduce__(self):
        return (NameNotFoundError, (self.name, self.kind, self.known))


class ShapeError(_ShapeError, RuntimeError):
    """An array argument of the wrong shape."""
