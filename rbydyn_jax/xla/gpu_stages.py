"""Programs in stages, between which others run that they call.

A kernel of a GPU computes a configuration in each thread. What is done alike for each of many pairs of shapes is better
a kernel of its own, with a pair of a configuration in each thread: it is the program of one pair instead of all, and
there are more threads. All that needs no result of such a call is the first stage, what needs one the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, Primitive

from .transpose import pruned

_INNER = {"jit": "jaxpr", "pjit": "jaxpr", "custom_jvp_call": "call_jaxpr"}


class Stage(NamedTuple):
    """A part of a program without calls, and the calls that follow it."""

    program: ClosedJaxpr
    reads: Sequence[Any]
    """The variables that are its operands."""
    gives: Sequence[Any]
    """Those that are its results."""
    calls: Sequence[JaxprEqn]


class Stages(NamedTuple):
    """A program in stages, which run one after the other."""

    program: ClosedJaxpr
    parts: Sequence[Stage]

    def run(
        self, run_part: Callable[[ClosedJaxpr, Sequence[Any]], Sequence[Any]], operands: Sequence[Any]
    ) -> list[Any]:
        """The results of the program; `run_part(program, operands)` gives those of the part of a stage."""
        jaxpr, values = self.program.jaxpr, _constants(self.program)
        values |= dict(zip(jaxpr.invars, operands, strict=True))
        for part in self.parts:
            found = run_part(part.program, [values[x] for x in part.reads]) if part.gives else ()
            pairs = zip(part.gives, found, strict=True)
            values |= {x: value for x, value in pairs if not isinstance(x, Literal)}
            _evaluate(part.calls, values)
        return [jnp.asarray(_value(x, values), x.aval.dtype) for x in jaxpr.outvars]


def stages(program: ClosedJaxpr, apart: Primitive) -> Stages:
    """A program whose calls are those of one primitive."""
    if not _calls(program, apart):
        return Stages(program, [Stage(program, program.jaxpr.invars, program.jaxpr.outvars, ())])
    program = _inlined(program, apart)
    level: dict[Any, int] = {}
    own, calls = list[list[JaxprEqn]]([[]]), list[list[JaxprEqn]]([[]])
    for eqn in program.jaxpr.eqns:
        at = max((level.get(x, 0) for x in eqn.invars if not isinstance(x, Literal)), default=0)
        is_call = eqn.primitive is apart
        (calls if is_call else own)[at].append(eqn)
        level |= dict.fromkeys(eqn.outvars, at + is_call)
        if is_call and at + 1 == len(own):
            own.append([])
            calls.append([])
    return Stages(program, [_stage(program, *eqns) for eqns in zip(own, calls, strict=True)])


def _stage(program: ClosedJaxpr, eqns: Sequence[JaxprEqn], calls: Sequence[JaxprEqn]) -> Stage:
    constants, inside = _constants(program), set(map(id, eqns))
    made = dict.fromkeys(x for eqn in eqns for x in eqn.outvars)  # in order: programs are alike in all processes
    reads = list(dict.fromkeys(x for eqn in eqns for x in _variables(eqn) if x not in made and x not in constants))
    wanted = {x for eqn in program.jaxpr.eqns if id(eqn) not in inside for x in _variables(eqn)}
    wanted |= {x for x in program.jaxpr.outvars if not isinstance(x, Literal)}
    gives = [x for x in made if x in wanted]

    def of_operands(*xs: jax.Array) -> list[Any]:
        values = constants | dict(zip(reads, xs, strict=True))
        _evaluate(eqns, values)
        return [values[x] for x in gives]

    return Stage(pruned(jax.make_jaxpr(of_operands)(*(x.aval for x in reads))), reads, gives, calls)


def _calls(program: Any, apart: Primitive) -> bool:
    """Whether there is such a call in a program or in one within it."""
    return any(
        eqn.primitive is apart or (eqn.primitive.name in _INNER and _calls(_inner(eqn), apart))
        for eqn in program.jaxpr.eqns
    )


def _inlined(program: ClosedJaxpr, apart: Primitive) -> ClosedJaxpr:
    """The program with such calls in itself alone.

    A derivative rule of what contained them is lost: that of `slopes.with_slopes`, which computes the same.
    """

    def evaluated(program: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        values = _constants(program) | dict(zip(program.jaxpr.invars, operands, strict=True))
        for eqn in program.jaxpr.eqns:
            if eqn.primitive.name in _INNER and _calls(_inner(eqn), apart):
                found = evaluated(_inner(eqn), [_value(x, values) for x in eqn.invars])
                values |= dict(zip(eqn.outvars, found, strict=True))
            else:
                _evaluate([eqn], values)
        return [_value(x, values) for x in program.jaxpr.outvars]

    return jax.make_jaxpr(lambda *xs: evaluated(program, xs))(*program.in_avals)


def _inner(eqn: JaxprEqn) -> ClosedJaxpr:
    return eqn.params[_INNER[eqn.primitive.name]]


def _constants(program: ClosedJaxpr) -> dict[Any, Any]:
    return dict(zip(program.jaxpr.constvars, program.consts, strict=True))


def _variables(eqn: JaxprEqn) -> list[Any]:
    return [x for x in eqn.invars if not isinstance(x, Literal)]


def _value(x: Any, values: Mapping[Any, Any]) -> Any:
    return x.val if isinstance(x, Literal) else values[x]


def _evaluate(eqns: Sequence[JaxprEqn], values: dict[Any, Any]) -> None:
    """Adds what equations compute to the values."""
    for eqn in eqns:
        found = eqn.primitive.bind(
            *(_value(x, values) for x in eqn.invars), **eqn.primitive.get_bind_params(eqn.params)
        )
        values |= dict(zip(eqn.outvars, found if eqn.primitive.multiple_results else [found], strict=True))
