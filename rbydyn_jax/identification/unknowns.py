r"""What a fit may change: inertias of links, a payload, and parameters of the drives.

The parameters of the robot are $\pi = \pi_0 + B x$ with unknowns $x$: first blocks of ten for each link, in its own
axes, then numbers that are not negative. The last of these can be gains of the measurements, one for each velocity,
which stand behind the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._check import check_sequence
from .._errors import ArgumentError
from ..model.edit import add_inertia
from ..model.model import Model
from ..spatial import inertia
from .normal_equations import JointSums
from .parameter_vector import TERMS, Term, parameters, velocity_names, with_parameters
from .regressors import INERTIAL_NAMES

_MOMENTS = np.array([0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0])  # the power of length in each parameter
_PAYLOAD = 10.0 * 0.3**_MOMENTS  # kg, m: the size of a payload of which nothing is known
_LEAST = 1e-6  # N m, N m s/rad, kg m^2: the least size of a parameter of a drive


class Unknowns(NamedTuple):
    """The unknowns of a fit, with what is known of them before: mean and standard deviation."""

    links: tuple[int, ...]
    payload: int | None
    drives: np.ndarray  # their indices in the vector of all parameters
    names: tuple[str, ...]
    base: np.ndarray
    basis: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    silent: np.ndarray
    """The indices of drives' parameters without a size: zero, and the motion does not tell them."""
    gains: int
    """The number of gains, the last unknowns: of all velocities or of none."""

    @property
    def blocks(self) -> int:
        """The number of links, the payload included."""
        return len(self.links) + (self.payload is not None)

    def applied(self, model: Model, x: np.ndarray) -> Model:
        """The robot with these values."""
        dtype, given = model.inertias.dtype, x[: 10 * self.blocks].reshape(-1, 10)
        drives = x[10 * self.blocks : len(x) - self.gains]
        values = parameters(model).at[self.drives].set(jnp.asarray(drives, dtype))
        model = with_parameters(model, values)
        own = model.link_inertias
        for link, new in zip(self.links, given, strict=False):
            model = add_inertia(model, link, jnp.asarray(new, dtype) - own[link])
        return model if self.payload is None else add_inertia(model, self.payload, jnp.asarray(given[-1], dtype))

    def linearized(self, sums: list[JointSums], x: np.ndarray) -> list[JointSums]:
        """The sums at these values: they depend on them if there are gains."""
        if not self.gains:
            return sums
        everything, first = self.base + self.basis @ x, len(self.base) - self.gains
        return [own.with_gain(everything, x[j - self.gains], first + j) for j, own in enumerate(sums)]


def _sizes(own: np.ndarray) -> np.ndarray:
    """The size of each parameter of each link, from its mass and extent; small ones count as a tenth of the median."""
    mass = np.abs(own[:, 0])
    extent = np.sqrt(np.abs(own[:, [4, 6, 9]].sum(axis=1)) / (2.0 * np.where(mass > 0.0, mass, 1.0)))
    mass, extent = (np.maximum(x, 0.1 * np.median(x[x > 0.0])) if x.any() else x + 1.0 for x in (mass, extent))
    return mass[:, None] * extent[:, None] ** _MOMENTS


def _transforms(model: Model, links: Sequence[int]) -> np.ndarray:
    """For each link the matrix from its own parameters to those of its body."""
    unit = jnp.eye(10, dtype=model.inertias.dtype)
    moved = jax.vmap(jax.vmap(inertia.transform, (None, 0)), (0, None))
    return np.asarray(moved(model.link_placements[np.array(links, int)], unit), float).transpose(0, 2, 1)


def _selected(model: Model, links: Sequence[str | int] | None, terms: Sequence[Term]) -> list[int]:
    if links is None:
        return list(model.tree.principal_links) if "inertia" in terms else []
    found = [model.link_index(k) for k in check_sequence(links, "links", "links, by name or index")]
    if found and "inertia" not in terms:
        raise ArgumentError(f"links are given, but terms are {', '.join(terms)}: without 'inertia' no link is fitted")
    return list(dict.fromkeys(found))


