r"""The geometry that a calibration may change, and the errors of measured poses with their derivatives.

The unknowns are $x = (\delta, \xi_1, \xi_2, \ldots)$: offsets that are added to q, and for each placement, of a link or
of the measuring frame, the change $X = X_0 \exp(\xi)$. The twist of a link in its own axes is $J \dot\delta + \sum_k
\mathrm{Ad}(T^{-1} F_k)\, J_r(\xi_k)\, \dot\xi_k$ with the frames $F_k$ behind the placements that carry it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..algorithms.jacobians import jacobian
from ..algorithms.kinematics import fk
from ..model.geometry import with_geometry
from ..model.model import Model
from ..model.tree import KinematicTree
from ..spatial import motion, se3, so3
from ..sweeps.topology import ancestors

PLACEMENT_NAMES = ("rx", "ry", "rz", "x", "y", "z")
FRAME = "the measuring frame"
_FRAME_DEVIATIONS = [3.0] * 3 + [10.0] * 3  # [rad, m] before the measurement: it may stand anywhere


class Target(NamedTuple):
    """A link that is measured, and whether its orientation is, too."""

    link: int
    oriented: bool


class Geometry(NamedTuple):
    """What is unknown, and what is measured."""

    joints: tuple[int, ...]
    """The joints with an offset."""
    links: tuple[int, ...]
    """The links whose placement is unknown: on their joint, or on the body that they are fixed to."""
    unknown_frame: bool
    targets: tuple[Target, ...]
    ref: int | None

    def names(self, model: Model) -> tuple[str, ...]:
        """The names of the unknowns."""
        placed = [model.link_names[k] for k in self.links] + [FRAME] * self.unknown_frame
        offsets = (f"offset of {model.joint_names[k]}" for k in self.joints)
        return (*offsets, *(f"{x} of {name}" for name in placed for x in PLACEMENT_NAMES))

    def deviations(self, angle: float, length: float) -> np.ndarray:
        """The standard deviation of each unknown, from those of angles and lengths of the robot."""
        one = [angle] * 3 + [length] * 3
        return np.array([angle] * len(self.joints) + one * len(self.links) + _FRAME_DEVIATIONS * self.unknown_frame)

    @property
    def is_angle(self) -> np.ndarray:
        """For each three rows of the errors whether they are angles."""
        return np.array([row for t in self.targets for row in [True] * t.oriented + [False]])

    def split(self, x: Array) -> tuple[Array, Array]:
        """The offsets, and the changes of the placements (k, 6)."""
        return x[: len(self.joints)], x[len(self.joints) :].reshape(-1, 6)

    def placed(self, model: Model, poses: Array) -> tuple[Array, Array]:
        """The placements of joints and of links, after changes (k, 4, 4)."""
        tree, joints, links = model.tree, model.joint_placements, model.link_placements
        for link, change in zip(self.links, poses, strict=False):
            body = tree.link_bodies[link]
            if _is_principal(tree, link):
                joints = joints.at[body].set(joints[body] @ change)
            else:
                links = links.at[link].set(links[link] @ change)
        return joints, links


def _is_principal(tree: KinematicTree, link: int) -> bool:
    """Whether the frame of a link is its body's, behind a joint."""
    body = tree.link_bodies[link]
    return body >= 0 and tree.principal_links[body] == link


def _carries(tree: KinematicTree, placed: int, link: int) -> bool:
    """Whether a change of the placement of one link moves another one."""
    if not _is_principal(tree, placed):
        return placed == link
    body = tree.link_bodies[link]
    return body >= 0 and bool(ancestors(tree)[body, tree.link_bodies[placed]])


def poses_of(geometry: Geometry, model: Model, q: Array) -> list[np.ndarray]:
    """The poses (t, 4, 4) of the targets, of the robot as it is, in the world or in `ref`."""
    poses = fk_of(model, q)
    back = np.eye(4) if geometry.ref is None else np.linalg.inv(poses[:, geometry.ref])
    return [back @ poses[:, target.link] for target in geometry.targets]


def fk_of(model: Model, q: Array) -> np.ndarray:
    """The poses of all links (t, n, 4, 4)."""
    return np.asarray(_fk(model, q), float)


@jax.jit
def _fk(model: Model, q: Array) -> Array:
    return jax.vmap(fk, (None, 0))(model, q)


@functools.partial(jax.jit, static_argnums=0)
def linearized(geometry: Geometry, model: Model, x: Array, q: Array, measured: Sequence[Array]) -> tuple[Array, Array]:
    """The errors (t, r), measured less predicted, and the derivatives of the predictions (t, r, n).

    For each target the rotation vector in its axes, if it is measured, and the position in the axes of the frame.
    """
    tree = model.tree
    offsets, parts = geometry.split(x)
    poses, slopes = jax.vmap(se3.exp)(parts), jax.vmap(se3.right_jacobian)(parts)
    joints, links = geometry.placed(model, poses)
    changed = with_geometry(model, joint_placements=joints, link_placements=links) if geometry.links else model
    at_q, at_v = (np.array([s[i].start for i in geometry.joints], int) for s in (tree.q_slices, tree.v_slices))
    identity = jnp.eye(4, dtype=x.dtype)

    def of(q: Array, measured: Sequence[Array]) -> tuple[Array, Array]:
        q = q.at[at_q].add(offsets)
        T = fk(changed, q)

        def behind(link: int) -> Array:
            if not _is_principal(tree, link):
                return T[link]
            body = tree.link_bodies[link]
            parent = tree.parents[body]
            return (identity if parent < 0 else T[tree.principal_links[parent]]) @ joints[body]

        errors, rows = [], []
        for target, value in zip(geometry.targets, measured, strict=True):
            from_ref = T[target.link] if geometry.ref is None else se3.inverse(T[geometry.ref]) @ T[target.link]
            J = [jacobian(changed, q, target.link, ref=geometry.ref, frame="local")[:, at_v]]
            for k, link in enumerate(geometry.links):
                sign = _carries(tree, link, target.link)
                sign -= geometry.ref is not None and _carries(tree, link, geometry.ref)
                J.append(sign * motion.Ad(se3.inverse(T[target.link]) @ behind(link)) @ slopes[k])
            pose = from_ref
            if geometry.unknown_frame:
                J.append(motion.Ad(se3.inverse(from_ref)) @ slopes[-1])
                pose = poses[-1] @ from_ref
            twist, R = jnp.concatenate(J, axis=1), pose[:3, :3]
            if target.oriented:
                errors.append(so3.log(R.T @ value[:3, :3]))
                rows.append(so3.left_jacobian_inverse(errors[-1]) @ twist[:3])
            errors.append((value[:3, 3] if target.oriented else value) - pose[:3, 3])
            rows.append(R @ twist[3:])
        return jnp.concatenate(errors), jnp.concatenate(rows)

    return jax.vmap(of)(q, measured)
