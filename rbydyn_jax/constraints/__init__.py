"""Robots with loops and contacts: constrained dynamics, closing loops, impacts, contact wrenches, motion in time."""

from .closing import ClosedLoops as ClosedLoops
from .closing import close_loops as close_loops
from .contact import Contact as Contact
from .contact import ContactForces as ContactForces
from .contact import contact_forces as contact_forces
from .contact import joint_limit_forces as joint_limit_forces
from .dynamics import DynamicsResult as DynamicsResult
from .dynamics import InverseDynamicsResult as InverseDynamicsResult
from .dynamics import forward_dynamics as forward_dynamics
from .dynamics import impulse as impulse
from .dynamics import inverse_dynamics as inverse_dynamics
from .loops import Baumgarte as Baumgarte
from .loops import LoopJoint as LoopJoint
from .ode import ode_term as ode_term
from .patches import ContactPatch as ContactPatch
from .patches import SupportArea as SupportArea
from .patches import WrenchDistribution as WrenchDistribution
from .patches import distribute_wrench as distribute_wrench
from .patches import static_equilibrium_polygon as static_equilibrium_polygon
from .patches import zmp_support_area as zmp_support_area
from .servo import Servo as Servo
from .servo import Stops as Stops
from .simulate import Simulation as Simulation
from .simulate import simulate as simulate
from .simulate import state_derivative as state_derivative
