"""Calls with one wrong argument each: every public function answers them with a typed error, or with a result."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import rbydyn_jax as rb

WRONG = (
    None, "x", b"x", object(), {}, (), [1, 2], (1.0, "a"), 1.5, -1, 0, 10**400, True, np.nan, -np.inf, [np.inf] * 3, 1j,
    np.zeros((3, 3)), 2.0 * np.eye(4), np.zeros((5, 6)), np.zeros(0), np.full(3, np.nan), np.zeros(2), jnp.ones((4, 2)),
    np.zeros(2, int), np.zeros(3, complex), np.array(["a"]), np.array([None]), ["a"], {"a": None}, {0: "x"},
    [[1, 2], [3]],
)  # fmt: skip


def required(f: Callable[..., Any], right: Mapping[str, Any]) -> dict[str, Any]:
    """Right values of the arguments that a call needs."""
    found: dict[str, Any] = {}
    for name, p in inspect.signature(f).parameters.items():
        if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL):
            continue
        if name in right:
            found[name] = right[name]
        elif p.default is p.empty:
            raise AssertionError(f"a right value for the argument {name} of {f.__name__} is missing in the table")
    return found


def calls(f: Callable[..., Any], right: Mapping[str, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Calls with one wrong argument each, all others right; and with two arguments swapped."""
    needed = required(f, right)
    names = [n for n, p in inspect.signature(f).parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    for name in names:
        for wrong in WRONG:
            arguments = needed | {name: wrong}
            yield f"{name}={wrong!r:.60}", lambda arguments=arguments: f(**arguments)
    for a, b in itertools.pairwise(names):
        if a in needed and b in needed:
            swapped = needed | {a: needed[b], b: needed[a]}
            yield f"{a} and {b} swapped", lambda swapped=swapped: f(**swapped)


def check(f: Callable[..., Any], right: Mapping[str, Any], *, traced: bool = False, run: bool = True) -> None:
    """Checks that a call of `f` with right arguments gives a result, and with wrong ones a result or a typed error.

    Args:
        f: The function, method or class.
        right: Right values by name of the argument.
        traced: Whether to trace only, inside of a trace in which the arguments are known: nothing is compiled.
        run: Whether to make the right call, too.
    """

    def attempt(call: Callable[[], Any]) -> None:
        if traced:
            jax.eval_shape(lambda: (call(), None)[1])
        else:
            call()

    if run:
        attempt(lambda: f(**required(f, right)))
    raw, refused = [], 0
    for label, call in calls(f, right):
        try:
            attempt(call)
        except rb.RbydynError as error:
            refused += 1
            if len(str(error)) <= 10:
                raw.append(f"{label}: no message")
        except OSError as error:  # of a path that cannot be written
            assert error.filename
        except Exception as error:
            raw.append(f"{label}: {type(error).__name__}: {error!s:.100}")
    assert not raw, f"{len(raw)} calls of {f.__name__} without a typed error, such as\n" + "\n".join(raw[:12])
    assert refused or all(p.kind is p.VAR_KEYWORD for p in inspect.signature(f).parameters.values())
