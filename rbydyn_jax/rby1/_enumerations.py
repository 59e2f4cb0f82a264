"""Enumerations of the SDK as ours: members are equal, hashed and printed alike, whichever stands on the left.

The SDK's enumerations call everything unequal that is not their own, without asking it. So the two that belong together
are introduced to each other as soon as both are there: when this library loads the SDK, or is imported after it.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T", bound=type[enum.Enum])

_TWINS: dict[str, type[enum.Enum]] = {}  # by their path in the SDK
_NAMES: dict[type[enum.Enum], str] = {}  # which the SDK prints


class SdkEnum(enum.Enum):
    """Base of the enumerations that the SDK has, too."""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SdkEnum):
            return self is other
        path = f"{type(other).__module__}.{type(other).__qualname__}".removeprefix("rby1_sdk._bindings.")
        return self.value == int(other) if _TWINS.get(path) is type(self) else NotImplemented  # pyright: ignore

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return f"{_NAMES[type(self)]}.{self.name}"

    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"

    def __int__(self) -> int:
        return self.value

    __index__ = __int__


def mirrors(path: str) -> Callable[[T], T]:
    """Declares an enumeration to be the SDK's of that path, such as ``"RobotCommandFeedback.FinishCode"``."""

    def declare(cls: T) -> T:
        _TWINS[path], _NAMES[cls] = cls, path.rpartition(".")[2]
        if (sdk := sys.modules.get("rby1_sdk")) is not None:
            introduce(sdk)
        return cls

    return declare


def introduce(sdk: ModuleType) -> None:
    """Makes comparisons that start with a member of the SDK's enumerations ask ours."""
    for path in _TWINS:
        theirs: Any = sdk
        for name in path.split("."):
            theirs = getattr(theirs, name)
        for comparison in ("__eq__", "__ne__"):
            own = getattr(theirs, comparison)
            if not hasattr(own, "asks_ours"):
                setattr(theirs, comparison, _asking(own))


def _asking(own: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(self: Any, other: Any) -> bool:
        return NotImplemented if isinstance(other, SdkEnum) else own(self, other)

    compare.asks_ours = True  # pyright: ignore[reportFunctionMemberAccess]
    return compare
