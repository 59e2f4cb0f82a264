"""The RB-Y1: its SDK's dynamics, commands, controller, motion generator and mobile base.

`import rbydyn_jax.rby1 as rby` instead of `import rby1_sdk as rby` serves a script for the SDK: `rby.dynamics` and
`rby.math` are this library's, builders, robots and all other names those of `rby1.builders`; `rby.__version__` is that
of the SDK.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from . import builders as builders
    from . import commands as commands
    from . import dynamics as dynamics
    from . import impedance as impedance
    from . import math as math
    from . import mobility as mobility
    from . import states as states

    def __getattr__(name: str) -> Any: ...
else:
    from .._lazy import lazy_submodules as _lazy_submodules

    _SUBMODULES = ("builders", "commands", "dynamics", "impedance", "math", "mobility", "states")
    _submodule, __dir__ = _lazy_submodules(__name__, *_SUBMODULES)

    def __getattr__(name):
        if name == "__version__":
            return _version_of_sdk()
        if name.startswith("_") or name in _SUBMODULES:
            return _submodule(name)
        try:
            return getattr(_submodule("builders"), name)
        except AttributeError as error:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}, nor has the SDK") from error

    def _version_of_sdk():
        from .commands._sdk import load_sdk

        try:
            return load_sdk().__version__
        except ImportError as error:  # to tools that ask for it, such as pydoc, there is none
            raise AttributeError(f"module {__name__!r} has no attribute '__version__': {error}") from error
