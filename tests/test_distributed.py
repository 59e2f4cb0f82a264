"""map_batch: every size, chunk, place and number of devices gives what numpy says, in bounded memory."""

from __future__ import annotations

import functools
import os
import socket
import subprocess
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh

import rbydyn_jax as rb
from rbydyn_jax import (
    ArgumentError,
    DtypeError,
    MissingExtraError,
    ShapeError,
    _chunks,
    map_batch,
    robots,
)
from tests.helpers import ROOT, assert_close, compiled_text, untyped

pytestmark = pytest.mark.devices
MASS, LENGTH, G = 2.0, 0.5, 9.81
CHUNK = 512  # the least there is
SIZES = (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5)
ROBOT_AND_BATCH = (None, 0)


@pytest.fixture(scope="module")
def pendulum():
    return robots.pendulum(mass=MASS, length=LENGTH)


@pytest.fixture
def angles(dtype):
    return np.random.default_rng(0).uniform(-3.0, 3.0, (SIZES[-1], 1)).astype(dtype)


def torque(q: np.ndarray) -> np.ndarray:
    return MASS * G * LENGTH * np.sin(q)


def one_device() -> Mesh:
    """A mesh of one device: JAX arrays are then cut and put together on it rather than in memory."""
    return Mesh(jax.devices()[:1], ("batch",))


@pytest.mark.float32
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("where", ["numpy", "jax", "device"])
def test_any_size_gives_what_numpy_says_where_the_arguments_are(pendulum, angles, size, where):
    q = angles[:size] if where == "numpy" else jnp.asarray(angles[:size])
    mesh = one_device() if where == "device" else None
    tau = map_batch(rb.gravity_forces, pendulum, q, in_axes=ROBOT_AND_BATCH, chunk=CHUNK, mesh=mesh)
    assert isinstance(tau, np.ndarray if where == "numpy" else jax.Array)
    assert tau.dtype == angles.dtype
    assert_close(tau, torque(angles[:size]))


@pytest.mark.slow
@pytest.mark.parametrize("arm", [robots.two_link_arm(), robots.panda_like()], ids=lambda arm: arm.name)
def test_neither_chunk_nor_place_nor_the_rest_of_the_batch_changes_a_bit(angles, arm):
    q = angles + np.arange(arm.nq, dtype=angles.dtype)
    whole = map_batch(rb.crba, arm, q, in_axes=ROBOT_AND_BATCH)
    for chunk in (1, 300, 512, 1000):
        for mesh in (None, one_device()):
            for some in (slice(0, SIZES[-1]), slice(3, 5), slice(60, 700)):
                M = map_batch(rb.crba, arm, q[some], in_axes=ROBOT_AND_BATCH, chunk=chunk, mesh=mesh)
                assert np.array_equal(M, whole[some]), (chunk, mesh, some)
                M = map_batch(rb.crba, arm, jnp.asarray(q[some]), in_axes=ROBOT_AND_BATCH, chunk=chunk, mesh=mesh)
                assert np.array_equal(M, whole[some]), (chunk, mesh, some)


def test_a_chunk_is_written_to_its_place_as_it_is():
    """XLA would transpose it there, one number at a time with strides: four times as long for poses."""
    arm = robots.panda_like()
    q = jax.ShapeDtypeStruct((4 * CHUNK, arm.nq), jnp.result_type(float))
    program = jax.jit(lambda model, q: map_batch(rb.fk, model, q, in_axes=ROBOT_AND_BATCH, chunk=CHUNK))
    text = compiled_text(program.lower(arm, q))
    writers = [body for body in text.split("\n\n") if "ROOT" in body and " dynamic-update-slice(" in body]
    of_chunks = [body for body in writers if f"[4,{CHUNK}," in body.splitlines()[0]]  # others write tiles into a chunk
    assert of_chunks and not any(" transpose(" in body or " copy(" in body for body in of_chunks)


