r"""The generalized momentum of a robot and what changes it besides torques.

The momentum $H_j$ of all that joint $j$ carries gives both: $p_j = S_j \cdot H_j$, and, as the subspace is constant in
the body's frame, $(C^T v)_j = (V_j \times S_j) \cdot H_j$ for any $C$ of which $\dot M - 2 C$ is skew-symmetric.
"""

from __future__ import annotations

from jaxtyping import Array, Float

from .._jit import jit_public
from .._result import Result
from ..model.model import Model
from ..spatial.algebra import NO_FORCE, NO_MOTION, Force, Motion, Vec3
from ..sweeps.plan import traverse
from ..sweeps.sweep import Body, Sweep
from ..xla.structural import Scalars, add, mul, sub
from .arguments import arguments

_Forces = tuple[Force, Force]  # momentum, and the force that holds the weight


class GeneralizedMomentum(Result):
    r"""The generalized momentum and its rate without torques, $\dot p = \tau + \mathrm{drift} + \sum_i J_i^T f_i$.

    Attributes:
        momentum: $p = M(q)\, v$, that of the rotors (`model.armature`) included [kg m^2/s, kg m/s].
        drift: $C(q, v)^T v - g(q)$ [N m, N].
    """

    momentum: Float[Array, "nv"]
    drift: Float[Array, "nv"]


def _outward(body: Body, parent: tuple[Motion, Vec3], v: Scalars) -> tuple[tuple[Motion, Vec3], tuple[_Forces, Motion]]:
    """Velocity and acceleration against gravity of a body, its momentum, and the force that holds its weight."""
    V0, a0 = parent
    X = body.transform
    V, a = X.motion_inverse(V0) + body.spin(v), X.R.apply_transposed(a0)
    m, h, _ = body.inertia
    return (V, a), ((body.inertia.apply(V), Force(h.cross(a), a.scale(m))), V)


def _inward(
    body: Body, children: _Forces, own: _Forces, V: Motion, v: Scalars, rotors: Scalars
) -> tuple[_Forces, tuple[Scalars, Scalars]]:
    H, weight = (a + b for a, b in zip(own, children, strict=True))
    momentum = tuple(add(s.dot(H), mul(k, x)) for s, x, k in zip(body.subspace, v, rotors, strict=True))
    drift = tuple(sub(V.cross(s).dot(H), s.dot(weight)) for s in body.subspace)
    return (body.transform.force(H), body.transform.force(weight)), (momentum, drift)


def _momentum(run: Sweep, v: Array) -> tuple[Array, Array]:
    velocities = run.split_v(v)
    moving = run.outward(_outward, (NO_MOTION, run.base_acceleration), velocities)
    forces, twists = moving.select(lambda x: x[0]), moving.select(lambda x: x[1])
    found = run.inward(_inward, (NO_FORCE, NO_FORCE), forces, twists, velocities, run.armature)
    return run.stack_v(found.select(lambda x: x[0])), run.stack_v(found.select(lambda x: x[1]))


@jit_public()
def generalized_momentum(model: Model, q: Float[Array, "nq"], v: Float[Array, "nv"]) -> GeneralizedMomentum:
    r"""The generalized momentum $p = M(q)\, v$ and the drift $C(q, v)^T v - g(q)$ of its rate.

    Of a robot under torques $\tau$ and external wrenches, $\dot p = \tau + C^T v - g + \sum_i J_i^T f_i$: without
    accelerations, which is what momentum observers build on (`estimation.external_torques`). One recursion out and one
    in, O(n) [De Luca and Ferrajoli 2009]; damping and friction are not part of it.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        v: Velocity [rad/s, m/s].

    Raises:
        ShapeError: An argument has another shape.

    Example:
        A point mass of 2 kg on a horizontal arm of 0.5 m that turns at 3 rad/s has m l^2 w, and its weight pulls down:

        >>> arm = robots.pendulum(mass=2.0, length=0.5)
        >>> found = generalized_momentum(arm, jnp.array([jnp.pi / 2]), jnp.array([3.0]))
        >>> round(float(found.momentum[0]), 4), round(float(found.drift[0]), 4)
        (1.5, -9.81)
    """
    model, q, v = arguments(model, q=q, v=v)
    return GeneralizedMomentum(*traverse(model, _momentum, q, v, result="joints"))
