"""``rbydyn doctor``: what is installed, and whether it works."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._errors import RbydynError
from ..algorithms.inverse_dynamics import gravity_forces
from ..robots import pendulum

_CORE = ("rbydyn_jax", "jax", "jaxlib", "equinox", "jaxtyping", "numpy", "xmltodict")
_DEVELOPMENT = ("test", "robots", "benchmark", "docs", "dev")


def doctor(as_json: bool = False) -> int:
    """Prints versions, devices, settings and optional packages; returns 0, or 1 if a pendulum does not hang right.

    Args:
        as_json: Whether to print a JSON document instead of lines.
    """
    facts = examine()
    print(json.dumps(facts, indent=2) if as_json else _as_text(facts))
    return 0 if facts["works"] else 1


def examine() -> dict[str, Any]:
    """The facts that `doctor` prints, as plain data."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: _version(name) for name in _CORE},
        "devices": [f"{device.platform}: {device.device_kind}" for device in jax.devices()],
        "float64": bool(jnp.zeros(()).dtype == np.float64),
        "compilation_cache": jax.config.values["jax_compilation_cache_dir"],
        "works": _works(),
        "extras": {extra: {name: _version(name) for name in names} for extra, names in _extras().items()},
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _extras() -> dict[str, list[str]]:
    """The packages of each extra for users, from the metadata of this package."""
    found: dict[str, list[str]] = {}
    for requirement in importlib.metadata.requires("rbydyn_jax") or ():
        match = re.fullmatch(r"([\w.-]+).*; *extra == ['\"]([\w-]+)['\"]", requirement)
        if match and match[2] not in _DEVELOPMENT:
            found.setdefault(match[2], []).append(match[1])
    return found


def _works() -> bool:
    """Whether the gravity torque of a pendulum of 2 kg and 0.5 m that is held level is m g l."""
    try:
        torque = gravity_forces(pendulum(mass=2.0, length=0.5), jnp.array([np.pi / 2]))
    except (RbydynError, RuntimeError):
        return False
    return bool(abs(abs(torque[0]) - 9.81) < 1e-4)


def _as_text(facts: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {version or 'MISSING'}" for name, version in facts["packages"].items())
    lines = [
        f"Python {facts['python']} on {facts['system']}",
        packages,
        f"devices: {', '.join(facts['devices'])}",
        f"default precision: {'float64' if facts['float64'] else 'float32'}",
        f"compilation cache: {facts['compilation_cache'] or 'none'}",
        "",
        *(_extra_text(extra, names) for extra, names in facts["extras"].items()),
        "",
        "a small computation is right" if facts["works"] else "FAILED: a small computation is wrong",
    ]
    return "\n".join(lines)


def _extra_text(extra: str, packages: dict[str, str | None]) -> str:
    found = ", ".join(f"{name} {version or 'missing'}" for name, version in packages.items())
    hint = "" if all(packages.values()) else f"    pip install 'rbydyn_jax[{extra}]'"
    return f"extra {extra:12}{found}{hint}"