def test_one_program_for_every_size_and_every_robot_of_a_kind(angles):
    traced = []

    def gravity(model, q):
        traced.append(q.shape)
        return rb.gravity_forces(model, q)

    for mass in (1.0, 3.0):
        model = robots.pendulum(mass=mass, length=LENGTH)
        for size in SIZES[1:]:
            tau = map_batch(gravity, model, angles[:size], in_axes=ROBOT_AND_BATCH, chunk=CHUNK)
            same = map_batch(functools.partial(gravity, model), angles[:size], chunk=CHUNK)
            assert_close(tau, mass / MASS * torque(angles[:size]))
            assert np.array_equal(same, tau)
    assert traced == [(1,), (1,)]  # by argument, and by partial
    arrays = [jnp.asarray(angles[:size]) for size in SIZES[1:]]
    with rb.no_recompile():  # nor anything else besides
        for q in arrays:
            map_batch(gravity, model, q, in_axes=ROBOT_AND_BATCH, chunk=64)


class Reading(NamedTuple):
    angle: np.ndarray
    speed: np.ndarray


@pytest.mark.slow
def test_arguments_and_results_are_pytrees(angles, dtype):
    speeds = angles[::-1].copy()
    arms = rb.stack_models([robots.pendulum(mass=MASS, length=1.0 + 0.01 * k) for k in range(SIZES[-1])])

    def state(model, reading, link, gain):
        terms = rb.inverse_dynamics_terms(model, reading.angle, reading.speed, reading.speed)
        height = rb.link_pose(model, reading.angle, link["name"])[2, 3]
        return {"terms": terms, "pair": (height, gain * reading.speed), "same": 1.0}

    arguments = (arms, Reading(angles, speeds), {"name": "bob"}, 2.0)
    got = map_batch(state, *arguments, in_axes=(0, untyped(Reading)(0, 0), None, None), chunk=CHUNK)
    lengths = 1.0 + 0.01 * np.arange(SIZES[-1])[:, None]
    assert_close(got["terms"].gravity, MASS * G * lengths * np.sin(angles))
    assert_close(got["terms"].inertial, MASS * lengths**2 * speeds)
    assert_close(got["pair"][1], 2.0 * speeds)
    assert got["pair"][0].shape == got["same"].shape == (SIZES[-1],)
    assert isinstance(got["terms"], rb.InverseDynamicsTerms)


