"""A robot as plain data: the contents of a file, independent of the format and before any computation.

A `RobotDescription` is frozen, made of numpy arrays and strings, and knows nothing of JAX. Readers produce it, the
builder produces it, `build_model` turns it into a `Model`, and the URDF writer writes it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from ..shapes import Geometry


def _identity() -> np.ndarray:
    return np.eye(4)


@dataclass(frozen=True, eq=False)
class Inertial:
    """Mass properties of a link: mass [kg], centre of mass (3,) in link axes [m], and the moment of inertia (3, 3)
    *about the centre of mass, in link axes* [kg m^2]."""

    mass: float
    com: np.ndarray
    inertia: np.ndarray


@dataclass(frozen=True, eq=False)
class CollisionDescription:
    """A collision shape on a link: its pose T_link_shape (4, 4), and the two bit masks of the RB-Y1 pair filter (a pair
    is tested if `a.coltype & b.colaffinity` or `b.coltype & a.colaffinity`)."""

    geometry: Geometry
    origin: np.ndarray = field(default_factory=_identity)
    name: str = ""
    coltype: int = 0
    colaffinity: int = 0


@dataclass(frozen=True, eq=False)
class LinkDescription:
    """A rigid link. `inertial=None` is a link without mass."""

    name: str
    inertial: Inertial | None = None
    collisions: tuple[CollisionDescription, ...] = ()


@dataclass(frozen=True)
class Mimic:
    """The position of a joint is `multiplier * q[joint] + offset`."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class JointDescription:
    """A joint between two links.

    `kind` is a key of `joints.JOINT_TYPES`, and `parameters` are those of this type, such as the pitch of a screw.
    `origin` is T_parent_joint (4, 4) at zero position; `axis` (3,) is of unit length, in the joint frame (the plane's
    normal for a planar joint). Limits are symmetric for velocity, acceleration and effort; inf means that there is
    none. Units: rad, m, s, N, N m, kg m^2.
    """

    name: str
    kind: str
    parent: str
    child: str
    origin: np.ndarray = field(default_factory=_identity)
    axis: np.ndarray = field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))
    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    acceleration: float = np.inf
    effort: float = np.inf
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    mimic: Mimic | None = None
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class MobileBaseDescription:
    """The wheels of a mobile base, as in the RB-Y1 files: kind (`"differential"`, `"mecanum"`), pose
    T_base_mobile (4, 4), wheel joints, and parameters (wheel base and radius; or Lx, Ly and radius) [m]."""

    kind: str
    origin: np.ndarray
    joints: tuple[str, ...]
    params: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class RobotDescription:
    """A robot: links, joints in document order, and further data of its file."""

    name: str
    links: tuple[LinkDescription, ...]
    joints: tuple[JointDescription, ...]
    mobile_base: MobileBaseDescription | None = None


def free_name(name: str, taken: Collection[str]) -> str:
    """Returns `name`, with underscores put to it until it is not taken."""
    while name in taken:
        name += "_"
    return name
