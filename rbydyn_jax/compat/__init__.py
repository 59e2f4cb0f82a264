"""Stand-ins for other libraries, under their names and in their conventions: pymanoid and pyrobot."""

from . import pymanoid as pymanoid
from . import pyrobot as pyrobot
