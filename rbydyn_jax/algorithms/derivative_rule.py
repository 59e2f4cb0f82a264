"""Derivative rules that algorithms share: those of the configuration alone, and those of a state of motion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import Array

from ..model.configuration import qdot_from_v, v_from_qdot
from ..model.model import Model
from ..sweeps.plan import Result, traverse
from ..sweeps.sweep import Sweep
from ..xla.transpose import LinearMap, apply_linear, is_zero, jvp_along, value_and_jvp


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


def with_rule(
    plain: Callable[[Model, Array], Array], rate: LinearMap, *, from_result: bool = False
) -> Callable[[Model, Array], Array]:
    """A function of (model, q), with a rule for its derivative by q.

    Args:
        plain: The function; JAX differentiates it by the parameters of the model.
        rate: Of a velocity, the rate of the result; its parameters are the model and q.
        from_result: Whether the result is a parameter of `rate` as well.
    """

    @jax.custom_jvp
    def ruled(model: Model, q: Array) -> Array:
        return plain(model, q)

    def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Any]:
        model, q = primals
        if not is_zero(tangents[0]):  # the parameters of the model: rare, and of many kinds
            return value_and_jvp(plain, primals, tangents)
        found = ruled(model, q)
        parameters = (*primals, found) if from_result else primals
        return found, apply_linear(rate, parameters, (v_from_qdot(model, q, tangents[1]),), [found.shape])[0]

    ruled.defjvp(jvp, symbolic_zeros=True)
    return ruled


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

    def plain(model: Model, q: Array) -> Array:
        return traverse(model, algorithm, q, result=result)

    return with_rule(plain, _Derivative(rate, gradient, result))


def rate_along(
    f: Callable[..., Array], places: Sequence[int], parameters: tuple[Any, ...], changes: Sequence[Array]
) -> Array:
    """The rate of f(model, q, ...) along changes of the arguments at some places after the model; of q, a velocity."""
    model, *state = parameters
    moved = dict(zip(places, changes, strict=True))
    if 0 in moved:
        moved[0] = qdot_from_v(model, state[0], moved[0])
    return jvp_along(lambda xs: f(model, *xs), state, moved)[1]


def state_rule(
    f: Callable[..., Array],
    plain: Callable[..., Array],
    names: Sequence[str],
    tangent: Callable[[tuple[str, ...]], LinearMap],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
) -> tuple[Array, Any]:
    """The `jvp` rule, with symbolic zeros, of a function of a model, a configuration and what may be None.

    Args:
        f: The function that has this rule.
        plain: The same without it, for changes of the parameters of the model.
        names: Of the arguments after the model; the first is that of the configuration.
        tangent: The derivative by those of some names, the configuration's as a velocity.
        primals: The arguments.
        tangents: Their changes.
    """
    if not is_zero(tangents[0]):  # the parameters of the model: rare, and of many kinds
        return value_and_jvp(plain, primals, tangents)
    found = f(*primals)
    given = zip(names, tangents[1:], primals[1:], strict=True)
    moved = {name: t for name, t, x in given if x is not None and not is_zero(t)}
    if names[0] in moved:
        moved[names[0]] = v_from_qdot(primals[0], primals[1], moved[names[0]])
    return found, apply_linear(tangent(tuple(moved)), primals, tuple(moved.values()), [found.shape])[0]
