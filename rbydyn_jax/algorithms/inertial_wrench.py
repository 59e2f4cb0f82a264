"""The wrench that accelerates all bodies of a robot, with its derivative rule.

Its power on a motion of the base is that of the forces on the bodies if they moved with the base as one, so that the
gradient is the adjoint of `rnea` with a base that moves, and joints that do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
from jaxtyping import Array, Float

from ..model.model import Model
from ..spatial.algebra import IDENTITY, O3, Force, Motion, Transform, Vec3
from ..sweeps.plan import traverse
from ..sweeps.sweep import Body, Sweep
from ..sweeps.world_frame import total
from ..xla.structural import Scalars
from ..xla.transpose import LinearMap
from .derivative_rule import rate_along, state_rule
from .momentum_columns import momentum_columns
from .rnea import State, adjoint, body_force_step, weightless

_NAMES = ("q", "v", "a")


def _outward(
    body: Body, parent: tuple[Transform, State], v: Scalars, a: Scalars
) -> tuple[tuple[Transform, State], Force]:
    pose = parent[0] @ body.transform
    state, taken = body_force_step(body, parent[1], v, a, None)
    return (pose, state), pose.force(taken)


def _taken(run: Sweep, v: Array | None, a: Array | None) -> Float[Array, "6"]:
    root = (IDENTITY, (O3, O3, run.base_acceleration))
    return total(run, run.table(run.outward(_outward, root, run.split_v(v), run.split_v(a)), 6))


def _plain(model: Model, q: Array, v: Array | None, a: Array | None) -> Array:
    return traverse(model, _taken, q, v, a, result="joints")


def _gradient(wrt: Sequence[str], run: Sweep, v: Array | None, a: Array | None, cotangent: Array) -> tuple[Array, ...]:
    x = [cotangent[k] for k in range(6)]
    return adjoint(wrt, run, v, a, None, None, Motion(Vec3(*x[:3]), Vec3(*x[3:])))


@dataclass(frozen=True)
class _Tangent(LinearMap):
    """Changes of position (as velocities), velocity and acceleration, those in `wrt`, to changes of the wrench."""

    wrt: tuple[str, ...]

    def apply(self, parameters: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        return (rate_along(_plain, [_NAMES.index(name) for name in self.wrt], parameters, arguments),)

    def transpose(self) -> LinearMap:
        return _Gradient(self.wrt)

    def matrix(self, parameters: tuple[Any, ...]) -> list[Any] | None:
        return [[momentum_columns(*parameters[:2])]] if self.wrt == ("a",) else None


@dataclass(frozen=True)
class _Gradient(LinearMap):
    """The transpose of `_Tangent`."""

    wrt: tuple[str, ...]

    def apply(self, parameters: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        model, q, v, a = parameters
        return traverse(model, partial(_gradient, self.wrt), q, v, a, *arguments, result="joints")

    def transpose(self) -> LinearMap:
        return _Tangent(self.wrt)

    def matrix(self, parameters: tuple[Any, ...]) -> list[Any] | None:
        return [[momentum_columns(*parameters[:2]).T]] if self.wrt == ("a",) else None


@jax.custom_jvp
def inertial_wrench(model: Model, q: Array, v: Array | None, a: Array | None) -> Float[Array, "6"]:
    r"""The wrench $\sum_i I_i A_i + V_i \times^* I_i V_i$ that the moving bodies take, about the world origin.

    It is the rate of their momentum, less their weight; None stands for zero. O(n).
    """
    return _plain(model, q, v, a)


inertial_wrench.defjvp(
    lambda primals, tangents: state_rule(inertial_wrench, _plain, _NAMES, _Tangent, primals, tangents),
    symbolic_zeros=True,
)


def spatial_momentum(model: Model, q: Array, v: Array) -> Float[Array, "6"]:
    """The momentum of the moving bodies about the world origin: the wrench that makes it of rest in a unit of time."""
    return inertial_wrench(weightless(model), q, None, v)
