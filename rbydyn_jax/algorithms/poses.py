r"""The poses of all links with their derivative rules.

A body's twist about the world origin turns and shifts the poses of its links: $\dot R = [\omega] R$, $\dot p = v +
\omega \times p$. A cotangent of a pose is a wrench on the link about the world origin, $n = \sum_k r_k \times \bar r_k
+ p \times \bar p$ with the columns $r_k$ of R, $f = \bar p$. Pulled back to the velocity of a joint it is the power of
the joint's motion on the sum of all that the joint carries. Each is one pass over the tree, and takes only the poses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
from jaxtyping import Array, Float

from ..model.configuration import v_from_qdot
from ..model.model import Model
from ..spatial.algebra import IDENTITY, NO_FORCE, NO_MOTION, Force, Motion, Transform, skew
from ..sweeps.plan import traverse
from ..sweeps.sweep import Body, Sweep, transform_from_numbers
from ..xla.transpose import LinearMap, apply_linear, is_zero, jvp_of


def body_pose_step(body: Body, parent: Transform) -> tuple[Transform, Transform]:
    """T_world_body from the parent's."""
    pose = parent @ body.transform
    return pose, pose


def _plain(model: Model, q: Array) -> Array:
    return traverse(model, lambda run: run.link_poses(run.outward(body_pose_step, IDENTITY)), q)


def _outward(body: Body, parent: Motion, numbers: tuple, v: tuple) -> tuple[Motion, Motion]:
    V = parent + transform_from_numbers(numbers).motion(body.spin(v))
    return V, V


def _rate(V: Motion, pose: Transform) -> Transform:
    return Transform(skew(V.w) @ pose.R, V.v + V.w.cross(pose.p))


def _push_forward(run: Sweep, T: Array, v: Array) -> Array:
    return run.move_links(_rate, run.outward(_outward, NO_MOTION, run.split_poses(T), run.split_v(v)), T)


def _wrench(pose: Transform, cotangent: Transform) -> Force:
    n = pose.p.cross(cotangent.p)
    for column, change in zip(pose.R.T, cotangent.R.T, strict=True):
        n = n + column.cross(change)
    return Force(n, cotangent.p)


def _inward(body: Body, children: Force, numbers: tuple, own: Force) -> tuple[Force, tuple]:
    total, pose = own + children, transform_from_numbers(numbers)
    return total, tuple(pose.motion(s).dot(total) for s in body.subspace)


def _pull_back(run: Sweep, T: Array, cotangent: Array) -> Array:
    wrenches = run.sum_links(_wrench, T, cotangent)
    return run.stack_v(run.inward(_inward, NO_FORCE, run.split_poses(T), wrenches))


@dataclass(frozen=True)
class _Changes(LinearMap):
    """Changes of position (as velocities) to changes of the poses; the parameters are the model, q and the poses."""

    transposed: bool = False

    def apply(self, parameters: tuple, arguments: tuple) -> tuple:
        model, q, T = parameters
        return (traverse(model, _pull_back if self.transposed else _push_forward, q, T, *arguments),)

    def transpose(self) -> LinearMap:
        return _Changes(not self.transposed)


@jax.custom_jvp
def link_poses(model: Model, q: Float[Array, "nq"]) -> Float[Array, "nl 4 4"]:
    """The poses of all links."""
    return _plain(model, q)


def _link_poses_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Any]:
    model, q = primals
    T = link_poses(model, q)
    if not is_zero(tangents[0]):  # the numbers of the model: rare, and of many kinds
        return T, jvp_of(_plain, primals, tangents)
    (change,) = apply_linear(_Changes(), (model, q, T), (v_from_qdot(model, q, tangents[1]),), [T.shape])
    return T, change


link_poses.defjvp(_link_poses_jvp, symbolic_zeros=True)
