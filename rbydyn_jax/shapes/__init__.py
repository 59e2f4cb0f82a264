"""Shapes on links, one file each: their sizes in files, their parameters on a robot, their surface in pictures.

`GEOMETRIES` is the table that readers, writers and checks ask. Distances of pairs are in `collision.pair_table`. A new
shape is one file here and a line in the table; see CONTRIBUTING.md.
"""

from .base import CollisionGeometry as CollisionGeometry
from .base import Geometry as Geometry
from .base import Shape as Shape
from .base import SizeReader as SizeReader
from .box import BoxGeometry as BoxGeometry
from .capsule import CapsuleGeometry as CapsuleGeometry
from .capsule import SphereGeometry as SphereGeometry
from .convex_hull import ConvexHullGeometry as ConvexHullGeometry
from .cylinder import CylinderGeometry as CylinderGeometry
from .mesh import MeshGeometry as MeshGeometry
from .table import GEOMETRIES as GEOMETRIES
from .table import collision_geometries as collision_geometries
