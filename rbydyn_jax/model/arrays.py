"""A welded robot in plain NumPy, the input of `model_from_arrays`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..shapes import Shape
from .tree import MobileBase


@dataclass(frozen=True, eq=False)
class RobotArrays:
    """A robot as arrays. Body i is moved by joint i, its frame is that of the joint's child link, and -1 is the root.

    Attributes:
        name: Name of the robot.
        joint_names: Moving joints (nb), depth-first in document order, or in the order asked for.
        joint_types: Their kinds.
        parents: Body that carries each joint.
        joint_placements: T_parentbody_joint (nb, 4, 4) at zero position [m].
        joint_axes: Unit axes in the joint frame (nb, 3).
        joint_parameters: For each joint the parameters that its type has.
        mimic: For each joint None, or (index of an independent joint, multiplier, offset).
        link_names: Links (nl), depth-first in document order, the root first.
        link_bodies: Body of each link.
        link_placements: T_body_link (nl, 4, 4) [m].
        link_inertias: Inertial parameters of each link in its axes about its origin (nl, 10):
            [m, m cx, m cy, m cz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz] [kg, kg m, kg m^2].
        body_inertias: The same of each body, all its links together (nb, 10).
        lower: Lower position limit of each joint (nb,) [rad or m]; the following are per joint, too.
        upper: Upper position limit.
        velocity: Largest speed [rad/s or m/s].
        acceleration: Largest acceleration [rad/s^2 or m/s^2].
        effort: Largest torque or force [N m or N].
        damping: Viscous friction [N m s/rad or N s/m].
        friction: Coulomb friction [N m or N].
        armature: Rotor inertia seen at the joint [kg m^2 or kg].
        shape_kinds: Kind of each collision shape (ns).
        shape_links: Link of each shape.
        shape_coltypes: Bit masks of what each shape is.
        shape_colaffinities: Bit masks of what each shape is tested against.
        shapes: For each kind the parameters of its shapes, in the same order.
        mobile_base: The wheels of a mobile base, if there are any.
    """

    name: str
    joint_names: tuple[str, ...]
    joint_types: tuple[str, ...]
    parents: tuple[int, ...]
    joint_placements: np.ndarray
    joint_axes: np.ndarray
    joint_parameters: tuple[tuple[float, ...], ...]
    mimic: tuple[tuple[int, float, float] | None, ...]
    link_names: tuple[str, ...]
    link_bodies: tuple[int, ...]
    link_placements: np.ndarray
    link_inertias: np.ndarray
    body_inertias: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray
    damping: np.ndarray
    friction: np.ndarray
    armature: np.ndarray
    shape_kinds: tuple[str, ...]
    shape_links: tuple[int, ...]
    shape_coltypes: tuple[int, ...]
    shape_colaffinities: tuple[int, ...]
    shapes: dict[str, Shape]
    mobile_base: MobileBase | None
