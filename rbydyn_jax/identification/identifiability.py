r"""Which combinations of parameters the torques depend on.

Columns of the stacked regressor $W$ that are combinations of others belong to parameters that cannot be told apart:
with $W = W_b B$, $W_b$ of full rank, only the base parameters $B \pi$ have an influence [Gautier 1991].
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from .._check import check_integer, check_key, check_outside_jit
from .._errors import ArgumentError
from ..model.model import Model, check_model
from ..model.states import random_states
from .data import TrajectoryData, check_data
from .parameter_vector import TERMS, Term, check_terms, regressor
from .unknowns import selection_of


@dataclass(frozen=True)
class BaseParameters:
    """What measurements tell of the parameters; `print` shows it in words.

    Attributes:
        names: The names of all parameters.
        pivots: For each base parameter the parameter, by index, that stands for it, with coefficient 1.
        combinations: The matrix (rank, p) that makes the base parameters of all parameters.
        condition: The condition number of the columns of the pivots, each scaled to unit length.
    """

    names: tuple[str, ...]
    pivots: tuple[int, ...]
    combinations: np.ndarray
    condition: float

    @property
    def rank(self) -> int:
        """The number of base parameters."""
        return len(self.pivots)

    @property
    def unobservable(self) -> tuple[str, ...]:
        """The parameters that have no influence on anything measured."""
        return tuple(self.names[k] for k in np.flatnonzero(~self.combinations.any(axis=0)))

    @property
    def identifiable(self) -> tuple[str, ...]:
        """The parameters that can be told from all others."""
        alone = np.count_nonzero(self.combinations, axis=1) == 1
        return tuple(self.names[k] for k, is_alone in zip(self.pivots, alone, strict=True) if is_alone)

    @property
    def grouped(self) -> tuple[str, ...]:
        """The combinations of several parameters that can be told as a whole only, in words."""
        rows = zip(self.pivots, self.combinations, strict=True)
        return tuple(self._words(pivot, row) for pivot, row in rows if np.count_nonzero(row) > 1)

    def _words(self, pivot: int, row: np.ndarray) -> str:
        others = [k for k in np.flatnonzero(row) if k != pivot]
        terms = [f"{'-' if row[k] < 0 else '+'} {_factor(abs(row[k]))}({self.names[k]})" for k in others]
        return " ".join([f"({self.names[pivot]})", *terms])

    def __str__(self) -> str:
        lines = [
            f"{len(self.names)} parameters, of which {self.rank} combinations can be told apart "
            f"(condition number {self.condition:.3g})"
        ]
        for title, items, separator in (
            ("identifiable alone", self.identifiable, ", "),
            ("identifiable as a combination only", self.grouped, "\n"),
            ("without influence", self.unobservable, ", "),
        ):
            lines.append(f"{title}: {len(items)}")
            for line in separator.join(items).splitlines():
                lines += textwrap.wrap(line, 110, initial_indent="  ", subsequent_indent="      ")
        return "\n".join(lines)

    __repr__ = __str__


def _factor(x: float) -> str:
    text = f"{x:.4g} "
    return "" if text == "1 " else text


def base_parameters(
    model: Model,
    data: TrajectoryData | None = None,
    *,
    terms: Sequence[Term] = ("inertia",),
    links: Sequence[str | int] | None = None,
    payload: str | int | None = None,
    samples: int | None = None,
    key: PRNGKeyArray | None = None,
) -> BaseParameters:
    r"""The combinations of parameters that the torques depend on, their number, and how well a motion shows them.

    The stacked regressor of random states, or of the motion in `data`, is decomposed by QR with column pivoting; a
    column whose remainder is below the square root of the rounding unit depends on those before it [Gautier 1991].

    Args:
        model: The robot; of its parameters only the geometry and gravity count.
        data: A motion, which then has to excite what is to be told apart; default is random states within the limits,
            which tell what any motion could.
        terms: The parameters that are unknown; see `parameter_names`.
        links: The links whose inertia is unknown, as in `fit`; default is one for each body, or none if there is a
            payload.
        payload: A link that carries a body of unknown inertia, as in `fit`.
        samples: The number of random states; default is enough for four times as many rows as parameters.
        key: Their key; default is `jax.random.key(0)`.

    Raises:
        ArgumentError: A term is unknown, a link does not move, or `samples` is given together with `data`.
        DtypeError: An argument is of another type, or traced.
        NameNotFoundError: There is no such link.

    Example:
        Of a pendulum the torque tells the inertia about its axis and two moments:

        >>> from rbydyn_jax.identification import base_parameters
        >>> print(base_parameters(robots.pendulum()))
        10 parameters, of which 3 combinations can be told apart (condition number 1.2...)
        identifiable alone: 3
          mx of bob, mz of bob, Iyy of bob
        identifiable as a combination only: 0
        without influence: 7
          m of bob, my of bob, Ixx of bob, Ixy of bob, Ixz of bob, Iyz of bob, Izz of bob
    """
    check_outside_jit("base_parameters", model, data, key)
    model, terms = check_model(model), check_terms(terms)
    chosen = selection_of(model, links, payload, terms)
    if data is None:
        count = (
            4 * len(chosen.names) // max(model.nv, 1) + 8 if samples is None else check_integer(samples, "samples", 1)
        )
        motion = random_states(model, jax.random.key(0) if key is None else check_key(key), count)
    elif samples is None:
        motion = check_data(data, model).motion
    else:
        raise ArgumentError("samples is the number of random states: data has its own")
    rows = _rows(model, *motion)
    rounding = float(np.finfo(rows.dtype).eps)
    known = np.asarray(rows, float) @ chosen.basis
    return combinations_of(chosen.names, known.reshape(math.prod(known.shape[:-1]), len(chosen.names)), rounding)


@jax.jit
def _rows(model: Model, q: Array, v: Array, a: Array) -> Array:
    return jax.vmap(lambda q, v, a: regressor(model, q, v, a, TERMS, None))(q, v, a)


def combinations_of(names: tuple[str, ...], rows: np.ndarray, rounding: float) -> BaseParameters:
    """What measurements that are `rows` times the parameters tell of them; `rounding` is the unit of the rows."""
    R = np.linalg.qr(rows, mode="r")
    sizes = np.linalg.norm(R, axis=0)
    sizes = np.where(sizes > 1e3 * rounding * sizes.max(initial=0.0), sizes, 0.0)
    scaled = np.divide(R, sizes, out=np.zeros_like(R), where=sizes > 0.0)
    pivots = _pivots(scaled, rounding**0.5)
    found = np.linalg.lstsq(scaled[:, pivots], scaled, rcond=None)[0] if pivots else np.zeros((0, len(names)))
    found[np.abs(found) < 10.0 * rounding**0.5] = 0.0
    combinations = found * sizes / sizes[pivots][:, None]
    condition = float(np.linalg.cond(scaled[:, pivots])) if pivots else 1.0
    return BaseParameters(names, tuple(pivots), combinations, condition)


def _pivots(columns: np.ndarray, tolerance: float) -> list[int]:
    """Independent columns, that with the largest remainder next, until none is left; in their order."""
    rest, chosen = columns.copy(), list[int]()
    while len(chosen) < min(columns.shape):
        lengths = np.linalg.norm(rest, axis=0)
        if lengths.max() <= tolerance:
            break
        k = int(np.argmax(lengths >= (1.0 - 1e-6) * lengths.max()))  # of equal ones the first, whatever the rounding
        direction = rest[:, k] / lengths[k]
        rest -= np.outer(direction, direction @ rest)
        chosen.append(k)
    return sorted(chosen)
