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

from ..model.configuration import qdot_from_v, v_from_qdot
from ..model.model import Model
from ..spatial.algebra import IDENTITY, O3, Force, Motion, Transform, Vec3
from ..sweeps.plan import traverse
from ..sweeps.sweep import Body, Sweep
from ..sweeps.world_frame import total
from ..xla.structural import Scalars
from ..xla.transpose import LinearMap, apply_linear, is_zero, jvp_along, jvp_of
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
        model, *state = parameters
        moved = {_NAMES.index(name): x for name, x in zip(self.wrt, arguments, strict=True)}
        if 0 in moved:
            moved[0] = qdot_from_v(model, state[0], moved[0])
        return (jvp_along(lambda xs: _plain(model, *xs), state, moved)[1],)

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


def _inertial_wrench_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Any]:
    model, q = primals[:2]
    wrench = inertial_wrench(*primals)
    if not is_zero(tangents[0]):  # the parameters of the model: rare, and of many kinds
        return wrench, jvp_of(_plain, primals, tangents)
    given = zip(_NAMES, tangents[1:], primals[1:], strict=True)
    moved = {name: t for name, t, x in given if x is not None and not is_zero(t)}
    if "q" in moved:
        moved["q"] = v_from_qdot(model, q, moved["q"])
    return wrench, apply_linear(_Tangent(tuple(moved)), primals, tuple(moved.values()), [wrench.shape])[0]


inertial_wrench.defjvp(_inertial_wrench_jvp, symbolic_zeros=True)


def spatial_momentum(model: Model, q: Array, v: Array) -> Float[Array, "6"]:
    """The momentum of the moving bodies about the world origin: the wrench that makes it of rest in a unit of time."""
    return inertial_wrench(weightless(model), q, None, v)
