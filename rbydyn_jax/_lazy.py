"""Submodules that are imported when they are first used (PEP 562)."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType


def lazy_submodules(package: str, *names: str) -> tuple[Callable[[str], ModuleType], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package: `dir` lists functions, classes and the named submodules."""

    def getattribute(name: str) -> ModuleType:
        if name in names:
            return _import(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def directory() -> list[str]:
        members = vars(sys.modules[package]).items()
        public = [name for name, x in members if name[0] != "_" and (inspect.isfunction(x) or inspect.isclass(x))]
        return sorted([*public, *names])

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
