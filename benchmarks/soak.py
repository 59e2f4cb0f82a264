"""Long runs: many calls, edits, loads, threads and processes, and whether memory or compiled programs grow."""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import resource
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

import rbydyn_jax as rb
from rbydyn_jax import robots

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


def single_calls(count: int) -> list[Growth]:
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
    found = [grown(name, call, count, 300) for name, call in functions.items()]
    slower: dict[str, Callable[[int], Any]] = {
        "another payload": lambda k: rb.rnea(rb.attach_payload(arm, "tool", 1.0 + k / count), *rows[:3]),
        "loads of one file": lambda k: rb.fk(rb.load_urdf_string(text), rows[k % 256]),
    }
    return [*found, *(grown(name, call, count // 10, 30) for name, call in slower.items())]


def large_batches(size: int) -> list[Growth]:
    """`map_batch` over `size` configurations, twice: the first time is the warm-up."""
    arm = robots.panda_like()
    q = np.random.default_rng(0).normal(size=(size, arm.nv)).astype(np.float32)
    functions: dict[str, Callable[[Any, Any], Any]] = {
        "fk": lambda m, x: rb.link_pose(m, x, "tool"),
        "crba": rb.crba,
        "rnea": lambda m, x: rb.rnea(m, x, x, x),
        "aba": lambda m, x: rb.aba(m, x, x, x),
    }
    found = []
    for name, f in functions.items():
        one = grown(name, lambda k, f=f: rb.map_batch(f, arm, q, in_axes=(None, 0)), 1, 1)
        found.append(one._replace(name=f"map_batch {name}", count=size))
    return found


def threads(count: int) -> Growth:
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

    return grown("80 calls by 8 threads", all_at_once, count // 100, 2)


def in_process(method: str) -> str:
    """The result of a call in a process that is started by `method`, after calls in this one."""
    context: Any = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    try:
        return f"gives {queue.get(timeout=120):.4f}, expected {_gravity():.4f}"
    except Exception as error:
        return f"no result: {type(error).__name__}"
    finally:
        child.kill()
        child.join()


def _gravity() -> float:
    return float(rb.gravity_forces(robots.pendulum(), jnp.array([0.5]))[0])


def _child(queue: Any) -> None:
    queue.put(_gravity())


def add_command(commands: argparse._SubParsersAction) -> None:
    """Adds `soak` to the command line."""
    soak = commands.add_parser("soak", help="long runs: memory and compiled programs must not grow")
    soak.add_argument("--calls", type=int, default=10_000)
    soak.add_argument("--batch", type=int, default=1_000_000)


def run(arguments: argparse.Namespace) -> None:
    """Runs everything and prints a table."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    jax.monitoring.register_event_duration_secs_listener(_count)
    found = [*single_calls(arguments.calls), threads(arguments.calls), *large_batches(arguments.batch)]
    print("| run | count | s | programs compiled | resident MB | Python kB |\n|---|---|---|---|---|---|")
    for x in found:
        print(f"| {x.name} | {x.count} | {x.seconds:.1f} | {x.programs} | {x.megabytes:+.1f} | {x.python:+.1f} |")
    for method in ("spawn", "fork"):
        print(f"process by {method}: {in_process(method)}")
