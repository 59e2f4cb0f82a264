"""The Coriolis matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxtyping import Array, Float

from .._jit import jit_public
from ..model.model import Model
from ..spatial.algebra import O3, Force, Inertia, Mat3, Motion, Vec3, skew
from ..sweeps.plan import traverse
from ..sweeps.sweep import Sweep, Table
from ..sweeps.world_frame import inertia, inertias, motion, moving, per_dof, unsymmetric
from .arguments import arguments


class VelocityProduct(NamedTuple):
    r"""The operator $B = \frac12 ((v \times^*) I + (I v) \bar\times^* - I (v \times))$ of a rigid body.

    About the world origin it maps a motion [w; .] to the force [b w; w x p]: it has only 12 parameters, the momentum p
    and the matrix b, and those of several bodies add.
    """

    p: Vec3
    b: Mat3

    @staticmethod
    def of_rows(table: Table) -> VelocityProduct:
        """The operators of twelve rows: p, then b."""
        return VelocityProduct(Vec3(*table[:3]), Mat3(*(Vec3(*table[k : k + 3]) for k in (3, 6, 9))))

    def apply(self, m: Motion) -> Force:
        """B m."""
        return Force(self.b.apply(m.w), m.w.cross(self.p))

    def apply_transposed(self, m: Motion) -> Force:
        """B^T m."""
        return Force(self.b.apply_transposed(m.w) + self.p.cross(m.v), O3)


def velocity_product(inertia: Inertia, v: Motion, momentum: Force) -> VelocityProduct:
    """The operator B of a body of given inertia, velocity and momentum, all about the world origin."""
    wI = skew(v.w) @ inertia.I.full
    spin = wI + wI.T - skew(inertia.I.apply(v.w))  # [w] I - I [w] - [I w]
    b = (spin - (skew(inertia.h) @ skew(v.v)).scale(2.0)).scale(0.5)
    return VelocityProduct(momentum.f, b)


def _coriolis(run: Sweep, v: Array) -> Array:
    poses, motions, V, *_ = moving(run, v, None)
    own = inertias(run, poses)

    def product(C: Table, V: Table) -> VelocityProduct:
        return velocity_product(inertia(C), motion(V), inertia(C).apply(motion(V)))

    own += run.map_tables(product, own, V)
    carried = per_dof(run, run.sum_subtrees(own))

    def forces(S: Table, V: Table, C: Table) -> tuple[Any, ...]:
        s, I, B = motion(S), inertia(C), VelocityProduct.of_rows(C[10:])  # noqa: E741 - Featherstone's letter
        rate = motion(V).cross(s)
        return I.apply(rate) + B.apply(s), I.apply(s), B.apply_transposed(s).n, rate

    found = run.map_tables(forces, motions, per_dof(run, V), carried)
    return unsymmetric(run, (found[6:15], (*found[15:], *motions[:3])), (motions, found[:6]))


@jit_public()
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
    return traverse(model, _coriolis, q, v, result="joint_matrix")
