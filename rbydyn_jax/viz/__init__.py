"""Figures of robots and motions with matplotlib (extra `viz`), which is imported only when one is drawn."""

from ..shapes.capsule import capsule_surface as capsule_surface
from .motion import plot_motion as plot_motion
from .robot import draw_robot as draw_robot
