"""Values of options, from text."""

from __future__ import annotations

import argparse
import math

ENGINES = ("pinocchio", "mujoco", "rby1_sdk")
TERMS = ("inertia", "armature", "damping", "friction")
MOST_RANDOM = 100_000  # configurations of fk, which are held and printed together


def positive(text: str) -> int:
    """A whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def random(text: str) -> int:
    """A number of random configurations."""
    value = positive(text)
    if value > MOST_RANDOM:
        raise argparse.ArgumentTypeError(f"must be at most {MOST_RANDOM}, got {value}")
    return value


def bound(text: str) -> float:
    """A finite number that is not negative."""
    value = float(text)
    if not 0.0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be finite and not negative, got {text}")
    return value


def sizes(text: str) -> tuple[int, ...]:
    """Whole numbers between commas, in ascending order."""
    try:
        return tuple(sorted({positive(x) for x in text.split(",")}))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be whole numbers between commas, got {text!r}") from None


def numbers(text: str) -> tuple[float, ...]:
    """Finite numbers between commas."""
    try:
        values = tuple(float(x) for x in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers between commas, got {text!r}") from None
    if not all(map(math.isfinite, values)):
        raise argparse.ArgumentTypeError(f"must be finite, got {text}")
    return values


def seed(text: str) -> int:
    """A whole number of 64 bits."""
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise argparse.ArgumentTypeError(f"must have 64 bits, got {value}")
    return value


def three(text: str) -> tuple[float, ...]:
    """Three numbers between commas."""
    return _exactly(3, text)


def four(text: str) -> tuple[float, ...]:
    """Four numbers between commas."""
    return _exactly(4, text)


def _exactly(count: int, text: str) -> tuple[float, ...]:
    values = numbers(text)
    if len(values) != count:
        raise argparse.ArgumentTypeError(f"must be {count} numbers, got {len(values)}")
    return values


def named(text: str) -> tuple[str, str]:
    """A pair NAME=VALUE."""
    name, given, value = text.partition("=")
    if not (name and given):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    return name, value


def share(text: str) -> float:
    """A number between 0 and 1."""
    value = float(text)
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, got {value}")
    return value


def engines(text: str) -> tuple[str, ...]:
    """Names of engines between commas."""
    return _some(text, ENGINES, "engine")


def terms(text: str) -> tuple[str, ...]:
    """Names of terms between commas."""
    return _some(text, TERMS, "term")


def _some(text: str, choices: tuple[str, ...], kind: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    unknown = [name for name in names if name not in choices]
    if unknown:
        raise argparse.ArgumentTypeError(f"no {kind} named {unknown[0]!r}; the {kind}s are {', '.join(choices)}")
    return names
