"""The exceptions of the library: every one says which argument, which element and what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """One remark on an input: where it is, which element it concerns and what is wrong with it.

    Args:
        level: ``"error"``, ``"warning"`` or ``"note"``.
        message: What was found, and what was expected.
        element: The element concerned, such as ``"joint 'elbow'"``; empty for the whole input.
        source: File name, or a name for text that came from no file.
        line: Line number from 1, or 0 where there is none.
    """

    level: Literal["error", "warning", "note"]
    message: str
    element: str = ""
    source: str = ""
    line: int = 0

    def __str__(self) -> str:
        where = f"{self.source}:{self.line}: " if self.line else (f"{self.source}: " if self.source else "")
        what = f"{self.element}: " if self.element else ""
        return f"{where}{self.level}: {what}{self.message}"


class RbydynError(Exception):
    """Base class of every error that this library raises on purpose."""


class PerformanceWarning(UserWarning):
    """A program runs in a slower form than it could; results are the same."""


class ModelError(RbydynError, ValueError):
    """A robot, or a change to one, that makes no sense: a cycle, two roots, an impossible inertia."""


class ParseError(ModelError):
    """A robot description that cannot be read; it carries *all* findings, not only the first.

    Args:
        findings: The findings, of which at least one is an error.
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        first = next((f for f in self.findings if f.level == "error"), self.findings[0])
        self.source, self.line, self.element = first.source, first.line, first.element
        super().__init__("\n".join(str(f) for f in self.findings))

    def __reduce__(self):
        return (ParseError, (self.findings,))


class NameNotFoundError(RbydynError, LookupError):
    """A link or joint name that the robot does not have; the closest names are offered.

    Args:
        name: The name asked for.
        kind: What it should have named, such as ``"link"``.
        known: The names that exist.
    """

    def __init__(self, name: str, kind: str, known: Iterable[str]) -> None:
        self.name, self.kind, self.known = name, kind, tuple(known)
        self.matches = tuple(difflib.get_close_matches(str(name), self.known, n=3, cutoff=0.6))
        if self.matches:
            hint = "did you mean " + " or ".join(repr(m) for m in self.matches) + "?"
        else:
            shown = ", ".join(repr(k) for k in self.known[:8]) + (", ..." if len(self.known) > 8 else "")
            hint = f"the {kind}s are: {shown}"
        super().__init__(f"no {kind} named {name!r}; {hint}")

    def __reduce__(self):
        return (NameNotFoundError, (self.name, self.kind, self.known))


class ShapeError(RbydynError, ValueError):
    """An array argument of the wrong shape."""


class DtypeError(RbydynError, TypeError):
    """An argument that is no floating-point array."""


class RecompilationError(RbydynError, RuntimeError):
    """Something would be compiled inside of a `no_recompile()` block.

    Args:
        function: The function.
        reasons: What is different from the most similar call for which it is compiled already.
    """

    def __init__(self, function: str, reasons: Sequence[str]) -> None:
        self.function, self.reasons = function, tuple(reasons)
        shown = [*self.reasons[:5], *([f"and {len(self.reasons) - 5} more"] if len(self.reasons) > 5 else [])]
        super().__init__("\n    ".join([f"{function} would be compiled anew:", *shown]))

    def __reduce__(self):
        return (RecompilationError, (self.function, self.reasons))


class StaleStateError(RbydynError, RuntimeError):
    """A quantity was asked for before the call that computes what it is made of."""


class CommandError(RbydynError, ValueError):
    """A command that a robot could not carry out as it stands; it says *all* that is wrong with it.

    Args:
        findings: What is wrong.
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(str(f) for f in self.findings))

    def __reduce__(self):
        return (CommandError, (self.findings,))


class NotConnectedError(RbydynError, RuntimeError):
    """A robot was addressed that is not connected."""


class MissingExtraError(RbydynError, ImportError):
    """An optional package is needed.

    Args:
        package: The package that could not be imported.
        extra: The extra of this library that installs it.
        feature: What needs it.
    """

    def __init__(self, package: str, extra: str, feature: str) -> None:
        self.package, self.extra, self.feature = package, extra, feature
        super().__init__(f"{feature} needs the package {package!r}: pip install 'rbydyn_jax[{extra}]'")

    def __reduce__(self):
        return (MissingExtraError, (self.package, self.extra, self.feature))
