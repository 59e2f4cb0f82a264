"""Reads and writes robots: format-neutral descriptions, URDF, MJCF, and a builder for Python.

Reading, checking and writing descriptions takes numpy only; what makes or takes a `Model` is imported when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..shapes import BoxGeometry as BoxGeometry
from ..shapes import CapsuleGeometry as CapsuleGeometry
from ..shapes import ConvexHullGeometry as ConvexHullGeometry
from ..shapes import CylinderGeometry as CylinderGeometry
from ..shapes import MeshGeometry as MeshGeometry
from ..shapes import SphereGeometry as SphereGeometry
from .builder import RobotBuilder as RobotBuilder
from .description import CollisionDescription as CollisionDescription
from .description import Inertial as Inertial
from .description import JointDescription as JointDescription
from .description import LinkDescription as LinkDescription
from .description import Mimic as Mimic
from .description import MobileBaseDescription as MobileBaseDescription
from .description import RobotDescription as RobotDescription
from .urdf import read_urdf as read_urdf
from .urdf_writer import write_urdf as write_urdf
from .weld import weld as weld

if TYPE_CHECKING:
    from .build import build_model as build_model
    from .load import from_mujoco as from_mujoco
    from .load import load_mjcf as load_mjcf
    from .load import load_urdf as load_urdf
    from .load import load_urdf_string as load_urdf_string
    from .load import load_xacro as load_xacro
    from .save import describe as describe
    from .save import save_urdf as save_urdf
    from .save import to_urdf as to_urdf
else:
    from .._lazy import lazy_submodules as _lazy_submodules

    __getattr__, __dir__ = _lazy_submodules(
        __name__,
        build=("build_model",),
        load=("from_mujoco", "load_mjcf", "load_urdf", "load_urdf_string", "load_xacro"),
        save=("describe", "save_urdf", "to_urdf"),
    )
