"""Generated C, compiled with the C compiler of the system and called from Python."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rbydyn_jax import CFunction
from tests.helpers import c_compiler

WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")


def compiled(folder: Path, *codes: CFunction) -> list[Callable[..., list[np.ndarray]]]:
    """The functions, which take arrays and return the arrays of results, of the dtype unless it is given."""
    sources = [code.save(folder)[1] for code in codes]
    run(c_compiler(), "-std=c99", *WARNINGS, "-O1", "-shared", "-fPIC", *sources, "-o", folder / "all.so", "-lm")
    library = ctypes.CDLL(str(folder / "all.so"))
    return [_function(code, getattr(library, code.name)) for code in codes]


def run(*command: Any) -> str:
    """What a program prints."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _function(code: CFunction, function: Any) -> Callable[..., list[np.ndarray]]:
    function.restype = None

    def call(*arrays: Any, **dtypes: Any) -> list[np.ndarray]:
        given = [np.array(x, code.dtype, order="C") for x in arrays]
        assert [x.shape for x in given] == list(code.arguments.values())
        found = [np.full(shape, 123, dtypes.get(name, code.dtype)) for name, shape in code.results.items()]
        function(*(ctypes.c_void_p(x.ctypes.data) for x in (*given, *found)))
        return found

    return call
