"""Whole-body inverse dynamics: tasks of a robot that touches its surroundings, within limits, as a batched program."""

from .contacts import ContactModel as ContactModel
from .contacts import PatchContact as PatchContact
from .contacts import PointContact as PointContact
from .inverse_dynamics import WholeBodyResult as WholeBodyResult
from .inverse_dynamics import WholeBodyStatus as WholeBodyStatus
from .inverse_dynamics import inverse_dynamics as inverse_dynamics
from .tasks import Com as Com
from .tasks import Effort as Effort
from .tasks import Force as Force
from .tasks import Momentum as Momentum
from .tasks import Pose as Pose
from .tasks import Posture as Posture
from .tasks import Task as Task