def test_random_keys_and_integers_are_batches_too(pendulum):
    keys = jax.random.split(jax.random.key(0), 100)
    q = map_batch(rb.random_configuration, pendulum, keys, in_axes=ROBOT_AND_BATCH, chunk=CHUNK)
    assert np.array_equal(q, jax.vmap(rb.random_configuration, (None, 0))(pendulum, keys))
    halves = map_batch(lambda n: n // 2, np.arange(100), chunk=CHUNK)
    assert np.array_equal(halves, np.arange(100) // 2)


@pytest.mark.parametrize("place", [np.asarray, jnp.asarray])
@pytest.mark.parametrize("size", [0, 3, 600])
def test_random_keys_are_results_too(place, size):
    def made(seed):
        return {"key": jax.random.key(seed, impl="rbg"), "double": 2 * seed}

    seeds = place(np.arange(size))
    found, want = map_batch(made, seeds, chunk=CHUNK), jax.vmap(made)(jnp.asarray(seeds))
    assert found["key"].dtype == want["key"].dtype
    assert np.array_equal(jax.random.key_data(found["key"]), jax.random.key_data(want["key"]))
    assert np.array_equal(found["double"], want["double"])


@pytest.mark.parametrize("dtype", [np.longdouble, ">f8", [("a", float)], "V4"])
def test_arrays_that_jax_cannot_read(dtype):
    foreign, rows = np.zeros(600, dtype), np.zeros(600)
    with pytest.raises(DtypeError, match=r"args\[0\] must be an array of numbers, got an array of"):
        map_batch(lambda x: x, foreign)
    with pytest.raises(DtypeError, match=r"args\[0\]\['x'\] must be an array that JAX can read, got an array of"):
        map_batch(lambda shared, x: x, {"x": foreign}, rows, in_axes=ROBOT_AND_BATCH)
    with pytest.raises(DtypeError, match=r"f must return arrays, got numbers of dtype .* \(result\)"):
        map_batch(lambda x: foreign, rows)


def test_memory_maps_go_in_and_come_out(pendulum, angles, tmp_path):
    q = np.memmap(tmp_path / "q", angles.dtype, "w+", shape=angles.shape)
    q[:] = angles
    tau = np.memmap(tmp_path / "tau", angles.dtype, "w+", shape=angles.shape)
    got = map_batch(rb.gravity_forces, pendulum, q, in_axes=ROBOT_AND_BATCH, chunk=CHUNK, out=tau)
    assert got is tau
    assert_close(np.fromfile(tmp_path / "tau", angles.dtype).reshape(angles.shape), torque(angles))
    empty = np.zeros((0, 1), angles.dtype)
    assert map_batch(rb.gravity_forces, pendulum, q[:0], in_axes=ROBOT_AND_BATCH, out=empty) is empty


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_inside_jit_vmap_and_grad_it_is_a_loop_in_the_program(pendulum, angles, size):
    q = jnp.asarray(angles[:size])

    def gravity(model, q):
        return map_batch(rb.gravity_forces, model, q, in_axes=ROBOT_AND_BATCH, chunk=CHUNK)

    assert_close(jax.jit(gravity)(pendulum, q), torque(angles[:size]))
    if size in (1, SIZES[-1]):
        slope = jax.grad(lambda q: gravity(pendulum, q).sum())(q)
        assert_close(slope, MASS * G * LENGTH * np.cos(angles[:size]), kind="solve")
        by_gravity = jax.grad(lambda model: gravity(model, q).sum())(pendulum).gravity
        assert_close(by_gravity[2], -MASS * LENGTH * np.sin(angles[:size]).sum(), kind="solve")
        two = jax.vmap(gravity, (None, 0))(pendulum, jnp.stack([q, 2.0 * q]))
        assert_close(two, torque(np.stack([angles[:size], 2.0 * angles[:size]])))


@pytest.mark.slow
def test_what_f_closes_over_can_be_differentiated(pendulum, angles):
    for mesh in (None, one_device()):

        def total(scale, mesh=mesh):
            return map_batch(lambda q: rb.gravity_forces(pendulum, scale * q), angles, chunk=CHUNK, mesh=mesh).sum()

        want = (angles * MASS * G * LENGTH * np.cos(2.0 * angles)).sum()
        assert_close(jax.grad(total)(2.0), want, kind="solve")
        assert_close(jax.jit(jax.grad(total))(2.0), want, kind="solve")


def test_a_gradient_by_a_robot_with_empty_parameters():
    model, q = robots.pendulum(), np.linspace(0.0, 1.0, 3 * CHUNK)[:, None]
    assert any(x.size == 0 for x in jax.tree.leaves(model))
    slope = jax.grad(lambda model, q: rb.potential_energy(model, q))
    got = jax.jit(lambda model, q: map_batch(slope, model, q, in_axes=ROBOT_AND_BATCH, chunk=CHUNK))(model, q)
    jax.tree.map(assert_close, got, jax.vmap(slope, (None, 0))(model, q))


def test_a_gradient_keeps_the_arguments_and_not_what_came_between(dtype):
    def long(x):
        for _ in range(100):
            x = jnp.sin(x)
        return x

    x = jnp.zeros((6400, 1), dtype)
    gradient = jax.jit(jax.grad(lambda x: map_batch(long, x, chunk=CHUNK).sum()))
    memory = gradient.lower(x).compile().memory_analysis()
    assert memory is not None and memory.temp_size_in_bytes < 10 * x.nbytes


def test_results_on_devices_are_written_into_one_buffer():
    results, out = jnp.zeros((64, 3)), jnp.zeros((1000, 3))
    memory = _chunks._put.lower(None, 1000, 64, results, out).compile().memory_analysis()
    assert memory is not None and memory.alias_size_in_bytes == out.nbytes


def test_progress_is_told_after_each_chunk(pendulum, angles):
    told = []
    for q in (angles, jnp.asarray(angles)):
        for mesh in (None, one_device()):
            map_batch(
                rb.gravity_forces,
                pendulum,
                q,
                in_axes=ROBOT_AND_BATCH,
                chunk=CHUNK,
                mesh=mesh,
                progress=lambda done, size: told.append((done, size)),
            )
            assert told == [(min(k * CHUNK, SIZES[-1]), SIZES[-1]) for k in (1, 2, 3, 4)]
            told.clear()


def test_progress_true_shows_a_bar(pendulum, angles, capsys):
    pytest.importorskip("tqdm")
    map_batch(rb.gravity_forces, pendulum, angles, in_axes=ROBOT_AND_BATCH, progress=True)
    assert f"{SIZES[-1]}/{SIZES[-1]}" in capsys.readouterr().err


def test_a_missing_tqdm_is_named_with_its_extra(pendulum, angles, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(MissingExtraError, match=r"rbydyn_jax\[progress\]"):
        map_batch(rb.gravity_forces, pendulum, angles, in_axes=ROBOT_AND_BATCH, progress=True)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"args": (), "in_axes": 0}, ShapeError, "needs an argument with a batch"),
        ({"in_axes": None}, ShapeError, "needs an argument with a batch"),
        ({"in_axes": 0}, ShapeError, r"args\[0\]\.geometry has .*None in in_axes"),
        ({"in_axes": 1}, ArgumentError, "in_axes must consist of 0 .* got 1"),
        ({"in_axes": (None,)}, ArgumentError, "a tuple like the 2 arguments"),
        ({"args": (np.zeros((3, 1)), {"a": np.zeros(4)}), "in_axes": 0}, ShapeError, r"args\[1\]\['a'\] has 4"),
        ({"args": (3.0, np.zeros(3)), "in_axes": 0}, DtypeError, r"args\[0\] must be an array of numbers, got float"),
        (
            {"args": (np.array("a"),), "in_axes": 0},
            DtypeError,
            r"args\[0\] must be an array of numbers, got an array of <U1",
        ),
        ({"args": (jnp.zeros(()),), "in_axes": 0}, ShapeError, r"args\[0\] must have a leading axis"),
        ({"args": (np.zeros(3), {1}), "in_axes": (0, None)}, DtypeError, r"args\[1\] must be an array or hashable"),
        ({"f": 3}, DtypeError, "f must be a function"),
        ({"f": lambda m, q: {"x": [q, "text"]}}, DtypeError, r"f must return arrays, got str \(result\['x'\]\[1\]\)"),
        ({"chunk": 0}, ArgumentError, "chunk must be at least 1, got 0"),
        ({"chunk": 64.0}, DtypeError, "chunk must be an integer, got 64.0"),
        ({"mesh": 8}, DtypeError, "mesh must be a jax.sharding.Mesh, got int"),
        ({"progress": "yes"}, DtypeError, "progress must be a function"),
        ({"out": [np.zeros((3, 1))]}, ShapeError, "out must be a pytree"),
        ({"out": np.zeros((4, 1))}, ShapeError, r"out must have shape \(3, 1\), got \(4, 1\)"),
        ({"out": np.zeros((3, 1), int)}, DtypeError, "out must be a writable NumPy array of float"),
        ({"out": jnp.zeros((3, 1))}, DtypeError, "out must be a writable NumPy array of float"),
    ],
)
def test_wrong_arguments_are_named(pendulum, dtype, change, error, message):
    given = {"f": rb.gravity_forces, "args": (pendulum, np.zeros((3, 1), dtype)), "in_axes": ROBOT_AND_BATCH, **change}
    with pytest.raises(error, match=message):
        map_batch(given.pop("f"), *given.pop("args"), **given)


