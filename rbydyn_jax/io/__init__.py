"""Reads and writes robots: format-neutral descriptions, URDF, MJCF, and a builder for Python."""

from __future__ import annotations

from ..shapes import BoxGeometry as BoxGeometry
from ..shapes import CapsuleGeometry as CapsuleGeometry
from ..shapes import ConvexHullGeometry as ConvexHullGeometry
from ..shapes import CylinderGeometry as CylinderGeometry
from ..shapes import MeshGeometry as MeshGeometry
from ..shapes import SphereGeometry as SphereGeometry
from .build import build_model as build_model
from .build import load_urdf as load_urdf
from .build import load_urdf_string as load_urdf_string
from .builder import RobotBuilder as RobotBuilder
from .description import CollisionDescription as CollisionDescription
from .description import Inertial as Inertial
from .description import JointDescription as JointDescription
from .description import LinkDescription as LinkDescription
from .description import Mimic as Mimic
from .description import MobileBaseDescription as MobileBaseDescription
from .description import RobotDescription as RobotDescription
from .mjcf import from_mujoco as from_mujoco
from .mjcf import load_mjcf as load_mjcf
from .save import describe as describe
from .save import save_urdf as save_urdf
from .save import to_urdf as to_urdf
from .urdf import read_urdf as read_urdf
from .urdf_writer import write_urdf as write_urdf
from .weld import weld as weld
from .xacro import load_xacro as load_xacro
