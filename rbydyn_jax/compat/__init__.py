"""Compatibility with others: classes of pymanoid and pyrobot, layouts of Pinocchio and MuJoCo, messages of ROS 2."""

from . import mujoco as mujoco
from . import pinocchio as pinocchio
from . import pymanoid as pymanoid
from . import pyrobot as pyrobot
from . import ros as ros
