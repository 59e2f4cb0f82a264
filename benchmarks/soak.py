"""Long runs: many calls, edits, loads, threads and processes, and whether memory or compiled programs grow."""

from __future__ import annotations

import argparse
import functools
import gc
import multiprocessing
import os
import resource
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

import rbydyn_jax as rb
from rbydyn_jax import robots

# What a call may leave behind, on average: less than the smallest result that is kept, an array with its Python object
# (some 500 bytes). What does not grow with the calls (caches, arenas of the allocator) is allowed once.
_PYTHON = 256.0, 0.05  # [kB], and [kB] for each call
_RESIDENT = 64.0, 0.5e-3  # [MB], and [MB] for each call

_EVENT = "/jax/core/compile/backend_compile_duration"
_compiled = 0


class Growth(NamedTuple):
    """What one long run left behind.

    Attributes:
        name: The run.
        count: Number of calls, or of configurations.
        seconds: Wall time.
        programs: Programs compiled after the warm-up.
        megabytes: Growth of the resident memory after the warm-up.
        python: Growth of the memory that Python holds after the warm-up [kB].
    """

    name: str
    count: int
    seconds: float
    programs: int
    megabytes: float
    python: float


def leaks(growth: Growth) -> bool:
    """Whether a run left more behind than is allowed for its number of calls; a batch is one call."""
    calls = 1 if growth.name.startswith("map_batch") else growth.count
    (python, python_each), (resident, resident_each) = _PYTHON, _RESIDENT
    return growth.python > python + python_each * calls or growth.megabytes > resident + resident_each * calls


def _count(event: str, *_: Any, **__: Any) -> None:
    global _compiled
    _compiled += event == _EVENT


