"""Joint impedance control of the RB-Y1: its control law, and a differentiable simulation of the commanded robot."""

from .law import damping_matrix as damping_matrix
from .law import impedance_torque as impedance_torque
from .rollout import Rollout as Rollout
from .rollout import rollout as rollout
from .square_root import square_root as square_root
