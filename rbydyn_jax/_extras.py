"""Optional packages."""

from __future__ import annotations

import importlib
from types import ModuleType

from ._errors import MissingExtraError


def require(package: str, extra: str, feature: str) -> ModuleType:
    """Imports an optional package; if it is missing, the error names the extra that installs it.

    Raises:
        MissingExtraError: The package is not installed, or cannot be imported; the message says which.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        is_absent = isinstance(error, ModuleNotFoundError) and f"{package}.".startswith(f"{error.name or ''}.")
        cause = "" if is_absent else f"{type(error).__name__}: {error}"
        raise MissingExtraError(package, extra, feature, cause) from error
