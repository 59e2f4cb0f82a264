"""Jacobians of links and points."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jit import jit_public
from ..model.model import Model
from ..spatial import quaternions, se3
from ..spatial.algebra import IDENTITY, Mat3, Motion, Transform, Vec3
from ..sweeps.plan import together, traverse
from ..sweeps.sweep import Body, Field, Sweep
from ..sweeps.topology import chain
from ..sweeps.world_frame import outside
from ..xla.structural import Scalar, Scalars
from .arguments import Frame, arguments, check_frame


class _Observer(NamedTuple):
    """Where a twist is observed: the axes of its components (rows of R^T) and the point whose velocity it states."""

    axes: Mat3
    point: Vec3


def _step(body: Body, parent: Transform) -> tuple[Transform, tuple[Transform, tuple[Motion, ...]]]:
    pose = parent @ body.transform
    columns = tuple(Motion(pose.R.apply(s.w), pose.R.apply(s.v)) for s in body.subspace)
    return pose, (pose, columns)


def _column(
    body: Body, motion: tuple[Transform, tuple[Motion, ...]], sign: Scalar, observer: _Observer
) -> tuple[Scalars, ...]:
    pose, columns = motion
    arm = observer.point - pose.p
    rows: list[Scalars] = []
    for c in columns:
        w = c.w.scale(sign)
        v = c.v.scale(sign) + w.cross(arm)
        rows.append((*observer.axes.apply_transposed(w), *observer.axes.apply_transposed(v)))
    return tuple(rows)


_Motions = Field[tuple[Transform, tuple[Motion, ...]]]


def _columns(
    run: Sweep, link: int, ref: int | None, frame: Frame | Vec3, motions: _Motions | None = None
) -> Field[tuple[Scalars, ...]]:
    """Columns of the Jacobian; instead of a frame, of the twist about a point of the link in the axes of `ref`."""
    path, ref_path = chain(run.tree, link, ref)
    signs = [int(i in path) - int(i in ref_path) for i in range(run.tree.nb)]
    motions = motions or run.outward(_step, IDENTITY)
    poses = motions.select(lambda x: x[0])
    target = run.link_transform(poses, link)
    origin = IDENTITY if ref is None else run.link_transform(poses, ref)
    point = target.apply(frame) if isinstance(frame, Vec3) else origin.p if frame == "world" else target.p
    observer = _Observer(target.R if frame == "local" else origin.R, point)
    return run.map(_column, motions, run.constants(signs), observer)


def _jacobian(run: Sweep, link: int, ref: int | None, frame: Frame | Vec3) -> Array:
    return run.stack_columns(_columns(run, link, ref, frame), 6)


def all_columns(run: Sweep, link: int, ref: int | None, frame: Frame | Vec3) -> Array:
    """The columns for the degrees of freedom of all joints, those of mimic joints included."""
    return outside(run, run.columns(_columns(run, link, ref, frame), 6))


@jit_public("link", "ref", "frame")
def jacobian(
    model: Model,
    q: Float[Array, "nq"],
    link: str | int,
    *,
    ref: str | int | None = None,
    frame: Frame = "world_aligned",
) -> Float[Array, "6 nv"]:
    r"""Geometric Jacobian of a link: $[\omega; v] = J(q)\, v$, angular rows first.

    O(depth): only the joints between `ref` and `link` are evaluated [Featherstone 2008, sec. 4.5, example 4.5].

    Args:
        model: The robot.
        q: Configuration [rad, m].
        link: The link, by name or index.
        ref: The twist is relative to this link and in its axes; None is the world.
        frame: Where the twist is stated: ``"local"`` at the link's origin in the link's axes, ``"world_aligned"`` at
            the link's origin in the axes of the world (of `ref`), ``"world"`` at the origin and in the axes of the
            world (of `ref`).

    Returns:
        Rows [wx, wy, wz, vx, vy, vz], a column for each velocity.

    Raises:
        NameNotFoundError: There is no such link.
        ArgumentError: `frame` is not one of the three.
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> J = jacobian(robots.two_link_arm(), jnp.zeros(2), "tool")
        >>> J[4].tolist()  # the arm lies along x: each joint moves the tool along y by its distance
        [0.9, 0.4]
    """
    model, q = arguments(model, q=q)
    check_frame(frame)
    index, base = model.link_index(link), None if ref is None else model.link_index(ref)
    return traverse(model, lambda run: _jacobian(run, index, base, frame), q, links=(index, base))


def pose_and_jacobian(
    model: Model, q: Array, link: int, ref: int | None = None
) -> tuple[Float[Array, "4 4"], Float[Array, "6 nv"]]:
    """`link_pose` and `jacobian` in one sweep."""

    def both(run: Sweep) -> tuple[list[Array], Array]:
        motions = run.outward(_step, IDENTITY)
        poses = motions.select(lambda x: x[0])
        columns = _columns(run, link, ref, "world_aligned", motions)
        return [run.link_pose(poses, k) for k in (link, ref) if k is not None], run.stack_columns(columns, 6)

    poses, J = traverse(model, both, q, links=(link, ref))
    return poses[0] if ref is None else se3.inverse(poses[1]) @ poses[0], J


@jit_public("link", "ref")
def point_jacobian(
    model: Model,
    q: Float[Array, "nq"],
    link: str | int,
    point: Float[Array, "3"],
    ref: str | int | None = None,
) -> Float[Array, "3 nv"]:
    """Jacobian of the velocity of a point that is fixed to a link.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        link: The link, by name or index.
        point: The point in the link's coordinates [m].
        ref: The velocity is relative to this link and in its axes; None is the world.

    Raises:
        NameNotFoundError: There is no such link.
        ShapeError: `q` or `point` has another shape.

    Example:
        >>> J = point_jacobian(robots.pendulum(), jnp.zeros(1), "bob", jnp.array([0.0, 0.0, -0.5]))
        >>> float(J[0, 0])
        -0.5
    """
    model, q, point = arguments(model, q=q, point=point)
    index, base = model.link_index(link), None if ref is None else model.link_index(ref)

    def columns(run: Sweep, point: Array) -> Array:
        return _jacobian(run, index, base, Vec3(*(point[k] for k in range(3))))[3:]

    return traverse(model, columns, q, point, links=(index, base))


@jit_public("link")
def quaternion_jacobian(model: Model, q: Float[Array, "nq"], link: str | int) -> Float[Array, "7 nv"]:
    r"""Jacobian of a link's pose as [quaternion wxyz (w >= 0), position]: $\dot\xi = \frac12 (0, \omega) \otimes \xi$.

    Args:
        model: The robot.
        q: Configuration [rad, m].
        link: The link, by name or index.

    Raises:
        NameNotFoundError: There is no such link.
        ShapeError: `q` is not of shape `(model.nq,)`.

    Example:
        >>> float(quaternion_jacobian(robots.pendulum(), jnp.zeros(1), "bob")[2, 0])  # about y
        0.5
    """
    model, q = arguments(model, q=q)
    index = model.link_index(link)

    def rates(model: Model, q: Array) -> Array:
        T, J = pose_and_jacobian(model, q, index)
        w, x, y, z = 0.5 * quaternions.from_matrix(T[:3, :3])
        a, b, c = J[:3]
        of_quaternion = [-x * a - y * b - z * c, w * a + z * b - y * c, w * b + x * c - z * a, w * c + y * a - x * b]
        return jnp.concatenate([jnp.stack(of_quaternion), J[3:]])

    return together(rates)(model, q)
