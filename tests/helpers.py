"""What the tests share: the tolerance of DESIGN's error policy, random inputs, and where the oracles are."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

X64 = os.environ.get("RBYDYN_TEST_X64", "1") != "0"
ROOT = Path(__file__).resolve().parent.parent
RBY1_DIRECTORY = Path(os.environ.get("RBYDYN_RBY1_URDF_DIR") or ROOT.parent / "shared" / "robots" / "rby1")
BATCH = 100

Kind = Literal["value", "solve", "difference"]
_TOLERANCE: dict[str, dict[Kind, float]] = {
    "float64": {"value": 1e-12, "solve": 1e-9, "difference": 1e-6},
    "float32": {"value": 2e-5, "solve": 1e-3, "difference": 2e-2},
}
_ORACLES = (
    "pinocchio",
    "rby1_sdk",
    "mujoco",
    "grpc",
    "google.protobuf",
    "gymnasium",
    "rosbags",
    "ruckig",
    "toppra",
    "nvidia.cu13",
)


def assert_close(
    got: Any, want: Any, tol: float | None = None, *, kind: Kind = "value", scale: float | None = None
) -> None:
    """Asserts `|got - want| <= tol * max|want|`, by entry, shapes equal, nothing NaN.

    Args:
        got: The array under test; its dtype decides the tolerance.
        want: The expected array.
        tol: Relative tolerance instead of the one for the dtype and `kind`.
        kind: `"value"`, or `"solve"` for solves and gradients, or `"difference"` for finite differences.
        scale: Stands in for `max|want|` where the result is a small remainder of larger terms.
    """
    got = np.asarray(got)
    bound = _TOLERANCE[got.dtype.name][kind] if tol is None else tol
    got, want = got.astype(np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape, f"shape {got.shape} is not {want.shape}"
    assert np.isfinite(want).all(), "the expected values are not finite"
    if got.size == 0:
        return
    size = float(np.abs(want).max()) if scale is None else scale
    error = np.abs(got - want)
    worst = np.unravel_index(int(np.argmax(np.where(np.isnan(error), np.inf, error))), error.shape)
    assert (error <= bound * size).all(), (
        f"error {error[worst]:.3e} at {tuple(map(int, worst))} exceeds {bound:.1e} * {size:.3e}: "
        f"got {got[worst]!r}, want {want[worst]!r}"
    )


def normal(seed: int, *shape: int) -> jax.Array:
    """Standard normal numbers in the dtype of the run."""
    return jax.random.normal(jax.random.key(seed), shape, dtype=jnp.float64 if X64 else jnp.float32)


def arithmetic_in(program: str) -> int:
    """Additions and multiplications in the text of a program, before or after XLA."""
    return len(re.findall(r"(?:stablehlo\.|= \S+ )(?:add|subtract|multiply)\b", program))


def untyped(x: Any) -> Any:
    """`x` as it is, for what the annotations do not allow: NumPy arrays, and wrong arguments."""
    return x


def compiled_text(lowered: jax.stages.Lowered) -> str:
    """The text of a program after XLA."""
    text = lowered.compile().as_text()
    assert text is not None
    return text


def slow(*values: Any) -> tuple[Any, ...]:
    """Parameters of the tests that run with `-m slow` only."""
    return tuple(pytest.param(value, marks=pytest.mark.slow) for value in values)


def missing_oracles() -> list[str]:
    """The reference packages that are not installed."""
    missing = [name for name in _ORACLES if not _is_installed(name)]
    if example_robot_directory() is None:
        missing.append("example-robot-data")
    if shutil.which("gcc") is None:
        missing.append("gcc")
    return missing


def c_compiler() -> str:
    """The path of gcc, or skips (in CI the run has already been refused)."""
    path = shutil.which("gcc")
    if path is None:
        pytest.skip("no gcc")
    return path


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # of the package that it is a part of
        return False


def oracle(name: str) -> ModuleType:
    """Imports a reference package, or skips (in CI the run has already been refused)."""
    return pytest.importorskip(name)


def example_robot_directory() -> Path | None:
    """The folder of the example-robot-data wheel (which holds files only), or None."""
    folder = Path(sysconfig.get_path("purelib"), "cmeel.prefix", "share", "example-robot-data", "robots")
    return folder if folder.is_dir() else None


def example_robot(relative: str) -> Path:
    """The path of one example-robot-data file, such as ``panda_description/urdf/panda.urdf``; skips without them."""
    folder = example_robot_directory()
    if folder is None:
        pytest.skip("example-robot-data is not installed")
    return folder / relative


def rby1_file(name: str) -> Path:
    """The path of one of the vendor's files, such as ``rby1a_model_v1.2.urdf``; skips without them."""
    if not RBY1_DIRECTORY.is_dir():
        pytest.skip(f"no vendor files in {RBY1_DIRECTORY}")
    return RBY1_DIRECTORY / name
