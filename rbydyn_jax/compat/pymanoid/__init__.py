"""What pymanoid computes, under its names: 6-vectors linear first, world axes, quaternions wxyz.

Bodies, points and contacts are immutable: what pymanoid changes in place returns a new object here. `Robot` and
`Humanoid` hold a configuration, as there; all that they compute are pure functions of the core.
"""

from ...spatial import transformations as transformations
from .body import Body as Body
from .contact import Contact as Contact
from .contact import Manipulator as Manipulator
from .humanoid import Humanoid as Humanoid
from .humanoid import with_rpy_base as with_rpy_base
from .point import Point as Point
from .point import PointMass as PointMass
from .robot import Robot as Robot