def test_out_and_progress_where_they_cannot_be_are_refused(pendulum, angles):
    gravity = functools.partial(map_batch, rb.gravity_forces, pendulum, in_axes=ROBOT_AND_BATCH)
    with pytest.raises(ArgumentError, match="out needs NumPy arrays"):
        gravity(jnp.asarray(angles), out=np.zeros_like(angles))
    with pytest.raises(ArgumentError, match="must not share memory"):
        gravity(angles, out=angles[::-1])
    for extra in ({"progress": True}, {"progress": print}):
        with pytest.raises(ArgumentError, match="outside of jit"):
            jax.jit(functools.partial(gravity, **extra))(angles)


@pytest.mark.slow
def test_memory_is_bounded_by_the_chunk():
    """64 x 64 numbers for each row are 16 KiB; of the batch at once, 512 MiB."""
    told = run_alone(
        """
import re
from pathlib import Path
import jax, jax.numpy as jnp, numpy as np
from rbydyn_jax import map_batch

f = lambda x: jax.lax.optimization_barrier(x[:, None] * x).sum(axis=0)
x = np.random.default_rng(0).random((32768, 64), np.float32)
# Not ru_maxrss, which starts with the peak of the process that started this one.
peak = lambda: int(re.search("VmHWM: *(.*) kB", Path("/proc/self/status").read_text().replace("\t", " "))[1]) / 1024
map_batch(f, x[:1])
start = peak()
y = map_batch(f, x)
z = map_batch(f, jnp.asarray(x))
chunked = peak() - start
np.testing.assert_allclose(y, x.sum(axis=1, keepdims=True) * x, rtol=1e-5)
assert np.array_equal(y, z)
jax.block_until_ready(jax.vmap(f)(x))
print(chunked, peak() - start)
"""
    )
    chunked, whole = map(float, told.split())
    assert chunked < 150.0 < whole  # [MiB]


