"""The RB-Y1: its SDK's dynamics, commands, controller, motion generator and mobile base."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import builders as builders
    from . import commands as commands
    from . import dynamics as dynamics
    from . import impedance as impedance
    from . import math as math
    from . import mobility as mobility
else:
    from .._lazy import lazy_submodules as _lazy_submodules

    __getattr__, __dir__ = _lazy_submodules(
        __name__, "builders", "commands", "dynamics", "impedance", "math", "mobility"
    )
