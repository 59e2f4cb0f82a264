"""Drop-in for `rby1_sdk.dynamics`: the same classes, calls and results, in NumPy float64, without its crashes.

Everything here is host-side and mutable; `Robot.model` and `State.to_jax` lead to the pure, batched, differentiable
functions of `rbydyn_jax`. Intentional differences are listed in `docs/rby1_sdk.md`.
"""

from ._configuration import RobotConfiguration as RobotConfiguration
from ._geometry import Collision as Collision
from ._geometry import CollisionResult as CollisionResult
from ._geometry import Geom as Geom
from ._geometry import GeomCapsule as GeomCapsule
from ._geometry import GeomType as GeomType
from ._links import Joint as Joint
from ._links import Link as Link
from ._mobility import MobileBase as MobileBase
from ._mobility import MobileBaseDifferential as MobileBaseDifferential
from ._mobility import MobileBaseMecanum as MobileBaseMecanum
from ._mobility import MobileBaseType as MobileBaseType
from ._pure import JaxState as JaxState
from ._robot import Robot as Robot
from ._robot import Robot_18 as Robot_18
from ._robot import Robot_24 as Robot_24
from ._robot import Robot_26 as Robot_26
from ._state import State as State
from ._state import State_18 as State_18
from ._state import State_24 as State_24
from ._state import State_26 as State_26
from ._urdf import load_robot_from_urdf as load_robot_from_urdf
from ._urdf import load_robot_from_urdf_data as load_robot_from_urdf_data
