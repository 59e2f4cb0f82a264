"""The joint types, one in a file: transform, motion subspace, coordinates, limits, names in other formats, loop rows.

`JOINT_TYPES` is the table that readers, writers, checks, builders, loops and layouts ask. All modules of this package
are imported, so a new type is one new file here; other packages call `register`.
"""

from __future__ import annotations

import importlib
import pkgutil

from .base import JOINT_TYPES as JOINT_TYPES
from .base import Coordinates as Coordinates
from .base import JointType as JointType
from .base import register as register
from .layout import Layout as Layout
from .prismatic import Prismatic as Prismatic
from .revolute import Revolute as Revolute
from .rotations import rotation_about as rotation_about

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
