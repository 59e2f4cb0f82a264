"""The least time that the arithmetic of an operation can take: its operations, over the measured peak of one core.

Counted are the arithmetic operations of the program as it is traced for one configuration, after dead code is removed:
one for each number that an addition, multiplication, division, square root, minimum and the like makes, two for each
term of a product of matrices; comparisons, selections and copies count nothing. The peak is what the fastest of a
vectorized elementwise kernel in cache and the matrix product of NumPy's BLAS reaches, two operations for each fused
multiply-add. A program that mixes few of these, or has to write its results to memory, stays far above this floor.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import partial_eval

_ONE_FOR_EACH_RESULT = frozenset(
    "add sub mul div neg abs max min sqrt rsqrt sin cos tan atan2 exp log square add_any rem".split()
)
_ONE_FOR_EACH_OPERAND = frozenset("reduce_sum reduce_max reduce_min reduce_prod cumsum cumprod".split())
_CHAINS, _DEPTH, _SIZE = 16, 64, 2048  # independent multiply-adds, their number in a row, numbers in cache
_MATRIX = 512


def count(f: Callable, *arguments: Any) -> int:
    """Arithmetic operations of `f` on one configuration."""
    closed = jax.jit(f).trace(*arguments).jaxpr
    jaxpr, _ = partial_eval.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
    return _of_program(jaxpr)


def _of_program(jaxpr: Any) -> int:
    return sum(_of_equation(equation) for equation in jaxpr.eqns)


def _of_equation(equation: Any) -> int:
    name, parameters = equation.primitive.name, equation.params
    if name.startswith("rbydyn_"):  # the library's own, which say in Python what they compute
        own = jax.make_jaxpr(lambda *xs: equation.primitive.impl(*xs, **parameters))(*(x.aval for x in equation.invars))
        return _of_program(partial_eval.dce_jaxpr(own.jaxpr, [True] * len(own.jaxpr.outvars))[0])
    inner = [_of_program(x) for x in _programs(parameters)]
    if inner:
        # Of the branches of a condition one is taken; the steps of a scan are all taken.
        return max(inner) if name == "cond" else sum(inner) * parameters.get("length", 1)
    out = equation.outvars[0].aval
    if not jnp.issubdtype(out.dtype, jnp.floating):
        return 0
    if name == "dot_general":
        (contracted, _), _ = parameters["dimension_numbers"]
        shape = equation.invars[0].aval.shape
        return 2 * out.size * math.prod(shape[k] for k in contracted)
    if name == "cholesky":
        return out.shape[-1] ** 3 // 3
    if name == "triangular_solve":
        return out.size * equation.invars[0].aval.shape[-1]
    if name == "integer_pow":
        return out.size * max(abs(parameters["y"]) - 1, 1)
    if name in _ONE_FOR_EACH_OPERAND:
        return equation.invars[0].aval.size
    return out.size if name in _ONE_FOR_EACH_RESULT else 0


def _programs(parameters: dict[str, Any]) -> Iterator[Any]:
    """The programs that an equation holds."""
    for value in parameters.values():
        for x in value if isinstance(value, tuple | list) else (value,):
            x = getattr(x, "jaxpr", x)
            if hasattr(x, "eqns"):
                yield x


def peak(dtype: str) -> float:
    """Arithmetic operations per second that one core reaches."""
    return max(_elementwise_peak(dtype), _matrix_peak(dtype))


def _elementwise_peak(dtype: str) -> float:
    def kernel(x: jax.Array) -> jax.Array:
        lines = [x + k for k in range(_CHAINS)]
        for _ in range(_DEPTH):
            lines = [0.999 * y + 0.001 for y in lines]
        return sum(lines[1:], lines[0])

    compiled, x = jax.jit(kernel), jnp.linspace(0, 1, _SIZE, dtype=dtype)
    return 2 * _CHAINS * _DEPTH * _SIZE / _least_time(lambda: jax.block_until_ready(compiled(x)))


def _matrix_peak(dtype: str) -> float:
    a, out = np.full((_MATRIX, _MATRIX), 0.5, dtype), np.empty((_MATRIX, _MATRIX), dtype)
    return 2 * _MATRIX**3 / _least_time(lambda: np.matmul(a, a, out=out))


def _least_time(run: Callable[[], object]) -> float:
    """CPU seconds of one run, the minimum of many slices."""
    run()
    best = math.inf
    for _ in range(40):
        start = time.process_time()
        for _ in range(4):
            run()
        best = min(best, (time.process_time() - start) / 4)
    return best
