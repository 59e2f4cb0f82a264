"""The joint types. A new type is one class here; no algorithm changes.

A type says how its transform follows from its coordinates, which motions it allows (its motion subspace S, constant in
the frame after the joint), and how its coordinates are integrated. The first half is written in the structural scalars
of the algorithms, the second half on small arrays.
"""

from __future__ import annotations

from .base import Coordinates as Coordinates
from .base import JointType as JointType
from .floating import Floating as Floating
from .mrp_floating import MrpFloating as MrpFloating
from .planar import Planar as Planar
from .prismatic import Prismatic as Prismatic
from .revolute import Revolute as Revolute
from .rotations import plane_directions as plane_directions
from .rotations import rotation_about as rotation_about
from .rotations import rotation_from_quaternion as rotation_from_quaternion
from .sin_cos_revolute import SinCosRevolute as SinCosRevolute
from .spherical import Spherical as Spherical

JOINT_TYPES: dict[str, JointType] = {
    "revolute": Revolute(),
    "continuous": Revolute(),
    "prismatic": Prismatic(),
    "planar": Planar(),
    "spherical": Spherical(),
    "floating": Floating(),
    "sin_cos_revolute": SinCosRevolute(),
    "mrp_floating": MrpFloating(),
}
