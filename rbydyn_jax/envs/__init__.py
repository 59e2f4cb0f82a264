"""Environments for reinforcement learning: an arm of the RB-Y1 that reaches and lifts, as pure functions of arrays."""

from .environment import Environment as Environment
from .environment import EnvState as EnvState
from .environment import Transition as Transition
from .environment import observe as observe
from .environment import reset as reset
from .environment import step as step
from .learning import RejaxEnv as RejaxEnv
from .learning import vector_env as vector_env
from .parameters import Parameters as Parameters
from .parameters import draw_parameters as draw_parameters
from .parameters import with_parameters as with_parameters
from .tasks import lift as lift
from .tasks import reach as reach
from .tasks import right_arm as right_arm