def resident() -> float:
    """Resident memory of this process [MB]."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def grown(name: str, call: Callable[[int], Any], count: int, warm_up: int) -> Growth:
    """Calls `call(k)` for k up to `count`, and measures after `warm_up` further calls before."""
    for k in range(warm_up):
        jax.block_until_ready(call(k))
    gc.collect()
    tracemalloc.start()
    programs, memory, python, start = _compiled, resident(), tracemalloc.get_traced_memory()[0], time.perf_counter()
    for k in tqdm(range(count), desc=name):
        jax.block_until_ready(call(k))
    seconds = time.perf_counter() - start
    gc.collect()
    kilobytes = (tracemalloc.get_traced_memory()[0] - python) / 1e3
    tracemalloc.stop()
    return Growth(name, count, seconds, _compiled - programs, resident() - memory, kilobytes)


def single_calls(count: int) -> Iterator[Growth]:
    """Single eager calls, the configuration new each time; edits of the robot; and loads of its file."""
    arm, rng = robots.panda_like(), np.random.default_rng(0)
    text, q = rb.to_urdf(arm), jnp.asarray(rng.normal(size=(256, arm.nv)), jnp.float32)
    rows = [q[k] for k in range(256)]
    functions: dict[str, Callable[[int], Any]] = {
        "fk": lambda k: rb.fk(arm, rows[k % 256]),
        "jacobian": lambda k: rb.jacobian(arm, rows[k % 256], "tool"),
        "rnea": lambda k: rb.rnea(arm, rows[k % 256], rows[k % 255], rows[k % 254]),
        "aba": lambda k: rb.aba(arm, rows[k % 256], rows[k % 255], rows[k % 254]),
    }
    for name, call in functions.items():
        yield grown(name, call, count, 300)
    slower: dict[str, Callable[[int], Any]] = {
        "another payload": lambda k: rb.rnea(rb.attach_payload(arm, "tool", 1.0 + k / count), *rows[:3]),
        "loads of one file": lambda k: rb.fk(rb.load_urdf_string(text), rows[k % 256]),
    }
    for name, call in slower.items():
        yield grown(name, call, count // 10, 30)


def large_batches(size: int) -> Iterator[Growth]:
    """Every function of a state through `map_batch`, at `size` random states of a tree with every type of joint.

    Raises:
        FloatingPointError: A result is not finite.
    """
    from tests.test_public_functions import ON_STATES, TREE, State

    model = jax.tree.map(lambda x: x.astype(jnp.float32), TREE)
    shapes = (model.nv,), (model.nv,), (model.nb, 6), (3,)
    seeds = np.arange(size, dtype=np.uint32)

    def finite(f: Callable[[Any, State], Any], m: rb.Model, seed: jax.Array) -> jax.Array:
        first, *keys = jax.random.split(jax.random.key(seed), 5)
        rest = [jax.random.normal(key, shape, jnp.float32) for key, shape in zip(keys, shapes, strict=True)]
        result = f(m, State(rb.random_configuration(m, first), *rest))
        return jnp.array([jnp.isfinite(x).all() for x in jax.tree.leaves(result)]).all()

    for name, f in ON_STATES.items():
        at_seed = functools.partial(finite, f)

        def call(_: int, name: str = name, at_seed: Callable[..., Any] = at_seed) -> None:
            good = rb.map_batch(at_seed, model, seeds, in_axes=(None, 0))
            if not good.all():
                raise FloatingPointError(f"{name} is not finite at seed {int(np.argmin(good))}")

        rb.map_batch(at_seed, model, seeds[:1], in_axes=(None, 0))  # the program is the same for all sizes
        yield grown(f"map_batch {name}", call, 1, 0)._replace(count=size)
        jax.clear_caches()


def threads(count: int) -> Iterator[Growth]:
    """Eight threads that call different functions of different robots at the same time."""
    models = [robots.pendulum(), robots.double_pendulum(), robots.two_link_arm(), robots.panda_like()]
    points = [jnp.full(m.nv, 0.1, jnp.float32) for m in models]

    def work(k: int) -> float:
        i = k % len(models)
        f = (rb.gravity_forces, rb.crba)[k // len(models) % 2]
        return float(jnp.sum(f(models[i], points[i])))

    expected = [work(k) for k in range(8)]

    def all_at_once(_: int) -> None:
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(80))) == expected * 10

    yield grown("80 calls by 8 threads", all_at_once, count // 100, 2)


def in_process(method: str, patience: float = 120.0) -> str:
    """The result of a call in a process that is started by `method`, after calls in this one, or the error.

    Args:
        method: ``"spawn"`` or ``"fork"``.
        patience: How long to wait [s].
    """
    context: Any = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    try:
        return queue.get(timeout=patience)
    except Exception as error:
        return f"no result: {type(error).__name__}"
    finally:
        child.kill()
        child.join()


def _gravity() -> float:
    return float(rb.gravity_forces(robots.pendulum(), jnp.array([0.5]))[0])


def _child(queue: Any) -> None:
    try:
        queue.put(f"{_gravity():.4f}")
    except rb.RbydynError as error:
        queue.put(f"{type(error).__name__}: {error}")


def as_documented(method: str, got: str) -> bool:
    """Whether a process answered as `docs/performance.md` says: by spawn with the number, by fork with the error."""
    return got == f"{_gravity():.4f}" if method == "spawn" else got.startswith("RbydynError: this process was forked")


def add_command(commands: argparse._SubParsersAction) -> None:
    """Adds `soak` to the command line."""
    soak = commands.add_parser("soak", help="long runs: memory and compiled programs must not grow")
    soak.add_argument("--calls", type=int, default=10_000)
    soak.add_argument("--batch", type=int, default=1_000_000)


def run(arguments: argparse.Namespace) -> None:
    """Runs everything and prints a table.

    The exit status is 1 if anything was compiled again, memory grew by more than the bound for the calls, or a process
    did not answer as documented.
    """
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    jax.monitoring.register_event_duration_secs_listener(_count)
    failed = False
    print("| run | count | s | programs compiled | resident MB | Python kB |\n|---|---|---|---|---|---|")
    calls, batch = arguments.calls, arguments.batch
    for x in chain(single_calls(calls), threads(calls), large_batches(batch)):
        row = (x.name, x.count, f"{x.seconds:.1f}", x.programs, f"{x.megabytes:+.1f}", f"{x.python:+.1f}")
        print("|", " | ".join(map(str, row)), "|", flush=True)
        if x.programs > 0 or leaks(x):
            print(f"FAILED: {x.name} compiled again, or left too much behind")
            failed = True
    for method in ("spawn", "fork"):
        got = in_process(method)
        print(f"process by {method}: {got}; here {_gravity():.4f}")
        failed |= not as_documented(method, got)
    raise SystemExit(failed)
