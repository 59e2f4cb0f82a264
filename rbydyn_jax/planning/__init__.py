"""Planning of motions: inverse kinematics, trapezoidal profiles, and trajectory optimisation."""

from .checks import TrajectoryReport as TrajectoryReport
from .checks import check_trajectory as check_trajectory
from .goals import ComGoal as ComGoal
from .goals import ConfigurationGoal as ConfigurationGoal
from .goals import Goal as Goal
from .goals import PoseGoal as PoseGoal
from .goals import PositionGoal as PositionGoal
from .ik import IkResult as IkResult
from .ik import IkStatus as IkStatus
from .ik import solve_ik as solve_ik
from .optimize import optimize_trajectory as optimize_trajectory
from .problem import TrajectoryProblem as TrajectoryProblem
from .profiles import ProfileSamples as ProfileSamples
from .profiles import TrapezoidalProfile as TrapezoidalProfile
from .profiles import trapezoidal_profile as trapezoidal_profile
from .solve import TrajectoryResult as TrajectoryResult
from .solve import TrajectoryStatus as TrajectoryStatus
from .solve import TrajectoryViolations as TrajectoryViolations
from .solve import solve_trajectory as solve_trajectory
from .spline import rest_to_rest_basis as rest_to_rest_basis
from .trajectory import Trajectory as Trajectory
from .trajectory import TrajectorySamples as TrajectorySamples
from .trajectory import sample_trajectory as sample_trajectory
