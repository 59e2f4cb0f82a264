"""The list of remarks that a reader and the checks fill, and the rule by which they become an exception."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from .._errors import Finding, ModelError, ParseError

Level = Literal["error", "warning", "note"]


class Findings:
    """Remarks on one robot description, in the order in which they were made.

    Args:
        source: File name, or a name for text that came from no file; empty for a robot built in Python.

    Attributes:
        lines: Line of an element by its kind and index, such as ``("joint", 3)``, filled by a reader so that later
            checks of the description can say where the element stands.
    """

    def __init__(self, source: str = "") -> None:
        self.source = source
        self.items: list[Finding] = []
        self.lines: dict[tuple[str, int], int] = {}

    def add(self, level: Level, message: str, element: str = "", line: int = 0) -> None:
        """Adds a remark on `element`, such as ``"joint 'elbow'"``."""
        self.items.append(Finding(level, message, element, self.source, line))

    def on(self, level: Level, kind: str, index: int, name: str, message: str) -> None:
        """Adds a remark on the link or joint (`kind`) number `index` of the description."""
        self.add(level, message, f"{kind} {name!r}", self.lines.get((kind, index), 0))

    @property
    def failed(self) -> bool:
        """Whether there is an error among the remarks."""
        return any(f.level == "error" for f in self.items)

    def report(self, strict: bool = False) -> tuple[Finding, ...]:
        """Returns the remarks in the order of their lines.

        Args:
            strict: Whether a warning counts as an error.

        Raises:
            ParseError: There is an error, and the description came from text.
            ModelError: There is an error, and the description was built in Python.
        """
        items = [replace(f, level="error") if strict and f.level == "warning" else f for f in self.items]
        items.sort(key=lambda f: f.line)
        if any(f.level == "error" for f in items):
            if self.source:
                raise ParseError(items)
            raise ModelError("\n".join(str(f) for f in items if f.level == "error"))
        return tuple(items)


def fail(message: str, source: str, line: int = 0) -> ParseError:
    """Returns the error of a file that cannot be read at all."""
    return ParseError([Finding("error", message, "", source, line)])


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns ``"; did you mean 'x'?"``, or an empty string if no known name is close to `name`."""
    known = tuple(known)
    lower = {k.lower(): k for k in known}
    exact = lower.get(name.strip().lower())
    close = [exact] if exact else difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
