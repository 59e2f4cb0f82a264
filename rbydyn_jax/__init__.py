"""Rigid-body kinematics and dynamics in JAX: differentiable, batched, exact."""

from typing import TYPE_CHECKING

from ._errors import ArgumentError as ArgumentError
from ._errors import CommandError as CommandError
from ._errors import DtypeError as DtypeError
from ._errors import Finding as Finding
from ._errors import MissingExtraError as MissingExtraError
from ._errors import ModelError as ModelError
from ._errors import NameNotFoundError as NameNotFoundError
from ._errors import NotConnectedError as NotConnectedError
from ._errors import ParseError as ParseError
from ._errors import PerformanceWarning as PerformanceWarning
from ._errors import RbydynError as RbydynError
from ._errors import RecompilationError as RecompilationError
from ._errors import ShapeError as ShapeError
from ._errors import StaleStateError as StaleStateError
from .algorithms.aba import aba as aba
from .algorithms.centroidal import center_of_mass as center_of_mass
from .algorithms.centroidal import com_acceleration as com_acceleration
from .algorithms.centroidal import com_hessian as com_hessian
from .algorithms.centroidal import com_jacobian as com_jacobian
from .algorithms.centroidal import com_velocity as com_velocity
from .algorithms.centroidal import momentum as momentum
from .algorithms.centroidal import momentum_matrix as momentum_matrix
from .algorithms.centroidal import operational_space_inertia as operational_space_inertia
from .algorithms.centroidal import spatial_inertia as spatial_inertia
from .algorithms.centroidal import subtree_mass as subtree_mass
from .algorithms.centroidal import total_mass as total_mass
from .algorithms.coriolis import coriolis_matrix as coriolis_matrix
from .algorithms.crba import crba as crba
from .algorithms.crba import mass_matrix_inverse as mass_matrix_inverse
from .algorithms.derivatives import AbaDerivatives as AbaDerivatives
from .algorithms.derivatives import RneaDerivatives as RneaDerivatives
from .algorithms.derivatives import aba_derivatives as aba_derivatives
from .algorithms.derivatives import rnea_derivatives as rnea_derivatives
from .algorithms.energy import damping_forces as damping_forces
from .algorithms.energy import friction_forces as friction_forces
from .algorithms.energy import kinetic_energy as kinetic_energy
from .algorithms.energy import potential_energy as potential_energy
from .algorithms.external_wrenches import external_wrenches as external_wrenches
from .algorithms.inverse_dynamics import InverseDynamicsTerms as InverseDynamicsTerms
from .algorithms.inverse_dynamics import bias_forces as bias_forces
from .algorithms.inverse_dynamics import gravity_forces as gravity_forces
from .algorithms.inverse_dynamics import inverse_dynamics_terms as inverse_dynamics_terms
from .algorithms.inverse_dynamics import joint_reaction_wrenches as joint_reaction_wrenches
from .algorithms.inverse_dynamics import rnea as rnea
from .algorithms.jacobians import hessian as hessian
from .algorithms.jacobians import jacobian as jacobian
from .algorithms.jacobians import jacobian_dot as jacobian_dot
from .algorithms.jacobians import jacobian_dot_v as jacobian_dot_v
from .algorithms.jacobians import link_acceleration as link_acceleration
from .algorithms.jacobians import link_velocity as link_velocity
from .algorithms.jacobians import point_hessian as point_hessian
from .algorithms.jacobians import point_jacobian as point_jacobian
from .algorithms.jacobians import quaternion_jacobian as quaternion_jacobian
from .algorithms.kinematics import body_poses as body_poses
from .algorithms.kinematics import fk as fk
from .algorithms.kinematics import link_pose as link_pose
from .algorithms.momentum import angular_momentum as angular_momentum
from .algorithms.momentum import angular_momentum_hessian as angular_momentum_hessian
from .algorithms.momentum import angular_momentum_jacobian as angular_momentum_jacobian
from .algorithms.momentum import centroidal_momentum as centroidal_momentum
from .algorithms.momentum import centroidal_momentum_hessian as centroidal_momentum_hessian
from .algorithms.momentum import centroidal_momentum_matrix as centroidal_momentum_matrix
from .algorithms.momentum import centroidal_momentum_rate as centroidal_momentum_rate
from .algorithms.zmp import Zmp as Zmp
from .algorithms.zmp import gravito_inertial_wrench as gravito_inertial_wrench
from .algorithms.zmp import net_contact_wrench as net_contact_wrench
from .algorithms.zmp import zmp as zmp
from .compilation.execution_plan import execution_plan as execution_plan
from .compilation.export import ExportedFunction as ExportedFunction
from .compilation.export import export_function as export_function
from .compilation.export import load_function as load_function
from .compilation.precompile import precompile as precompile
from .compilation.precompile import set_compilation_cache as set_compilation_cache
from .compilation.recompilation import no_recompile as no_recompile
from .distributed import map_batch as map_batch
from .io.build import build_model as build_model
from .io.build import load_urdf as load_urdf
from .io.build import load_urdf_string as load_urdf_string
from .io.builder import RobotBuilder as RobotBuilder
from .io.description import JointDescription as JointDescription
from .io.description import LinkDescription as LinkDescription
from .io.description import Mimic as Mimic
from .io.description import RobotDescription as RobotDescription
from .io.mjcf import from_mujoco as from_mujoco
from .io.mjcf import load_mjcf as load_mjcf
from .io.restructure import attach as attach
from .io.restructure import lock_joints as lock_joints
from .io.restructure import submodel as submodel
from .io.save import save_urdf as save_urdf
from .io.save import to_urdf as to_urdf
from .io.xacro import load_xacro as load_xacro
from .model.configuration import clamp as clamp
from .model.configuration import difference as difference
from .model.configuration import integrate as integrate
from .model.configuration import neutral as neutral
from .model.configuration import normalize as normalize
from .model.configuration import qdot_from_v as qdot_from_v
from .model.configuration import random_configuration as random_configuration
from .model.configuration import v_from_qdot as v_from_qdot
from .model.edit import attach_payload as attach_payload
from .model.edit import specialize as specialize
from .model.edit import stack_models as stack_models
from .model.edit import unstructured as unstructured
from .model.edit import with_geometry as with_geometry
from .model.edit import with_gravity as with_gravity
from .model.edit import with_inertias as with_inertias
from .model.edit import with_joint_parameters as with_joint_parameters
from .model.edit import with_limits as with_limits
from .model.edit import with_traversal as with_traversal
from .model.model import Model as Model
from .model.tree import KinematicTree as KinematicTree
from .precision import AlgorithmPrecision as AlgorithmPrecision
from .precision import PrecisionReport as PrecisionReport
from .precision import precision_report as precision_report
from .sweeps.plan import ExecutionPlan as ExecutionPlan

if TYPE_CHECKING:
    from . import collision as collision
    from . import compat as compat
    from . import constraints as constraints
    from . import planning as planning
    from . import rby1 as rby1
    from . import robots as robots
    from . import spatial as spatial
    from . import testing as testing
    from . import viz as viz

    __version__: str

else:
    from ._lazy import lazy_submodules as _lazy_submodules

    _submodule, __dir__ = _lazy_submodules(
        __name__, "collision", "compat", "constraints", "planning", "rby1", "robots", "spatial", "testing", "viz"
    )

    def __getattr__(name):
        if name == "__version__":
            from importlib.metadata import version

            return version(__name__)
        return _submodule(name)
