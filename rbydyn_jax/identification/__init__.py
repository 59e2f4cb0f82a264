"""Identification of inertial parameters and friction from motions and torques."""

from .regressors import INERTIAL_NAMES as INERTIAL_NAMES
from .regressors import actuator_regressor as actuator_regressor
from .regressors import energy_regressor as energy_regressor
from .regressors import momentum_regressor as momentum_regressor
from .regressors import torque_regressor as torque_regressor
