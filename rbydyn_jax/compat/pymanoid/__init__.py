"""What pymanoid computes, under its names: 6-vectors linear first, world axes, quaternions wxyz.

As there, lists and integers are numbers, bodies and points hold a pose that their setters change in place, and `Robot`
and `Humanoid` hold a configuration. All that they compute are pure functions of the core.
"""

from . import transformations as transformations
from .body import Body as Body
from .body import Box as Box
from .body import Cube as Cube
from .contact import Contact as Contact
from .contact import ContactSet as ContactSet
from .contact import Manipulator as Manipulator
from .humanoid import Humanoid as Humanoid
from .humanoid import with_rpy_base as with_rpy_base
from .point import Point as Point
from .point import PointMass as PointMass
from .robot import Link as Link
from .robot import Robot as Robot
