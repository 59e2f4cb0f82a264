"""The core algorithms on a batch of random configurations: time to compile, time to run, and identities."""

from __future__ import annotations

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..algorithms.aba import aba
from ..algorithms.crba import crba
from ..algorithms.inverse_dynamics import rnea
from ..algorithms.jacobians import jacobian
from ..algorithms.kinematics import fk
from ..collision import signed_distances
from ..distributed import map_batch
from ..model.model import Model
from ..model.states import random_states

_IDENTITY_TOLERANCE = 1e-9


def run_batch(model: Model, link: str, batch: int, seed: int = 0) -> bool:
    """Evaluates the core algorithms for random states inside the limits and prints what came out.

    Args:
        model: The robot, in float64.
        link: The link whose Jacobian is evaluated.
        batch: Number of states.
        seed: Seed of the random numbers.

    Returns:
        Whether the results satisfy the equations of motion.
    """
    q, v, a = random_states(model, jax.random.key(seed), batch)
    print(f"{batch} random configurations, velocities and accelerations inside the limits:")
    print(f"{'algorithm':26}{'result for each':>16}{'compile [s]':>13}{'run [us each]':>15}")
    _measure("fk, all links", fk, model, q)
    _measure(f"jacobian of {link}", lambda model, q: jacobian(model, q, link), model, q)
    tau = _measure("rnea", rnea, model, q, v, a)
    M = _measure("crba", crba, model, q)
    acceleration = _measure("aba", aba, model, q, v, tau)
    bias = jax.vmap(rnea, in_axes=(None, 0, 0, None))(model, q, v, jnp.zeros(model.nv))
    d = _measure("signed_distances", signed_distances, model, q)
    motion = _relative(jnp.einsum("bij,bj->bi", M, a) + bias, tau)
    forward = _relative(acceleration, a)
    free = float(np.mean(np.asarray(d).min(axis=1) > 0))
    print(f"{100 * free:.1f} % of the configurations are free of self-collision")
    print(f"identity: |M a + bias - rnea| / |rnea| = {motion:.1e}, |aba(rnea(a)) - a| / |a| = {forward:.1e}")
    return motion < _IDENTITY_TOLERANCE and forward < _IDENTITY_TOLERANCE


def _measure(name: str, f: Callable, model: Model, *arrays: Array) -> Array:
    """Compiles and runs the batch of `f`, and prints how long each took."""
    in_axes = (None, *(0 for _ in arrays))

    def chunked(model: Model, *arrays: Array) -> Array:
        return map_batch(f, model, *arrays, in_axes=in_axes)

    started = time.perf_counter()
    compiled = jax.jit(chunked).lower(model, *arrays).compile()
    compile_time = time.perf_counter() - started
    runs = []
    for _ in range(3):
        started = time.perf_counter()
        result = jax.block_until_ready(compiled(model, *arrays))
        runs.append(time.perf_counter() - started)
    shape = " x ".join(map(str, result.shape[1:]))
    print(f"{name:26}{shape:>16}{compile_time:>13.1f}{1e6 * min(runs) / len(arrays[0]):>15.2f}", flush=True)
    return result


def _relative(got: Array, want: Array) -> float:
    return float(jnp.max(jnp.abs(got - want)) / jnp.max(jnp.abs(want)))
