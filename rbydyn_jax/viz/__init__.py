"""Figures of robots and motions with matplotlib (extra `viz`), and a viewer in the browser (extra `view`).

Both packages are imported only when something is shown.
"""

from ..shapes.capsule import capsule_surface as capsule_surface
from .animation import animate as animate
from .motion import plot_motion as plot_motion
from .playback import Playback as Playback
from .robot import draw_robot as draw_robot
from .show import play as play
from .show import show as show
from .viewer import Viewer as Viewer
