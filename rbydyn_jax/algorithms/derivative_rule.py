"""Algorithms of the configuration whose derivative is known as two sweeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import Array

from ..model.configuration import v_from_qdot
from ..model.model import Model
from ..sweeps.plan import Result, traverse
from ..sweeps.sweep import Sweep
from ..xla.transpose import LinearMap, apply_linear, is_zero, jvp_of


@dataclass(frozen=True)
class _Derivative(LinearMap):
    """An algorithm on one array, and its transpose; the parameters are the model and q."""

    algorithm: Callable[[Sweep, Array], Array]
    transposed: Callable[[Sweep, Array], Array]
    result: Result

    def apply(self, parameters: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        model, q = parameters
        return (traverse(model, self.algorithm, q, *arguments, result=self.result),)

    def transpose(self) -> LinearMap:
        return _Derivative(self.transposed, self.algorithm, self.result)


def with_derivative(
    algorithm: Callable[[Sweep], Array],
    rate: Callable[[Sweep, Array], Array],
    gradient: Callable[[Sweep, Array], Array],
    result: Result,
) -> Callable[[Model, Array], Array]:
    """The algorithm as a function of (model, q), whose derivative by q is known as two sweeps.

    Args:
        algorithm: What is computed.
        rate: Of a velocity, the rate of the result.
        gradient: Its transpose: of a cotangent of the result, the gradient for velocities.
        result: What the algorithm computes.
    """
    derivative = _Derivative(rate, gradient, result)

    def plain(model: Model, q: Array) -> Array:
        return traverse(model, algorithm, q, result=result)

    @jax.custom_jvp
    def ruled(model: Model, q: Array) -> Array:
        return plain(model, q)

    def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Any]:
        model, q = primals
        found = ruled(model, q)
        if not is_zero(tangents[0]):  # the parameters of the model: rare, and of many kinds
            return found, jvp_of(plain, primals, tangents)
        return found, apply_linear(derivative, primals, (v_from_qdot(model, q, tangents[1]),), [found.shape])[0]

    ruled.defjvp(jvp, symbolic_zeros=True)
    return ruled
