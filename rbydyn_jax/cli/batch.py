"""The core algorithms on a batch of random configurations: time to compile, time to run, and identities."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

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


class Program(NamedTuple):
    """A compiled algorithm of a batch, and how long compiling it took [s]."""

    run: Callable[..., Array]
    compile_time: float


class Batch(NamedTuple):
    """Random states within the limits (b, n), and the programs by the names of their algorithms."""

    model: Model
    q: Array
    v: Array
    a: Array
    programs: dict[str, Program]


def compile_batch(model: Model, link: str, count: int, seed: int = 0) -> Batch:
    """Compiles the core algorithms for random states within the limits.

    Args:
        model: The robot, in float64.
        link: The link whose Jacobian is evaluated.
        count: Number of states.
        seed: Seed of the random numbers.
    """
    q, v, a = random_states(model, jax.random.key(seed), count)

    def compiled(f: Callable, *arrays: Array) -> Program:
        def chunked(model: Model, *arrays: Array) -> Array:
            return map_batch(f, model, *arrays, in_axes=(None, *(0 for _ in arrays)))

        started = time.perf_counter()
        program = jax.jit(chunked).lower(model, *arrays).compile()
        return Program(program, time.perf_counter() - started)

    programs = {
        "fk, all links": compiled(fk, q),
        f"jacobian of {link}": compiled(lambda model, q: jacobian(model, q, link), q),
        "rnea": compiled(rnea, q, v, a),
        "crba": compiled(crba, q),
        "aba": compiled(aba, q, v, a),
        "signed_distances": compiled(signed_distances, q),
    }
    return Batch(model, q, v, a, programs)


def run_batch(batch: Batch) -> bool:
    """Runs the programs and prints what came out.

    Returns:
        Whether the results satisfy the equations of motion.
    """
    model, q, v, a, programs = batch
    print(f"{len(q)} random configurations, velocities and accelerations inside the limits:")
    print(f"{'algorithm':26}{'result for each':>16}{'compile once [s]':>18}{'then [us each]':>16}")
    tau = programs["rnea"].run(model, q, v, a)
    given = {"rnea": (q, v, a), "aba": (q, v, tau)}
    results = {name: _measured(name, program, model, *given.get(name, (q,))) for name, program in programs.items()}
    bias = programs["rnea"].run(model, q, v, jnp.zeros_like(a))
    motion = _relative(jnp.einsum("bij,bj->bi", results["crba"], a) + bias, tau)
    forward = _relative(results["aba"], a)
    free = float(np.mean(np.asarray(results["signed_distances"]).min(axis=1) > 0))
    print(f"{100 * free:.1f} % of the configurations are free of self-collision")
    print(f"identity: |M a + bias - rnea| / |rnea| = {motion:.1e}, |aba(rnea(a)) - a| / |a| = {forward:.1e}")
    return motion < _IDENTITY_TOLERANCE and forward < _IDENTITY_TOLERANCE


def _measured(name: str, program: Program, model: Model, *arrays: Array) -> Array:
    """The result of a program, after printing how long it takes."""
    runs = []
    for _ in range(3):
        started = time.perf_counter()
        result = jax.block_until_ready(program.run(model, *arrays))
        runs.append(time.perf_counter() - started)
    shape = " x ".join(map(str, result.shape[1:]))
    each = 1e6 * min(runs) / len(arrays[0])
    print(f"{name:26}{shape:>16}{program.compile_time:>18.1f}{each:>16.2f}", flush=True)
    return result


def _relative(got: Array, want: Array) -> float:
    return float(jnp.max(jnp.abs(got - want)) / jnp.max(jnp.abs(want)))
