"""Inertia of the robot as one rigid body, and as it is felt at a link."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._check import check_array, check_not_negative
from .._jit import jit_public
from ..model.model import Model
from ..spatial import inertia, se3
from ..spatial.algebra import IDENTITY, NO_FORCE, Force, Inertia, Transform, Vec3
from ..sweeps.block_matrix import inverse_by_blocks
from ..sweeps.plan import traverse
from ..sweeps.sweep import Body, Sweep, transform_from_numbers
from ..sweeps.world_frame import total
from ..xla.control_flow import while_loop
from ..xla.structural import ONE, ZERO, Scalar, Scalars, add, mul
from ..xla.transpose import value_and_jvp
from .aba import NO_INERTIA, ArticulatedInertia, relieved
from .arguments import arguments
from .centroidal import fixed_links
from .crba import mass_matrix_inverse
from .jacobians import jacobian
from .kinematics import body_pose_step, link_pose


def _placed_inertia(body: Body, parent: Transform) -> tuple[Transform, Inertia]:
    pose = parent @ body.transform
    return pose, body.inertia.transform(pose)


def _composite(run: Sweep, T_ref: Array | None) -> Float[Array, "10"]:
    """The inertial parameters of all moving bodies together, about the origin of a frame and in its axes."""
    root = IDENTITY if T_ref is None else transform_from_numbers([*T_ref[:3, :3].reshape(9), *T_ref[:3, 3]])
    m, x, y, z, xx, xy, xz, yy, yz, zz = total(run, run.table(run.outward(_placed_inertia, root), 10))
    return jnp.stack([m, x, y, z, xx, xy, yy, xz, yz, zz])


@jit_public("ref")
def spatial_inertia(model: Model, q: Float[Array, "nq"], ref: str | int | None = None) -> Float[Array, "6 6"]:
    r"""Inertia of the whole robot as one rigid body, $\sum_i X_i^{-T} I_i X_i^{-1}$, [angular; linear].

    Args:
        model: The robot.
        q: Configuration [rad, m].
        ref: The link about whose origin and in whose axes it is stated; None is the world.

    Returns:
        [[I, [h]], [-[h], m 1]] about the origin of `ref`, all links included.

    Raises:
        NameNotFoundError: There is no such link.
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> I = spatial_inertia(robots.pendulum(mass=2.0, length=0.5), jnp.zeros(1))
        >>> float(I[1, 1]), float(I[3, 3])  # m l^2 about the pivot, m
        (0.5, 2.0)
    """
    model, q = arguments(model, q=q)
    T_ref = None if ref is None else se3.inverse(link_pose(model, q, ref))
    poses, inertias = fixed_links(model)
    fixed = jax.vmap(inertia.transform)(poses if T_ref is None else T_ref @ poses, inertias).sum(axis=0)
    return inertia.to_matrix(traverse(model, _composite, q, T_ref, result="joints") + fixed)


_Wrenches = tuple[Force, ...]
_UNITS = [
    Force(*(Vec3(*((ONE if k == 3 * half + i else ZERO) for i in range(3))) for half in range(2))) for k in range(6)
]


def _inward(
    body: Body,
    children: tuple[ArticulatedInertia, _Wrenches],
    pose: Transform,
    sign: Scalar,
    armature: Scalars,
    wrenches: _Wrenches,
) -> tuple[tuple[ArticulatedInertia, _Wrenches], Scalars]:
    """What the joint adds to the mobility of a link, u^T D^-1 u with u = S^T f of the wrenches f that it bears."""
    to_body = pose.inverse()
    forces = [f + to_body.force(w).scale(sign) for f, w in zip(children[1], wrenches, strict=True)]
    u = [[s.dot(f) for s in body.subspace] for f in forces]
    inertia, U, _, drives = relieved(body, children[0], armature, u)
    for k, drive in enumerate(drives):
        for x, f in zip(drive, U, strict=True):
            forces[k] = forces[k] - f.scale(x)
    added = tuple(reduce(add, map(mul, u[a], drives[b]), ZERO) for a in range(6) for b in range(a + 1))
    X = body.transform
    return (inertia.transform(X), tuple(map(X.force, forces))), added


def _by_wrenches(run: Sweep, link: int, ref: int | None) -> Array:
    """J M^-1 J^T, from the wrenches of the link's axes on its body, and against them on that of `ref`."""
    poses = run.outward(body_pose_step, IDENTITY)
    on, against = (-1 if k is None else run.tree.link_bodies[k] for k in (link, ref))
    signs = run.constants([int(i == on) - int(i == against) for i in range(run.tree.nb)])
    wrenches = tuple(map(run.link_transform(poses, link).force, _UNITS))
    start = NO_INERTIA, (NO_FORCE,) * 6
    found = total(run, run.table(run.inward(_inward, start, poses, signs, run.armature, wrenches), 21))
    below = np.zeros((6, 6), int)
    below[np.tril_indices(6)] = np.arange(21)
    return found[np.maximum(below, below.T)]


