"""Compatibility with other libraries: the classes of pymanoid and pyrobot, the layouts of Pinocchio and MuJoCo."""

from . import mujoco as mujoco
from . import pinocchio as pinocchio
from . import pymanoid as pymanoid
from . import pyrobot as pyrobot
