"""Identification of inertial parameters, friction and motor constants from torques, of geometry from poses."""

from ..algorithms.inverse_dynamics import motor_torques as motor_torques
from .calibration import CalibrationResult as CalibrationResult
from .calibration import calibrate as calibrate
from .data import TrajectoryData as TrajectoryData
from .data import data_from_samples as data_from_samples
from .data import read_csv as read_csv
from .data import smooth as smooth
from .excitation import ExcitingTrajectory as ExcitingTrajectory
from .excitation import exciting_trajectory as exciting_trajectory
from .fitting import FitResult as FitResult
from .fitting import fit as fit
from .identifiability import BaseParameters as BaseParameters
from .identifiability import base_parameters as base_parameters
from .parameter_vector import parameter_names as parameter_names
from .parameter_vector import parameters as parameters
from .parameter_vector import with_parameters as with_parameters
from .regressors import INERTIAL_NAMES as INERTIAL_NAMES
from .regressors import actuator_regressor as actuator_regressor
from .regressors import energy_regressor as energy_regressor
from .regressors import momentum_regressor as momentum_regressor
from .regressors import torque_regressor as torque_regressor
