"""Ways from other libraries: stand-ins for pymanoid and pyrobot, layouts of pinocchio and MuJoCo."""

from . import mujoco as mujoco
from . import pinocchio as pinocchio
from . import pymanoid as pymanoid
from . import pyrobot as pyrobot
