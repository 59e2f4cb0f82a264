"""frax (JAX), with the compiler option that it recommends for CPUs, through plain `vmap`."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import frax
import jax.numpy as jnp
import numpy as np

from rbydyn_jax import to_urdf

from ..case import Case, Entry
from . import _jax, placement

_OPTIONS = {"xla_cpu_enable_concurrency_optimized_scheduler": False}


def entries(case: Case, operations: Iterable[str], batches: Iterable[int]) -> Iterator[Entry]:
    yield from _jax.entries(library(case), case, operations, batches)


def library(case: Case) -> _jax.Library:
    """Its functions of one configuration."""
    model = case.model
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = Path(folder, "robot.urdf")
        path.write_text(to_urdf(model, collisions=False))
        robot = frax.Robot(str(path))
    order = [model.joint_names.index(name) for name in robot.joint_names]  # theirs -> ours
    gravity = jnp.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0], case.dtype)
    body, T = placement(model, case.link)
    offset, at = jnp.asarray(T, case.dtype), order.index(body)
    share = case.moving_share
    path_to_link = np.array([order.index(i) for i in model.tree.path(body)])

    def rnea(q, v, a):
        return robot.rnea(q, v, a, gravity, None)

    def jacobian(q):
        J = robot._frame_jacobian(robot.joint_to_world_transforms(q), offset, path_to_link)
        return jnp.concatenate([J[3:], J[:3]])

    functions = {
        "fk": robot.joint_to_world_transforms,
        "position": lambda q: (robot.joint_to_world_transforms(q)[at] @ offset)[:3, 3],
        "jacobian": jacobian,
        "rnea": rnea,
        "crba": robot.crba,
        "aba": lambda q, v, tau: robot.forward_dynamics(q, v, tau, None),
        "mass_matrix_inverse": lambda q: robot.mass_matrix_inverse(robot.crba(q)),
        "com_jacobian": lambda q: share * robot.center_of_mass_jacobian(q),
    }
    return _jax.Library("frax", functions, order, _OPTIONS)


def version() -> str:
    return importlib.metadata.version("frax")
