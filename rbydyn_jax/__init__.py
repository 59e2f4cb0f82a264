"""Rigid-body kinematics and dynamics in JAX: differentiable, batched, exact."""

from typing import TYPE_CHECKING

from ._errors import ArgumentError as ArgumentError
from ._errors import CommandError as CommandError
from ._errors import DtypeError as DtypeError
from ._errors import Finding as Finding
from ._errors import MissingExtraError as MissingExtraError
from ._errors import ModelError as ModelError
from ._errors import NameNotFoundError as NameNotFoundError
from ._errors import NotConnectedError as NotConnectedError
from ._errors import ParseError as ParseError
from ._errors import PerformanceWarning as PerformanceWarning
from ._errors import RbydynError as RbydynError
from ._errors import RecompilationError as RecompilationError
from ._errors import ShapeError as ShapeError
from ._errors import StaleStateError as StaleStateError

if TYPE_CHECKING:
    from . import collision as collision
    from . import compat as compat
    from . import constraints as constraints
    from . import envs as envs
    from . import estimation as estimation
    from . import identification as identification
    from . import planning as planning
    from . import rby1 as rby1
    from . import robots as robots
    from . import spatial as spatial
    from . import testing as testing
    from . import viz as viz
    from . import whole_body as whole_body
    from ._public import *  # noqa: F403

    __version__: str

else:
    from ._lazy import lazy_submodules as _lazy_submodules

    _SUBMODULES = (
        "collision", "compat", "constraints", "envs", "estimation", "identification", "planning", "rby1", "robots",
        "spatial", "testing", "viz", "whole_body",
    )  # fmt: skip
    _submodule, _directory = _lazy_submodules(__name__, *_SUBMODULES)

    def _load():
        """Imports the flat names, and with them all other subpackages."""
        from . import _public

        globals().update((name, x) for name, x in vars(_public).items() if not name.startswith("_"))

    def __getattr__(name):
        if name == "__version__":
            from importlib.metadata import version

            return version(__name__)
        if name not in _SUBMODULES and not name.startswith("_"):
            _load()
            if name in globals():
                return globals()[name]
        return _submodule(name)

    def __dir__():
        _load()
        return _directory()
