"""The Coriolis matrix."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array, Float

from .._check import public
from ..model.model import Model
from ..spatial._algebra import (
    IDENTITY,
    NO_INERTIA,
    NO_MOTION,
    O3,
    ZERO_MAT3,
    Force,
    Inertia,
    Mat3,
    Motion,
    Transform,
    Vec3,
    skew,
)
from ._api import arguments
from ._body import Body
from ._traversal import Traversal, traverse
from .mass_matrix import Columns


class VelocityProduct(NamedTuple):
    r"""The operator $B = \frac12 ((v \times^*) I + (I v) \bar\times^* - I (v \times))$ of a rigid body.

    About the world origin it maps a motion [w; .] to the force [b w; w x p]: it has only 12 parameters, the momentum p
    and the matrix b, and those of several bodies add.
    """

    p: Vec3
    b: Mat3

    def __add__(self, other: VelocityProduct) -> VelocityProduct:  # type: ignore[override]
        return VelocityProduct(self.p + other.p, self.b + other.b)

    def apply(self, m: Motion) -> Force:
        """B m."""
        return Force(self.b.apply(m.w), m.w.cross(self.p))

    def apply_transposed(self, m: Motion) -> Force:
        """B^T m."""
        return Force(self.b.apply_transposed(m.w) + self.p.cross(m.v), O3)


def velocity_product(inertia: Inertia, v: Motion) -> VelocityProduct:
    """The operator B of a body of given inertia and velocity, all about the world origin."""
    momentum = inertia.apply(v)
    wI = skew(v.w) @ inertia.I.full
    spin = wI + wI.T - skew(inertia.I.apply(v.w))  # [w] I - I [w] - [I w]
    b = (spin - (skew(inertia.h) @ skew(v.v)).scale(2.0)).scale(0.5)
    return VelocityProduct(momentum.f, b)


def _outward(
    body: Body, parent: tuple[Transform, Motion], v: tuple
) -> tuple[tuple[Transform, Motion], tuple[Columns, Columns, Inertia, VelocityProduct]]:
    pose = parent[0] @ body.transform
    columns = tuple(pose.motion(s) for s in body.subspace)
    velocity = parent[1]
    for s, k in zip(columns, v, strict=True):
        velocity = velocity + s.scale(k)
    rates = tuple(velocity.cross(s) for s in columns)
    inertia = body.inertia.transform(pose)
    return (pose, velocity), (columns, rates, inertia, velocity_product(inertia, velocity))


def _inward(body: Body, children: tuple[Inertia, VelocityProduct], motion: tuple) -> tuple:
    columns, rates, own, own_product = motion
    inertia, product = own + children[0], own_product + children[1]
    f1 = tuple(inertia.apply(r) + product.apply(s) for s, r in zip(columns, rates, strict=True))
    f23 = tuple((inertia.apply(s), product.apply_transposed(s)) for s in columns)
    pairs = tuple((r, s) for s, r in zip(columns, rates, strict=True))
    return (inertia, product), (columns, f1, pairs, f23)


def _coriolis(run: Traversal, v: Array) -> Array:
    motions = run.outward(_outward, (IDENTITY, NO_MOTION), run.split_v(v))
    results = run.inward(_inward, (NO_INERTIA, VelocityProduct(O3, ZERO_MAT3)), motions)
    columns, f1, pairs, f23 = (run.item(results, k) for k in range(4))
    return run.mass_like(pairs, f23, upper=(columns, f1))


@public()
def coriolis_matrix(model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> Float[Array, "nv nv"]:
    r"""A matrix $C(q, v)$ such that $C v$ are the Coriolis and centrifugal forces and $\dot M - 2 C$ is skew-symmetric.

    O(n d), in world coordinates [Echeandia and Wensing 2021, algorithm 1]; for joints whose velocities are the rates of
    their coordinates it is the matrix of the Christoffel symbols.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].

    Returns:
        C, with a row and a column for each velocity.

    Raises:
        ShapeError: An argument has another shape.

    Example:
        >>> arm = robots.double_pendulum()
        >>> q, v = jnp.array([0.3, -0.7]), jnp.array([0.5, 1.1])
        >>> bool(jnp.allclose(coriolis_matrix(arm, q, v) @ v, inverse_dynamics_terms(arm, q, v, v).coriolis))
        True
    """
    model, q, v = arguments(model, q=q, v=v)
    return traverse(model, _coriolis, q, v)
