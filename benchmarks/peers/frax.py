"""frax (JAX), with the compiler option that it recommends for CPUs, through plain `vmap`."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import frax
import jax
import jax.numpy as jnp
import numpy as np

from rbydyn_jax import to_urdf

from ..case import CHECKED, Case, Entry
from ..operations import OPERATIONS
from ..ours import flat

_OPTIONS = {"xla_cpu_enable_concurrency_optimized_scheduler": False}


def entries(case: Case, operations: Iterable[str], batches: Iterable[int]) -> Iterator[Entry]:
    model = case.model
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = Path(folder, "robot.urdf")
        path.write_text(to_urdf(model, collisions=False))
        robot = frax.Robot(str(path))
    order = [model.joint_names.index(name) for name in robot.joint_names]  # theirs -> ours
    back = np.argsort(order)
    gravity = jnp.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0], case.dtype)

    def rnea(q, v, a):
        return robot.rnea(q, v, a, gravity, None)

    def loss(q, v, a):
        return 0.5 * jnp.sum(rnea(q, v, a) ** 2)

    functions: dict[str, Callable] = {
        "fk": robot.joint_to_world_transforms,
        "rnea": rnea,
        "crba": robot.crba,
        "aba": lambda q, v, tau: robot.forward_dynamics(q, v, tau, None),
        "rnea_gradient": jax.grad(loss, argnums=(0, 1, 2)),
    }

    def in_our_order(x: jax.Array) -> np.ndarray:
        y = np.asarray(x)[:, back]
        return y[:, :, back] if y.ndim == 3 else y

    for operation, function in functions.items():
        if operation not in operations:
            continue
        f = jax.jit(jax.vmap(function), compiler_options=_OPTIONS)

        def arguments(batch: int, operation: str = operation) -> list[jax.Array]:
            arrays = [case.inputs[name][:batch, order] for name in OPERATIONS[operation].inputs]
            return [jnp.asarray(np.ascontiguousarray(x), case.dtype) for x in arrays]

        def values(f: Callable = f, arguments: Callable = arguments) -> np.ndarray:
            return flat(jax.tree.map(in_our_order, f(*arguments(CHECKED))))

        for batch in batches:

            def run(f: Callable = f, given: list[jax.Array] = arguments(batch)) -> object:  # noqa: B008
                return jax.block_until_ready(f(*given))

            yield Entry("frax", operation, batch, run, None, None if operation == "fk" else values)


def version() -> str:
    return importlib.metadata.version("frax")