class Selection(NamedTuple):
    """Which parameters are asked for, and what the vector of all parameters has of them."""

    links: tuple[int, ...]
    payload: int | None
    drives: np.ndarray
    names: tuple[str, ...]
    basis: np.ndarray


def selection_of(
    model: Model, links: Sequence[str | int] | None, payload: str | int | None, terms: Sequence[Term]
) -> Selection:
    """The parameters that the arguments of `fit` ask for."""
    chosen = _selected(model, () if links is None and payload is not None else links, terms)
    loaded = None if payload is None else model.link_index(payload)
    every = chosen if loaded is None else [*chosen, loaded]
    for link in every:
        if model.tree.link_bodies[link] < 0:
            raise ArgumentError(f"link {model.link_names[link]!r} does not move: no torque depends on its inertia")
    nv, first = model.nv, 10 * model.nb
    size = first + (len(TERMS) - 1) * nv
    columns = np.zeros((len(every), size, 10))
    for k, (link, matrix) in enumerate(zip(every, _transforms(model, every), strict=True)):
        at = 10 * model.tree.link_bodies[link]
        columns[k, at : at + 10] = matrix
    drives = np.array([first + k * nv + i for k, t in enumerate(TERMS[1:]) if t in terms for i in range(nv)], int)
    titles = [model.link_names[k] for k in chosen] + ["the payload"] * (loaded is not None)
    names = [f"{x} of {title}" for title in titles for x in INERTIAL_NAMES]
    names += [f"{t} of {x}" for t in TERMS[1:] if t in terms for x in velocity_names(model)]
    basis = np.concatenate([*columns, np.eye(size)[:, drives]], axis=1)
    return Selection(tuple(chosen), loaded, drives, tuple(names), basis)


def unknowns_of(
    model: Model,
    sums: Sequence[JointSums],
    links: Sequence[str | int] | None,
    payload: str | int | None,
    terms: Sequence[Term],
    prior: float,
    gains: bool,
) -> Unknowns:
    """The unknowns that the arguments of `fit` ask for."""
    chosen = selection_of(model, links, payload, terms)
    names, basis, drives = chosen.names, chosen.basis, chosen.drives
    own = np.asarray(model.link_inertias, float)
    at = np.array(chosen.links, int)
    means, sizes = own[at], _sizes(own)[at]
    if chosen.payload is not None:
        means, sizes = (np.concatenate([x, [y]]) for x, y in ((means, np.zeros(10)), (sizes, _PAYLOAD)))
    base, nv, first = np.asarray(parameters(model), float), model.nv, 10 * model.nb
    mean = np.concatenate([means.reshape(-1), base[drives]])
    base = base - basis @ mean
    typical = [_typical(sums[(k - first) % nv], k, x) for k, x in zip(drives, mean[means.size :], strict=True)]
    deviation = np.concatenate([sizes.reshape(-1), typical])
    silent = np.flatnonzero(np.isinf(deviation))
    deviation[silent] = _LEAST
    if gains:
        names = (*names, *(f"constant of {x}" for x in velocity_names(model)))
        mean, deviation, base = (
            np.concatenate([x, y * np.ones(nv)]) for x, y in ((mean, 1), (deviation, 1), (base, 0))
        )
        basis = np.block([[basis, np.zeros((len(basis), nv))], [np.zeros((nv, basis.shape[1])), np.eye(nv)]])
    count = nv if gains else 0
    return Unknowns(chosen.links, chosen.payload, drives, names, base, basis, mean, prior * deviation, silent, count)


def _typical(own: JointSums, column: int, initial: float) -> float:
    """The size of a parameter of a drive: its value, or that which alone would explain the torque; infinite if none."""
    k = int(np.searchsorted(own.columns, column))
    square = own.matrix[k, k]
    if square > 0.0:
        return max(abs(initial), (own.square / square) ** 0.5, _LEAST)
    return max(abs(initial), _LEAST) if initial else np.inf