def _plain_mobility(model: Model, q: Array, link: int, ref: int | None) -> Array:
    J = jacobian(model, q, link, ref=ref, frame="local")
    mobility = J @ mass_matrix_inverse(model, q) @ J.T
    return 0.5 * (mobility + mobility.T)


@partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def _mobility(model: Model, q: Array, link: int, ref: int | None) -> Float[Array, "6 6"]:
    """J M^-1 J^T of a link in its frame, symmetric."""
    if model.tree.has_mimics:  # they couple distant joints
        return _plain_mobility(model, q, link, ref)
    return traverse(model, partial(_by_wrenches, link=link, ref=ref), q, result="joints")


@partial(_mobility.defjvp, symbolic_zeros=True)
def _mobility_jvp(link: int, ref: int | None, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """Those of the Jacobian and of the inverse, which have rules."""
    return value_and_jvp(lambda model, q: _plain_mobility(model, q, link, ref), primals, tangents)


@jax.custom_jvp
def _pseudo_inverse(A: Float[Array, "n n"], rtol: Float[Array, ""]) -> Float[Array, "n n"]:
    """The pseudo-inverse of a symmetric matrix; a plain inverse where the rank is certainly full."""
    inverse = inverse_by_blocks(A)
    # The product of the norms is a bound of the ratio of eigenvalues; not finite where the elimination met a zero.
    is_certain = jnp.linalg.norm(A) * jnp.linalg.norm(inverse) * rtol < 0.1

    # Of a branch, a batch would compute both sides; of a loop that it need not enter, nothing. The loop begins with the
    # matrix, since XLA would move what does not change in it to the front.
    def by_eigenvalues(state: tuple[Array, Array]) -> tuple[Array, Array]:
        return jnp.linalg.pinv(state[0], rtol=rtol, hermitian=True), jnp.ones_like(is_certain)

    start = jnp.where(is_certain, inverse, A), is_certain
    return while_loop(lambda state: ~state[1], by_eigenvalues, start)[0]


def _pseudo_inverse_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    """For a rank that does not change [Golub and Pereyra 1973]."""
    A, dA = primals[0], tangents[0]
    P = _pseudo_inverse(*primals)
    lost = jnp.eye(len(A), dtype=A.dtype) - A @ P
    turned = P @ P @ dA @ lost
    return P, turned + turned.T - P @ dA @ P


_pseudo_inverse.defjvp(_pseudo_inverse_jvp)


@jit_public("link", "ref", rtol=check_not_negative)
def operational_space_inertia(
    model: Model,
    q: Float[Array, "nq"],
    link: str | int,
    ref: str | int | None = None,
    rtol: Float[Array, ""] | float | None = None,
) -> Float[Array, "6 6"]:
    r"""Inertia that is felt at a link, $\Lambda = (J M^{-1} J^T)^+$, in the link's frame [Khatib 1987].

    $J M^{-1} J^T = \sum_i u_i^T D_i^{-1} u_i$ is found by one inward sweep of articulated bodies, which takes the
    wrenches of the six axes of the link along [Kreutz-Delgado, Jain, Rodriguez 1992], O(n); of robots with mimic
    joints as it is written, O(n^3).

    Args:
        model: The robot.
        q: Configuration [rad, m].
        link: The link, by name or index.
        ref: The link relative to which it moves; None is the world.
        rtol: Directions whose mobility is below this part of the largest count as those in which the link cannot move;
            default is 60 times the machine epsilon. It compares rotations with translations: near singular poses, or
            in float32, set it to what matters.

    Returns:
        6x6 matrix, angular first; directions in which the link cannot move have zero inertia (pseudo-inverse).

    Raises:
        NameNotFoundError: There is no such link.
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> L = operational_space_inertia(robots.two_link_arm(), jnp.array([0.0, jnp.pi / 2]), "tool")
        >>> L.shape, bool(jnp.allclose(L, L.T))
        ((6, 6), True)
    """
    model, q = arguments(model, q=q)
    at, base = model.tree.link_index(link), None if ref is None else model.tree.link_index(ref)
    cut = 60 * jnp.finfo(q.dtype).eps if rtol is None else rtol
    cut = check_array(cut, "rtol", ()).astype(q.dtype)
    return _pseudo_inverse(_mobility(model, q, at, base), cut)
