r"""The first moment of mass of the moving bodies, with its derivative rule.

The gradient of $y^T \sum_i m_i c_i$ is what holds the robot in a field of gravity $-y$: one sweep of `rnea`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from jaxtyping import Array

from ..model.configuration import qdot_from_v
from ..model.model import Model
from ..spatial.algebra import IDENTITY, Transform, Vec3
from ..sweeps.plan import traverse
from ..sweeps.sweep import Body, Sweep
from ..sweeps.world_frame import total
from ..xla.transpose import LinearMap, jvp_along
from .derivative_rule import with_rule
from .momentum_columns import linear_momentum_matrix
from .rnea import newton_euler


def _outward(body: Body, parent: Transform) -> tuple[Transform, Vec3]:
    pose = parent @ body.transform
    m, h, _ = body.inertia
    return pose, pose.R.apply(h) + pose.p.scale(m)


def _sum(run: Sweep) -> Array:
    return total(run, run.table(run.outward(_outward, IDENTITY), 3))


def _plain(model: Model, q: Array) -> Array:
    return traverse(model, _sum, q, result="joints")


@dataclass(frozen=True)
class _Rate(LinearMap):
    """Velocities to the rate of the first moment, which is the linear momentum; the parameters are the model and q."""

    def apply(self, parameters: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        model, q = parameters
        return (jvp_along(lambda xs: _plain(model, *xs), (q,), {0: qdot_from_v(model, q, *arguments)})[1],)

    def transpose(self) -> LinearMap:
        return _Gradient()

    def matrix(self, parameters: tuple[Any, ...]) -> list[Any]:
        return [[linear_momentum_matrix(*parameters)]]


@dataclass(frozen=True)
class _Gradient(LinearMap):
    """The transpose of `_Rate`."""

    def apply(self, parameters: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        model, q = parameters
        return (newton_euler(dataclasses.replace(model, gravity=-arguments[0]), q, None, None, None),)

    def transpose(self) -> LinearMap:
        return _Rate()

    def matrix(self, parameters: tuple[Any, ...]) -> list[Any]:
        return [[linear_momentum_matrix(*parameters).T]]


first_moment = with_rule(_plain, _Rate())
r"""The sum $\sum_i m_i c_i$ over the moving bodies (3,), in world coordinates, of a model and q; O(n)."""
