"""Mass properties of a welded robot at its neutral configuration, in plain numpy: what is told of it without JAX."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..joints import JOINT_TYPES
from ..model.arrays import RobotArrays
from ..model.tree import KinematicTree


class MassProperties(NamedTuple):
    """Mass [kg], centre of mass in the world (3,) [m], NaN without mass, and mass matrix M (nv, nv) [kg, m, rad]."""

    mass: float
    center: np.ndarray
    M: np.ndarray


def mass_properties(robot: RobotArrays, tree: KinematicTree, armature: np.ndarray) -> MassProperties:
    """Mass, centre of mass and mass matrix at the neutral configuration, M = sum of J^T I J over the bodies.

    Args:
        robot: The robot.
        tree: Its topology.
        armature: Rotor inertia by velocity (nv,) [kg m^2, kg].
    """
    moments = np.zeros(4)
    for body, pose, inertia in zip(robot.link_bodies, robot.link_placements, robot.link_inertias, strict=True):
        if body < 0:
            moments += _moments(pose, inertia)
    M = np.diag(armature)
    poses = {-1: np.eye(4)}
    columns = {-1: np.zeros((6, tree.nv))}  # of each body's velocity, in the axes of the world at its origin
    for i in tree.order:
        kind, mimic = JOINT_TYPES[robot.joint_types[i]], robot.mimic[i]
        axis, parameters = robot.joint_axes[i], robot.joint_parameters[i]
        multiplier, q = (1.0, kind.neutral()) if mimic is None else (mimic[1], np.array([mimic[2]]))
        moved = np.eye(4) if mimic is None else kind.matrix(axis, parameters, q)
        pose = poses[i] = poses[robot.parents[i]] @ robot.joint_placements[i] @ moved
        J = columns[robot.parents[i]].copy()
        J[:, tree.v_slices[i]] += multiplier * _adjoint(pose) @ kind.columns(axis, parameters)
        columns[i] = J
        own = np.linalg.solve(_adjoint(pose), J)
        M += own.T @ spatial_inertia(robot.body_inertias[i]) @ own
        moments += _moments(pose, robot.body_inertias[i])
    mass = float(moments[0])
    return MassProperties(mass, moments[1:] / mass if mass else np.full(3, np.nan), M)


def spatial_inertia(parameters: np.ndarray) -> np.ndarray:
    """The inertia (6, 6), angular first, of the ten parameters m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz."""
    mass, x, y, z, xx, xy, yy, xz, yz, zz = parameters.tolist()
    inertia = np.diag([0.0, 0.0, 0.0, mass, mass, mass])
    inertia[:3, :3] = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    inertia[:3, 3:] = first = _skew(x, y, z)
    inertia[3:, :3] = first.T
    return inertia


def _skew(x: float, y: float, z: float) -> np.ndarray:
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def _adjoint(T: np.ndarray) -> np.ndarray:
    """Ad(T) of twists [omega; v]."""
    R = T[:3, :3]
    return np.block([[R, np.zeros((3, 3))], [_skew(*T[:3, 3]) @ R, R]])


def _moments(pose: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """Mass and first moment in the world (4,)."""
    mass, first = parameters[0], parameters[1:4]
    return np.array([mass, *(pose[:3, :3] @ first + mass * pose[:3, 3])])
