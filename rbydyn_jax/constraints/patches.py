r"""Rectangular contacts of a robot at rest or in motion: which forces they bear, and where it may stand.

The force at each corner of a contact is in the pyramid of friction $|f_x|, |f_y| \le \mu f_z / \sqrt2$ of the contact's
axes, an inner approximation of the cone (see `spatial.cones`). Gravity acts along -z of the world. In float32 a problem
that is only just feasible may be reported as infeasible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float

from .._check import check_array, check_integer, check_not_negative, check_positive, check_real
from .._errors import ArgumentError, DtypeError, ShapeError
from .._jit import jit_public
from .._result import Result, count_of
from ..spatial import cones
from ..spatial._quadratic import Program, solve, solved
from ._vectors import Numbers, scalar
from ._vectors import pose as rigid

_RANK = {"float64": 1e-9, "float32": 1e-4}  # singular values of active constraints that are zero, of the largest


class ContactPatch(eqx.Module):
    """A rectangle that touches its surroundings, z its normal towards the robot; all numbers may be traced.

    Half sizes of zero make it a line or a point. `whole_body.PatchContact` is such a rectangle of a link, as a contact
    of the inverse dynamics.

    Attributes:
        pose: T_world_contact (4, 4), its origin in the middle of the rectangle.
        half_sizes: Half of its length along x and of its width along y (2,) [m].
        friction: Coefficient of friction.

    Example:
        >>> sole = ContactPatch(jnp.eye(4), (0.1, 0.05), 0.7)
        >>> sole.corners[0].tolist()
        [0.1, 0.05, 0.0]
    """

    pose: Float[Numbers, "4 4"]
    half_sizes: Float[Numbers, "2"]
    friction: Float[Numbers, ""]

    def __init__(self, pose: Any = None, half_sizes: Any = (0.0, 0.0), friction: Any = 0.5) -> None:
        """A pose that is not given is the identity.

        Raises:
            ArgumentError: The pose is not a rigid transform, a half size is negative, the friction is not positive, or
                a number is not finite.
            DtypeError: An argument does not consist of numbers.
            ShapeError: An argument has another shape.
        """
        self.pose = rigid(pose, "pose")
        self.half_sizes = _sizes(half_sizes)
        self.friction = scalar(friction, "friction")
        if not isinstance(self.friction, Tracer) and not 0.0 < self.friction < np.inf:
            raise ArgumentError(f"friction must be positive and finite, got {friction}")

    @property
    def corners(self) -> Float[Array, "4 3"]:
        """Corners in world coordinates [m]."""
        sizes = jnp.asarray(self.half_sizes, jnp.result_type(self.half_sizes, float))
        return cones.rectangle(sizes) @ self.pose[:3, :3].T + self.pose[:3, 3][None]


class WrenchDistribution(Result):
    """Forces of contacts that together give a wrench.

    Attributes:
        forces: Force at each corner of each contact, on the robot, world axes [N].
        wrenches: Wrench [n; f] of each contact on the robot, about the contact's origin in world axes [N m, N].
        residual: Wrench of all contacts minus the one asked for, about the point, world axes [N m, N].
        feasible: Whether the contacts can give the wrench; the forces mean nothing where they cannot.
    """

    forces: Float[Array, "k 4 3"]
    wrenches: Float[Array, "k 6"]
    residual: Float[Array, "6"]
    feasible: Bool[Array, ""]

    def _headline(self) -> str:
        return count_of(self.feasible, "feasible")


class SupportArea(Result):
    """A convex area in a horizontal plane, by its outermost point in each of many directions.

    The area contains the convex hull of `points`, and is contained in the half-planes `normals @ p <= offsets`, whose
    edges it touches.

    Attributes:
        points: The outermost points, counterclockwise [m].
        normals: The directions, unit vectors in equal steps, the first along x.
        offsets: `normals @ points`, row by row [m].
        feasible: Whether the area has any point; the numbers mean nothing where it has none.
    """

    points: Float[Array, "d 2"]
    normals: Float[Array, "d 2"]
    offsets: Float[Array, "d"]
    feasible: Bool[Array, ""]

    def _headline(self) -> str:
        return count_of(self.feasible, "feasible")


@jit_public()
def distribute_wrench(
    patches: Sequence[ContactPatch],
    wrench: Float[Array, "6"],
    point: Float[Array, "3"] | None = None,
) -> WrenchDistribution:
    r"""Distributes a wrench over contacts with friction: the smallest forces at the corners that together give it.

    Minimizes $\sum_j |f_j|^2$ subject to $\sum_j [(p_j - p) \times f_j; f_j] = w$ and to friction, a strictly convex
    quadratic program. Differentiable where it is feasible; batched by `jax.vmap`.

    Args:
        patches: The contacts.
        wrench: [n; f] of all contacts on the robot, world axes [N m, N]; see `net_contact_wrench`.
        point: The point about which it is stated, world coordinates [m]; None is the world's origin.

    Raises:
        DtypeError: `patches` is not a sequence of `ContactPatch`, or an array does not consist of floats.
        ShapeError: An argument has another shape, or there are no contacts.

    Example:
        >>> left, right = (ContactPatch(jnp.eye(4).at[1, 3].set(y), (0.1, 0.05), 0.5) for y in (0.1, -0.1))
        >>> weight = jnp.array([0.0, 0.0, 0.0, 0.0, 0.0, 400.0])
        >>> found = distribute_wrench((left, right), weight, jnp.array([0.0, 0.05, 0.0]))  # nearer to the left foot
        >>> bool(found.feasible), [round(float(w[5]), 1) for w in found.wrenches]
        (True, [280.0, 120.0])
    """
    wrench = check_array(wrench, "wrench", (6,), "[n; f]")
    corners, faces, origins = _geometry(patches, wrench.dtype)
    p = jnp.zeros(3, corners.dtype) if point is None else check_array(point, "point", (3,)).astype(corners.dtype)
    center = corners.mean(axis=0)
    about = jnp.concatenate([wrench[:3] + jnp.cross(p - center, wrench[3:]), wrench[3:]])
    size = jnp.max(jnp.abs(about))
    scale = jnp.where(size > 0.0, size, 1.0)
    grasp = _grasp(corners - center[None])
    n = grasp.shape[1]
    program = Program(jnp.eye(n, dtype=p.dtype), jnp.zeros(n, p.dtype), grasp, about / scale, faces, _zeros(faces))
    solution = solve(program)
    forces = jnp.where(jnp.isfinite(about).all(), solution.x * scale, jnp.nan).reshape(-1, 3)
    arms = (corners.reshape(-1, 4, 3) - origins[:, None]).reshape(-1, 3)
    each = jnp.concatenate([jnp.cross(arms, forces), forces], axis=1).reshape(-1, 4, 6).sum(axis=1)
    got = jnp.concatenate([jnp.cross(corners - p[None], forces), forces], axis=1).sum(axis=0)
    return WrenchDistribution(forces.reshape(-1, 4, 3), each, got - wrench, solved(program, solution))


@jit_public("directions", pressing=check_positive)
def static_equilibrium_polygon(
    patches: Sequence[ContactPatch], *, directions: int = 32, pressing: Float[Array, ""] | float = 100.0
) -> SupportArea:
    r"""Where the centre of mass may be for the contacts to hold the robot at rest [Bretl and Lall 2008].

    The horizontal positions c for which forces within friction balance the weight, $\sum f_j = m g e_z$ and
    $\sum p_j \times f_j = c \times m g e_z$. They depend neither on the mass nor on the height of the centre of mass. A
    linear program for each direction; derivatives of the vertices by their active constraints; batched by `jax.vmap`.

    Args:
        patches: The contacts.
        directions: Number of directions in which the outermost point is computed; static.
        pressing: Maximum sum of all normal forces in weights of the robot, which keeps the area finite where contacts
            face one another.

    Raises:
        ArgumentError: There are less than three directions, or `pressing` is not finite and positive.
        DtypeError: `patches` is not a sequence of `ContactPatch`.
        ShapeError: There are no contacts.

    Example:
        >>> foot = ContactPatch(jnp.eye(4), (0.1, 0.05), 0.5)
        >>> area = static_equilibrium_polygon((foot,), directions=4)
        >>> [round(float(x), 4) for x in area.offsets]
        [0.1, 0.05, 0.1, 0.05]
    """
    corners, faces, _ = _geometry(patches)
    center = corners.mean(axis=0)
    grasp = _grasp(corners - center[None])
    equal = jnp.stack([grasp[3], grasp[4], grasp[5], grasp[2]])  # vertical, of the weight, no moment about z
    to_plane = jnp.stack([-grasp[1], grasp[0]])
    return _area(equal, to_plane, center[:2], faces, directions, pressing)


@jit_public("directions", pressing=check_positive)
def zmp_support_area(
    patches: Sequence[ContactPatch],
    com: Float[Array, "3"],
    height: Float[Array, ""] | float = 0.0,
    *,
    directions: int = 32,
    pressing: Float[Array, ""] | float = 100.0,
) -> SupportArea:
    r"""Where the zero-tilting-moment point may be for the contacts to bear the motion [Caron, Pham and Nakamura 2017].

    For motions of the centre of mass at constant height and without a change of the angular momentum about it: the
    forces of the contacts have no moment about the centre of mass c, and the vertical force m g. The point is where the
    line of the resultant force f meets the plane, $p = c + (h - c_z) f / f_z$. A linear program for each direction;
    derivatives of the vertices by their active constraints; batched by `jax.vmap`.

    Args:
        patches: The contacts.
        com: Centre of mass in world coordinates [m].
        height: Height h of the plane [m].
        directions: Number of directions in which the outermost point is computed; static.
        pressing: Maximum sum of all normal forces in weights of the robot.

    Raises:
        ArgumentError: There are less than three directions, or `pressing` is not finite and positive.
        DtypeError: `patches` is not a sequence of `ContactPatch`, or an array does not consist of floats.
        ShapeError: An argument has another shape, or there are no contacts.

    Example:
        >>> foot = ContactPatch(jnp.eye(4), (0.1, 0.05), 0.5)
        >>> area = zmp_support_area((foot,), jnp.array([0.02, 0.0, 0.8]), directions=4)
        >>> [round(float(x), 4) for x in area.offsets]
        [0.1, 0.05, 0.1, 0.05]
    """
    com = check_array(com, "com", (3,))
    corners, faces, _ = _geometry(patches, com.dtype)
    height = check_array(height, "height", ()).astype(corners.dtype)
    grasp = _grasp(corners - com[None])
    equal = jnp.stack([grasp[0], grasp[1], grasp[5], grasp[2]])  # of the weight, no moment
    return _area(equal, (height - com[2]) * grasp[3:5], com[:2], faces, directions, pressing)


def _area(equal: Array, to_plane: Array, origin: Array, faces: Array, directions: int, pressing: Any) -> SupportArea:
    """The outermost points origin + to_plane f for forces f with `equal @ f` = (0, 0, 1, 0) within friction."""
    count = check_integer(directions, "directions", 3)
    dtype = equal.dtype
    angles = 2.0 * np.pi * np.arange(count) / count
    normals = jnp.asarray(np.stack([np.cos(angles), np.sin(angles)], axis=1), dtype)
    pressed = -faces.reshape(-1, 4, equal.shape[1]).sum(axis=1)  # the sides cancel: a multiple of the normal force
    total = pressed / jnp.linalg.norm(pressed, axis=1, keepdims=True)
    F = jnp.concatenate([faces, total.sum(axis=0)[None]])
    h = jnp.concatenate([_zeros(faces), check_array(pressing, "pressing", ()).astype(dtype)[None]])
    b = jnp.asarray([0.0, 0.0, 1.0, 0.0], dtype)
    P = jnp.zeros((equal.shape[1],) * 2, dtype)

    def outermost(normal: Array) -> tuple[Array, Array]:
        program = jax.lax.stop_gradient(Program(P, -normal @ to_plane, equal, b, F, h))
        solution = solve(program)
        held = (solution.z > solution.s).astype(dtype)
        return origin + _seen(solution.x, held, to_plane, equal, b, F, h), solved(program, solution)

    points, found = jax.vmap(outermost)(normals)
    finite = jnp.isfinite(to_plane).all() & jnp.isfinite(origin).all()
    points = jnp.where(finite, points, jnp.nan)
    return SupportArea(points, normals, (normals * points).sum(axis=1), found.all())


@jax.custom_jvp
def _seen(x: Array, held: Array, to_plane: Array, A: Array, b: Array, F: Array, h: Array) -> Float[Array, "2"]:
    """The point to_plane x of a solution of which the inequalities `held` are active; x itself has no derivative.

    Many forces may give the point. As the data move, it is that of any forces that keep to the active constraints.
    """
    return to_plane @ x


@_seen.defjvp
def _seen_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    x, held, *data = primals

    def nearest(to_plane: Array, A: Array, b: Array, F: Array, h: Array) -> Array:
        active, values = jnp.concatenate([A, held[:, None] * F]), jnp.concatenate([b, held * h])
        back = jnp.linalg.pinv(active, rtol=_RANK[x.dtype.name])  # rows depend on one another at an apex
        return to_plane @ (x + back @ (values - active @ x))

    return _seen(*primals), jax.jvp(nearest, tuple(data), tuple(tangents[2:]))[1]


def _geometry(patches: Any, dtype: Any = None) -> tuple[Float[Array, "c 3"], Float[Array, "f n"], Float[Array, "k 3"]]:
    """Corners of all contacts, the matrix of all faces of friction for forces at the corners, origins.

    The dtype is that of the patches, unless one is given.
    """
    if isinstance(patches, ContactPatch) or not isinstance(patches, Sequence):
        raise DtypeError(f"patches must be a sequence of ContactPatch, got {type(patches).__name__}")
    for patch in patches:
        if not isinstance(patch, ContactPatch):
            raise DtypeError(f"patches must hold ContactPatch, got {type(patch).__name__}")
    if not patches:
        raise ShapeError("patches must hold at least one contact")
    corners = jnp.concatenate([patch.corners for patch in patches])
    corners = corners if dtype is None else corners.astype(dtype)
    dtype = corners.dtype
    poses = [jnp.asarray(patch.pose, dtype) for patch in patches]
    each = [
        cones.friction_cone_faces(jnp.asarray(patch.friction, dtype)) @ pose[:3, :3].T
        for patch, pose in zip(patches, poses, strict=True)
    ]
    faces = jax.scipy.linalg.block_diag(*(face for face in each for _ in range(4)))
    return corners, faces, jnp.stack([pose[:3, 3] for pose in poses])


def _grasp(arms: Float[Array, "c 3"]) -> Float[Array, "6 n"]:
    """Takes forces at the corners to the wrench [n; f] of all of them."""
    eye = jnp.eye(3, dtype=arms.dtype)
    moments = jax.vmap(lambda r: jnp.cross(r[None], eye).T)(arms)
    blocks = jnp.concatenate([moments, jnp.broadcast_to(eye, moments.shape)], axis=1)
    return blocks.transpose(1, 0, 2).reshape(6, -1)


def _zeros(faces: Array) -> Array:
    return jnp.zeros(faces.shape[0], faces.dtype)


def _sizes(x: Any) -> Float[Numbers, "2"]:
    if isinstance(x, jax.Array):
        sizes = check_array(x, "half_sizes", (2,))
    else:
        sizes = check_real(x, "half_sizes", (2,))
    check_not_negative(sizes, "half_sizes")
    return sizes