EIGHT_DEVICES = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import rbydyn_jax as rb
from rbydyn_jax import distributed, map_batch, robots
from rbydyn_jax._batched import split_arguments

assert len(jax.devices()) == 8
line = Mesh(jax.devices(), ("batch",))
grid = Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))
explicit = jax.make_mesh((8,), ("batch",))
axes = (None, 0)
for arm, meshes in ((robots.panda_like(), (line,)), (robots.two_link_arm(), (grid, explicit))):
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (4100, arm.nq)).astype(np.float32)
    whole = map_batch(rb.crba, arm, q, in_axes=axes)
    for size in (1, 9, 300):  # of plain vmap some would differ: what whole vectors leave over is computed one by one
        assert np.array_equal(map_batch(rb.crba, arm, q[:size], in_axes=axes, chunk=9), whole[:size]), size
    for mesh in meshes:
        for size in (0, 7, 2056, 4100):
            told = []
            report = lambda done, size: told.append(done)
            M = map_batch(rb.crba, arm, q[:size], in_axes=axes, chunk=512, mesh=mesh, progress=report)
            assert type(M) is np.ndarray and np.array_equal(M, whole[:size]), size
            assert told == [min(k, size) for k in range(4096, size + 4096, 4096)], told
        for size in (7, 2056, 4100):
            M = map_batch(rb.crba, arm, jnp.asarray(q[:size]), in_axes=axes, chunk=512, mesh=mesh)
            assert np.array_equal(M, whole[:size]), size
            assert size % 8 or [x.data.shape[0] for x in M.addressable_shards] == 8 * [size // 8]

split = NamedSharding(line, P("batch"))
M = map_batch(rb.crba, arm, jax.device_put(q[:2056], split), in_axes=axes, chunk=512)
assert M.sharding == split and np.array_equal(M, whole[:2056])

slope = jax.grad(lambda q: map_batch(rb.potential_energy, arm, q, in_axes=axes, chunk=512, mesh=explicit).sum())(q)
np.testing.assert_allclose(slope, jax.vmap(rb.gravity_forces, axes)(arm, q), atol=1e-3)

function, shared, batch = split_arguments(rb.crba, (arm, q[:2048]), axes)
rows = jax.device_put(batch, split)
for lowered in (
    distributed._program.lower(function, line, shared, rows),
    distributed._in_one_program.lower(function, line, 512, shared, rows),
):
    text = lowered.compile().as_text()
    assert "num_partitions=8" in text and "rbydyn_boundary" in text
    assert not any(x in text for x in ("all-gather", "all-to-all", "all-reduce", "collective-permute"))

x = jax.device_put(q[:2048], split)  # kernels, and a loop over parts, of what is split would gather it
assert "all-gather" not in jax.jit(jax.vmap(rb.rnea, (None, 0, 0, 0))).lower(arm, x, x, x).compile().as_text()
print("passed")
"""


@pytest.mark.slow
def test_eight_devices_split_the_batch_and_send_nothing():
    flags = "--xla_force_host_platform_device_count=8"
    assert run_alone(EIGHT_DEVICES, XLA_FLAGS=flags) == "passed\n"


TWO_PROCESSES = """
import os
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import rbydyn_jax as rb
from rbydyn_jax import ArgumentError, map_batch, robots

process = int(os.environ["TEST_PROCESS"])
jax.config.update("jax_num_cpu_devices", 2)
address = "127.0.0.1:" + os.environ["TEST_PORT"]
jax.distributed.initialize(address, 2, process, initialization_timeout=60)
assert (jax.device_count(), jax.local_device_count()) == (4, 2)
mesh = Mesh(jax.devices(), ("batch",))
model = robots.pendulum(mass=2.0, length=0.5)
q = np.linspace(-3.0, 3.0, 1200, dtype=np.float32)[:, None]
want = 9.81 * np.sin(q)

mine = slice(0, 450) if process == 0 else slice(450, 1200)  # NumPy arrays: each process has its own rows
tau = map_batch(rb.gravity_forces, model, q[mine], in_axes=(None, 0), chunk=512, mesh=mesh)
assert type(tau) is np.ndarray
np.testing.assert_allclose(tau, want[mine], atol=1e-5)

split = NamedSharding(mesh, P("batch"))  # JAX arrays: one array of all processes
whole = jax.make_array_from_process_local_data(split, q[600 * process : 600 * process + 600])
gravity = lambda q: map_batch(rb.gravity_forces, model, q, in_axes=(None, 0), chunk=512, mesh=mesh)
for tau in (gravity(whole), jax.jit(gravity)(whole)):
    assert tau.shape == (1200, 1) and tau.sharding.is_equivalent_to(split, 2)
    assert sum(x.data.shape[0] for x in tau.addressable_shards) == 600
    for x in tau.addressable_shards:
        np.testing.assert_allclose(x.data, want[x.index], atol=1e-5)

other = Mesh([d for d in jax.devices() if d.process_index != process], ("batch",))
try:
    map_batch(rb.gravity_forces, model, q, in_axes=(None, 0), mesh=other)
    raise SystemExit("no error")
except ArgumentError as error:
    assert "mesh must have devices of this process" in str(error)
print("passed")
"""


@pytest.mark.slow
def test_two_processes_work_on_one_batch():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    processes = [start(TWO_PROCESSES, TEST_PROCESS=str(k), TEST_PORT=port) for k in range(2)]
    try:
        told = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (out, error) in zip(processes, told, strict=True):
        assert process.returncode == 0, error[-3000:]
        assert out.splitlines()[-1] == "passed"


def start(script: str, **environment: str) -> subprocess.Popen:
    """A process of its own, which compiles as users do: with all optimizations."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), **environment}
    return subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def run_alone(script: str, **environment: str) -> str:
    process = start(script, **environment)
    try:
        out, error = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 0, error[-3000:]
    return out
