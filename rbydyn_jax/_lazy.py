"""Modules that are imported when they are first used: those of this package (PEP 562), and JAX.

Reading, checking and describing robot files takes numpy only. What these parts of the library share with the rest, such
as the table of joint types, uses JAX by way of the names `jax` and `jnp` here, in functions that are not called then.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any


class LazyModule:
    """Stands for a module, which is imported for its first attribute."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(_import(self.__name__), attribute)
        setattr(self, attribute, found)
        return found


if TYPE_CHECKING:
    import jax as jax
    import jax.numpy as jnp
else:
    jax, jnp = LazyModule("jax"), LazyModule("jax.numpy")


def is_traced(x: Any) -> bool:
    """Whether JAX traces `x`; nothing is traced before JAX is imported."""
    core = sys.modules.get("jax.core")
    return core is not None and isinstance(x, core.Tracer)


def lazy_submodules(
    package: str, *submodules: str, **names: tuple[str, ...]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package: `dir` lists functions, classes and what is named here.

    Args:
        package: The package.
        *submodules: Submodules that are attributes of the package.
        **names: Names that are imported from submodules, by the submodule.
    """
    home = {name: module for module, members in names.items() for name in members}

    def getattribute(name: str) -> Any:
        if name in submodules:
            return _import(f"{package}.{name}")
        if name in home:
            found = getattr(_import(f"{package}.{home[name]}"), name)
            setattr(sys.modules[package], name, found)
            return found
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def directory() -> list[str]:
        members = vars(sys.modules[package]).items()
        public = [name for name, x in members if name[0] != "_" and (inspect.isfunction(x) or inspect.isclass(x))]
        return sorted({*public, *submodules, *home})

    return getattribute, directory


def _import(name: str) -> ModuleType:
    """Imports a module and leaves NumPy's global generator as it is: JAX draws from it while it is imported."""
    numpy = sys.modules.get("numpy")
    if numpy is None or name in sys.modules:
        return importlib.import_module(name)
    state = numpy.random.get_state()
    try:
        return importlib.import_module(name)
    finally:
        numpy.random.set_state(state)
