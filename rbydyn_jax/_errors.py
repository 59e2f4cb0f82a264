"""The exceptions of the library: each names the argument, the element and what was expected."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """One problem of an input: where it is, which element it concerns and what is wrong.

    Args:
        level: ``"error"``, ``"warning"`` or ``"note"``.
        message: What was found, and what was expected.
        element: The element, such as ``"joint 'elbow'"``; empty for the whole input.
        source: File name, or a name for text that came from no file.
        line: Line number from 1, or 0 where there is none.
    """

    __module__ = "rbydyn_jax"

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
    """Base class of all errors that this library raises on purpose."""

    __module__ = "rbydyn_jax"  # where it is public: tracebacks show this name

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__:
            cls.__module__ = RbydynError.__module__


class ArgumentError(RbydynError, ValueError):
    """An argument of the right type and shape with a wrong value: a count of zero, an unknown choice, a NaN."""


class PerformanceWarning(UserWarning):
    """A program runs in a slower form than it could; results are the same."""

    __module__ = "rbydyn_jax"


class ModelError(RbydynError, ValueError):
    """An invalid robot, or one that does not support what is asked of it: a cycle, two roots, an impossible inertia."""


class ParseError(ModelError):
    """A robot description that cannot be read; carries *all* findings, not only the first.

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
    """A name that does not exist, such as that of a link or joint; the message suggests the closest ones.

    Args:
        name: The name asked for.
        kind: What it should have named, such as ``"link"``.
        known: The names that exist.
        note: What else there is to say, at the end of the message.
    """

    def __init__(self, name: str, kind: str, known: Iterable[str], note: str = "") -> None:
        self.name, self.kind, self.known, self.note = name, kind, tuple(known), note
        self.matches = tuple(difflib.get_close_matches(str(name), self.known, n=3, cutoff=0.6))
        if self.matches:
            hint = "did you mean " + " or ".join(repr(m) for m in self.matches) + "?"
        else:
            shown = ", ".join(repr(k) for k in self.known[:8]) + (", ..." if len(self.known) > 8 else "")
            what, of, whose = kind.partition(" of ")
            hint = f"the {what}s{of}{whose} are: {shown}"
        super().__init__(f"no {kind} named {name!r}; {hint}" + (f" ({note})" if note else ""))

    def __reduce__(self):
        return (NameNotFoundError, (self.name, self.kind, self.known, self.note))


class ShapeError(RbydynError, ValueError):
    """An array argument of the wrong shape."""


class DtypeError(RbydynError, TypeError):
    """An argument of the wrong type, such as an array of integers."""


class RecompilationError(RbydynError, RuntimeError):
    """A function was compiled inside a `no_recompile()` block.

    Args:
        function: The function.
        reasons: How the call differs from the most similar one that was compiled before.
    """

    def __init__(self, function: str, reasons: Sequence[str]) -> None:
        self.function, self.reasons = function, tuple(reasons)
        shown = [*self.reasons[:5], *([f"and {len(self.reasons) - 5} more"] if len(self.reasons) > 5 else [])]
        super().__init__("\n    ".join([f"{function} would be recompiled:", *shown]))

    def __reduce__(self):
        return (RecompilationError, (self.function, self.reasons))


class StaleStateError(RbydynError, RuntimeError):
    """A quantity was read before the `compute_*` call that it depends on."""


class CommandError(RbydynError, ValueError):
    """A command that the robot could not carry out; carries *all* findings.

    Args:
        findings: The findings, of which at least one is an error.
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(str(f) for f in self.findings))

    def __reduce__(self):
        return (CommandError, (self.findings,))


class NotConnectedError(RbydynError, RuntimeError):
    """The robot is not connected."""


class MissingExtraError(RbydynError, ImportError):
    """An optional package is missing, or cannot be imported.

    Args:
        package: The package that could not be imported.
        extra: The extra of this library that installs it.
        feature: What needs it.
        cause: Why it cannot be imported, if it is installed.
    """

    def __init__(self, package: str, extra: str, feature: str, cause: str = "") -> None:
        self.package, self.extra, self.feature, self.cause = package, extra, feature, cause
        instead = f", which is installed but cannot be imported: {cause}"
        cure = instead if cause else f": pip install 'rbydyn_jax[{extra}]'"
        super().__init__(f"{feature} needs the package {package!r}{cure}")

    def __reduce__(self):
        return (MissingExtraError, (self.package, self.extra, self.feature, self.cause))
