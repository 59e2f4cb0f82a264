"""The form for GPUs, without one: arithmetic by numpy, kernels by an interpreter and the assembler of CUDA."""

from __future__ import annotations

import contextlib
import re
import subprocess
from importlib.metadata import files
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import collision, robots
from rbydyn_jax.collision.pair_table import pair_distance
from rbydyn_jax.model.edit import with_traversal
from rbydyn_jax.planning import ControlProblem, JointEffort, JointVelocity
from rbydyn_jax.sweeps import plan
from rbydyn_jax.xla import gpu_kernel as gpu_kernels
from rbydyn_jax.xla.gpu_kernel import gpu_kernel, launches
from rbydyn_jax.xla.gpu_parts import Limits, register_parts
from rbydyn_jax.xla.ptx import UnsupportedError
from rbydyn_jax.xla.scalar_program import scalar_program
from rbydyn_jax.xla.scalars import NotScalarError, Scalar
from tests.algorithms.cases import by_rows, pin_robot, robot, states
from tests.collision.polytopes import coal_distances, coal_pairs, geometries, placed, poses
from tests.helpers import X64, assert_close, oracle

from .ptx import interpret


@pytest.fixture
def gpu(monkeypatch):
    """What is traced may be lowered for a GPU, as in a process that has one."""
    monkeypatch.setattr(plan, "_platforms", lambda: {"cpu", "gpu"})


def program_of(name, f, *args):
    """`f(model, *args)` of one lane as the program of a kernel, with the model's arrays, and the angles' sines."""
    found = []

    def keep(inner, otherwise):
        def call(*given):
            leaves, tree = jax.tree.flatten(given)
            flat = lambda *xs: jax.tree.leaves(inner(*jax.tree.unflatten(tree, xs)))  # noqa: E731
            found.append(jax.make_jaxpr(flat)(*leaves))
            return inner(*given)

        return call

    model = with_traversal(robot(name), "unrolled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "_platforms", lambda: {"cpu", "gpu"})
        patch.setattr(plan, "gpu_kernel", keep)
        patch.setattr(jax.lax, "platform_dependent", lambda *xs, cuda, **_: cuda(*xs))
        jax.make_jaxpr(lambda model, *xs: f.__wrapped__(model, *xs))(model, *(x[0] for x in args))
    (program,) = found
    return program, model


UNLIMITED = Limits(10**9, 10**5)


def in_kernels(name, f, *args, within=None, limits=UNLIMITED):
    """`f(model, *args)` for all rows of the arguments, by the interpreted kernels that keep to the limits.

    `within` are the arguments behind q in the order in which they are given to the kernel.
    """
    program, model = program_of(name, f, *args)
    count = len(jax.tree.leaves(model))
    lanes = len(args[0])
    q = args[0]
    angles = plan.Coordinates(model)
    spread = np.stack([np.asarray(angles.spread_q(x)) for x in q])
    behind = args[1:] if within is None else within
    given = [np.asarray(x) for x in (q, np.sin(spread), np.cos(spread), *behind)]
    batched = [False] * count + [True] * (len(program.in_avals) - count)
    arrays = [np.asarray(x).reshape(-1) for x in jax.tree.leaves(model)]
    arrays += [np.ascontiguousarray(x.reshape(lanes, -1).T) for x in given]
    assert [x.shape[0] for x in arrays] == [x.size for x in program.in_avals]
    found = launches(program, batched, lanes, limits)
    for launch in found:
        results = interpret(
            launch.text, [arrays[k] for k in launch.operands], [(x.size, x.dtype) for x in launch.results], lanes
        )
        arrays += results
    return [x.T.reshape(lanes, *y.shape) for x, y in zip(results, program.out_avals, strict=True)], len(found)


@pytest.mark.ci
@pytest.mark.parametrize("name", [pytest.param("every_type", marks=pytest.mark.slow), "mimic"])
def test_kernels_compute_what_pinocchio_does(name):
    s, twin = jax.tree.map(lambda x: x[:5], states(name)), pin_robot(name)
    (tau,), count = in_kernels(name, rb.rnea, s.q, s.v, s.a)
    assert count == 1
    assert_close(tau, by_rows(twin.rnea, s.q, s.v, s.a))
    if name == "every_type":
        (a,), _ = in_kernels(name, rb.aba, s.q, s.v, s.tau, within=(s.tau, s.v))
        assert_close(a, by_rows(twin.aba, s.q, s.v, s.tau), kind="solve")


@pytest.mark.slow
def test_a_program_cut_into_kernels_gives_the_same():
    s = jax.tree.map(lambda x: x[:3], states("hands"))
    (M,), one = in_kernels("hands", rb.crba, s.q)
    (cut,), several = in_kernels("hands", rb.crba, s.q, limits=Limits(30, 300))
    assert one == 1
    assert several > 3
    assert_close(M, by_rows(pin_robot("hands").crba, s.q))
    np.testing.assert_array_equal(M, cut)


@pytest.mark.ci
def test_an_algorithm_is_one_kernel_of_a_gpu_and_its_gradient_two_more(gpu):
    model = robots.two_link_arm()
    x = jnp.zeros((640, model.nv), jnp.float32)

    def kernels(f):
        mapped = jax.jit(jax.vmap(f, in_axes=(None, 0, 0, 0)))
        text = mapped.trace(model, x, x, x).lower(lowering_platforms=("cuda",)).as_text()
        assert "stablehlo.while" not in text
        return text.count("__gpu$xla.gpu.ptx")

    assert kernels(rb.rnea) == 1
    assert kernels(lambda model, q, v, a: jax.grad(lambda q: (rb.rnea(model, q, v, a) ** 2).sum())(q)) == 2
    assert kernels(lambda model, q, v, a: rb.fk(model, q)) == 1


def lowered(f, *args):
    """The program for a GPU: how many kernels of this library, and whether there is a loop beside them."""
    text = jax.jit(f).trace(*args).lower(lowering_platforms=("cuda",)).as_text()
    return text.count("__gpu$xla.gpu.ptx"), "stablehlo.while" in text


@pytest.mark.ci
def test_distances_are_kernels(gpu):
    """Of spheres within that of the bodies; of boxes and cylinders others, between two of the bodies."""
    model, x = robots.two_link_arm(), jnp.zeros((640, 2))

    def kernels(obstacle, f=lambda f: f):
        world = collision.World(obstacle)
        return lowered(jax.vmap(f(lambda q: collision.world_distances(model, q, world).min())), x)

    sphere, box = collision.sphere(jnp.ones(3), 0.1), collision.box(jnp.eye(4), jnp.ones(3))
    assert kernels(sphere) == (1, False)
    assert kernels(sphere, jax.grad) == (2, False)
    assert kernels(box) == (2, False)
    assert kernels(box, jax.grad) == (3, False)
    assert kernels(collision.cylinder(jnp.eye(4), length=0.3, radius=0.1)) == (2, False)
    contacts = jax.vmap(lambda q: collision.world_contacts(model, q, collision.World(box)).distance)
    assert lowered(contacts, x)[0] >= 2


@pytest.mark.ci
def test_what_composes_algorithms_is_one_kernel(gpu):
    arm, x = robots.panda_like(), jnp.zeros((640, 7))
    T = jnp.broadcast_to(jnp.eye(4), (640, 4, 4))

    def loss(q, v):
        return rb.kinetic_energy(arm, q, v) + jnp.sum(rb.link_pose(arm, q, "tool")[:3, 3] ** 2)

    assert lowered(jax.vmap(rb.tiled(loss)), x, x) == (1, False)
    assert lowered(jax.vmap(jax.grad(rb.tiled(loss))), x, x) == (1, False)
    assert lowered(jax.vmap(loss), x, x)[0] == 2
    around = jax.vmap(lambda q, v: rb.tiled(lambda v: loss(q, v))(v))  # closes over what is in the batch
    assert lowered(around, x, x) == (1, False)
    assert lowered(lambda q, p: collision.sdf(arm, q, p).distance, x[0], jnp.zeros((100, 3))) == (2, False)
    # One for all steps of the search, and two for what leads to it and what comes after.
    assert lowered(lambda T: rb.planning.solve_ik(arm, "tool", T), T)[0] == 3
    moved = jax.vmap(lambda q, v: rb.constraints.simulate(robots.two_link_arm(), q, v, 0.2, 0.002).qs[-1])
    assert lowered(moved, x[:, :2], x[:, :2])[0] == 1


@pytest.mark.ci
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x * jax.lax.axis_index("rows"),
        lambda x: x - jax.lax.pmean(x, "rows"),
        lambda x: x * jax.lax.psum(jnp.ones(()), "rows"),
        lambda x: jnp.sin(x.astype(jnp.float16)) + jnp.arctan2(x.astype(jnp.bfloat16), 1.0),
        lambda x: x * jax.random.normal(jax.random.key(0), (3,)),
    ],
    ids=["index", "mean", "sum", "half", "random"],
)
def test_what_a_kernel_cannot_be_is_left_as_it_is(gpu, f):
    x = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)))
    mapped = jax.vmap(rb.tiled(f), axis_name="rows")
    jax.jit(mapped).trace(x).lower(lowering_platforms=("cuda",))
    assert_close(jax.jit(mapped)(x), jax.jit(jax.vmap(f, axis_name="rows"))(x))


@pytest.mark.ci
def test_what_calls_python_is_no_part_of_a_kernel():
    def calls(x):
        return x + jax.pure_callback(lambda: np.float32(1.0), jax.ShapeDtypeStruct((), jnp.float32))

    def prints(x):
        jax.debug.print("{}", 1.0)
        return x

    for f in (calls, prints):
        with pytest.raises(NotScalarError, match=r"callback|print"):
            scalar_program(jax.make_jaxpr(f)(1.0))


@pytest.mark.ci
def test_programs_with_stages_are_the_same_in_every_process(gpu):
    """They are kept by their text between processes; variables have other hashes when they are made anew."""
    inner = gpu_kernel(lambda x, y: (x * y, x - y, x + y))

    def text():
        jax.clear_caches()

        def f(x):
            parts = jax.vmap(inner)(jnp.tile(x, 3), jnp.concatenate([2.0 * x, x**2, x**3]))
            return sum(p.sum() for p in parts)

        return jax.jit(jax.vmap(gpu_kernel(f))).trace(jnp.ones((7, 4))).lower(lowering_platforms=("cuda",)).as_text()

    first, *others = (text() for _ in range(4))
    assert others == [first] * 3


@pytest.mark.ci
def test_a_program_of_too_many_operations_is_none_of_a_kernel(gpu, monkeypatch):
    monkeypatch.setattr(gpu_kernels, "GPU_MOST_OPERATIONS", 10)
    mapped = jax.vmap(gpu_kernel(lambda x: x @ x, otherwise=lambda x: x @ x + 0.0))
    assert lowered(mapped, jnp.zeros((5, 3, 3)))[0] == 0


@pytest.mark.ci
@pytest.mark.parametrize("axes", [(0, 0), (1, 0), (0, 1), (-1, -1)])
def test_a_kernel_that_calls_others_computes_what_one_does(axes):
    """Each stage computes on, with what the calls of the stage before gave, in whatever order batches stand."""

    def inner(x, y):
        return {"s": jnp.sin(x) * y, "greater": x > y}

    def outer(f):
        def g(a, b, k):
            first = jax.vmap(f, (0, None))(a, b[0] * k)
            second = jax.vmap(f)(first["s"] + a, jnp.where(first["greater"], b, -b))
            return second["s"].sum() * a, first["greater"] & second["greater"], k

        return g

    rng = np.random.default_rng(0)
    a, b = (jnp.moveaxis(jnp.asarray(rng.normal(size=(5, 3))), 0, axis) for axis in axes)
    k = jnp.asarray(rng.normal(size=4))

    def every(f):
        within = jax.vmap(f, (*axes, None))
        return jax.vmap(within, (None, None, 0))(a, b, k), jax.vmap(jax.grad(lambda *x: f(*x)[0].sum()), (*axes, None))(
            a, b, k[0]
        )

    got, want = jax.jit(lambda: every(gpu_kernel(outer(gpu_kernel(inner)))))(), every(outer(inner))
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert x.shape == y.shape
        assert_close(x.astype(float), y.astype(float))


@pytest.mark.ci
def test_a_kernel_that_calls_others_is_in_stages():
    inner = gpu_kernel(lambda x: x * x + 1.0)

    def f(x):
        y = jax.vmap(inner)(2.0 * x)
        z = jax.vmap(inner)(3.0 * x)
        return jax.vmap(inner)(y + z) - x

    x = jnp.zeros((640, 4))
    assert lowered(jax.vmap(gpu_kernel(f)), x)[0] == 3 + 3  # before, between, and after


@pytest.mark.slow
@pytest.mark.skipif(not X64, reason="accuracy in float64")
@pytest.mark.parametrize("kinds", [("capsule", "box"), ("box", "box"), ("capsule", "cylinder"), ("box", "cylinder")])
def test_kernels_of_distances_compute_what_coal_does(kinds):
    coal, rng, count = oracle("coal"), np.random.default_rng(0), 64
    (a, T_a), (b, T_b) = ((geometries(kind, count, rng), poses(count, rng)) for kind in kinds)
    leaves, tree = jax.tree.flatten((placed(a, T_a), placed(b, T_b)))
    distance = pair_distance(*kinds)
    program = jax.make_jaxpr(lambda *xs: distance(*jax.tree.unflatten(tree, xs)))(*(x[0] for x in leaves))
    arrays = [np.asarray(x).reshape(1, count) for x in leaves]
    for launch in launches(program, [True] * len(arrays), count):
        sizes = [(y.size, y.dtype) for y in launch.results]
        arrays += interpret(launch.text, [arrays[k] for k in launch.operands], sizes, count)
    want = coal_distances(coal, coal_pairs(coal, a, T_a, b, T_b))
    known = want > -1e300  # coal finds no distance of a few cylinders
    assert known.sum() > 0.9 * count
    found, want = arrays[-1][0][known], want[known]
    np.testing.assert_allclose(found[want > 0.0], want[want > 0.0], atol=1e-6)
    round_ = "cylinder" in kinds  # which coal's EPA approximates by polytopes where they overlap
    np.testing.assert_allclose(found, want, atol=1e-4 if round_ else 1e-6)


@pytest.mark.ci
@pytest.mark.parametrize("name", ["sphere", "box"])
def test_distances_in_the_form_for_a_gpu_are_those_of_a_cpu(name, monkeypatch):
    """The programs of the kernels, without the kernels."""
    model, q = robots.two_link_arm(), jax.random.normal(jax.random.key(0), (5, 2))
    pose = jnp.eye(4).at[:3, 3].set(jnp.array([0.4, 0.6, 0.3]))
    world = collision.World(
        {"sphere": collision.sphere(pose[:3, 3], 0.1), "box": collision.box(pose, 0.2 * jnp.ones(3))}[name]
    )

    def values():
        distances = lambda q: collision.world_distances(model, q, world)  # noqa: E731
        return jax.vmap(distances)(q), jax.vmap(jax.jacrev(distances))(q)

    want = values()
    jax.clear_caches()
    with monkeypatch.context() as patch:
        patch.setattr(plan, "_platforms", lambda: {"cpu", "gpu"})
        patch.setattr(jax.lax, "platform_dependent", lambda *xs, cuda, **_: cuda(*xs))
        got = values()
    jax.clear_caches()
    for x, y in zip(got, want, strict=True):
        assert_close(x, y, kind="solve")


def test_what_is_not_written_in_ptx_is_left_to_xla():
    def f(x):
        return jax.lax.erf(x) + jax.lax.while_loop(lambda y: y.sum() < 1.0, lambda y: 2.0 * y, x)

    x = jnp.full((640, 2), 0.3)
    mapped = jax.jit(jax.vmap(gpu_kernel(f)))
    assert "__gpu$xla.gpu.ptx" not in mapped.trace(x).lower(lowering_platforms=("cuda",)).as_text()
    assert_close(mapped(x), jax.vmap(f)(x))


def _smooth(p, x, y):
    return {"a": jnp.exp(p) * x[0] * y, "b": (x @ y, jnp.tanh(x).sum())}


@pytest.mark.ci
def test_derivatives_of_a_kernel_are_those_of_its_function():
    p, x, y = jnp.array(0.3), jnp.array([[0.1, -0.2], [0.4, 0.9], [1.0, 0.5]]), jnp.array([[1.0, 2.0]] * 3)

    def loss(f, p, x, y):
        out = jax.vmap(f, in_axes=(None, 0, 0))(p, x, y)
        return (out["a"] ** 2).sum() + (out["b"][0] * out["b"][1]).sum()

    def all_of(f):
        first = jax.grad(lambda *xs: loss(f, *xs), (0, 1, 2))(p, x, y)
        second = jax.hessian(lambda *xs: loss(f, *xs), (0, 1))(p, x, y)
        within = jax.vmap(lambda p, x: jax.vmap(f, in_axes=(None, None, 0))(p, x, y), in_axes=(0, 0))(x[:, 0], x)
        forward = jax.jvp(lambda x: jax.vmap(f, in_axes=(None, 0, None))(p, x, y[0])["b"][0], (x,), (y,))
        one = f(p, x[0], y[0])
        return first, second, within, forward, one

    got, want = jax.jit(lambda: all_of(gpu_kernel(_smooth)))(), jax.jit(lambda: all_of(_smooth))()
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert_close(a, b)
    empty = jax.vmap(gpu_kernel(_smooth), in_axes=(None, 0, 0))(p, x[:0], y[:0])
    assert empty["a"].shape == (0, 2)


MOVES = {
    "gather": lambda x: x.reshape(2, 3)[jnp.array([1, 0, 1])][:, ::-1] * 2.0,
    "scatter": lambda x: jnp.zeros(8).at[jnp.array([0, 3, 3, 7, 1, 2])].add(x * x),
    "sums": lambda x: jnp.cumsum(x[::-1])[::-1] + x.sum() - x.reshape(3, 2).max(axis=1).sum(),
    "products": lambda x: jnp.einsum("ij,kj->ik", x.reshape(2, 3), jnp.arange(9.0).reshape(3, 3)) @ x[:3],
    "choices": lambda x: jnp.where((x > 0.2) & ~(x < 0.5), x, -(x**3)) + jnp.sign(x) + jnp.pad(x[1:-1], (2, 0)),
    "roots": lambda x: (
        jax.lax.rsqrt(x * x + 1.0) / jnp.sqrt(2.0 + x * x) + jnp.maximum(x, 0.3) - jnp.minimum(abs(x), x)
    ),
    "signs": lambda x: -(-x * x[0]) * -1.0 - (-x) + (-x[::-1] - -x) * (-x[1] + x[2]) + (-x[3] - x[4]),
    "best": lambda x: x[jnp.argmax(jnp.array([1, 3, 2]))] + jnp.argmin(x.reshape(2, 3), axis=1).sum() * x,
    "turns": lambda x: jax.lax.scan(lambda c, y: (0.5 * c + y[0], c * y), x[0], x.reshape(3, 2), reverse=True)[1],
    "cases": lambda x: jax.lax.select_n(jnp.clip((4.0 * x).astype(jnp.int32), -1, 4), x, 2.0 * x, -x),
    "no turns": lambda x: jax.lax.scan(lambda c, y: (c + y, 2.0 * y), x, jnp.zeros((0, 6), x.dtype))[0],
    "booleans": lambda x: jnp.where(jnp.where(x > 0.1, x < 0.5, x > -0.3), x, jnp.float32(x > 0.7)),
    "angles": lambda x: jnp.sin(40.0 * x) + jnp.cos(x) + jnp.arctan2(x, x[::-1]) + jnp.cbrt(x),
    "loop": lambda x: jax.lax.while_loop(
        lambda s: (jnp.abs(s[0]).max() > 0.2) & (s[1] < 9),
        lambda s: (jax.lax.fori_loop(0, 99, lambda k, y: 0.9 * y[::-1] + 0.01 * x * k, s[0]), s[1] + x[0] * 0 + 1.0),
        (x, x[1] * 0),
    )[0],
    "turns of arrays": lambda x: jax.lax.while_loop(
        lambda s: s[0].sum() < 3.0, lambda s: (s[0] + jnp.abs(x[:2]), s[1][::-1], ~s[2]), (x[:2], x[2:4], x[0] > 0)
    )[1],
    "branch": lambda x: jax.lax.cond(x[0] > 0, lambda: x * x, lambda: x[::-1]) * x[1],
    "solve": lambda x: jnp.linalg.solve(jnp.outer(x, x)[:4, :4][::-1] + jnp.eye(4)[jnp.array([1, 3, 0, 2])], x[:4]),
    "computed": lambda x: x[jnp.argmax(x)] + jax.lax.dynamic_slice(x, (jnp.int32(4 * x[0]),), (2,)),
    "written": lambda x: jax.lax.dynamic_update_slice(
        jnp.outer(x, x), x[:4].reshape(2, 2), (jnp.int32(3 * x[0]), jnp.int32(3 * x[1]))
    ),
    "each ends": lambda x: jax.vmap(lambda y: jax.lax.while_loop(lambda z: z < 3.0, lambda z: z + jnp.abs(y) + 0.1, y))(
        x
    ),
    "no more turns": lambda x: jax.lax.fori_loop(
        0, 40, lambda k, y: (1.01 * jnp.eye(6, dtype=x.dtype) + 0.01) @ y + x, jnp.zeros(6, x.dtype)
    ),
    "picked": lambda x: x[(x > 0).astype(jnp.int32)],
    "singular": lambda x: jax.lax.linalg.lu(jnp.diag(x[:3]).at[1, 1].set(0.0) * jnp.eye(3, dtype=x.dtype))[0],
    "logic": lambda x: jnp.where(((x > 0) == (x > 0.5)) ^ (jnp.argmax(x > 0.3) != 1), x, 2.0),
    "sorted": lambda x: jnp.sort(x) + x[jnp.argsort(-x.reshape(3, 2), axis=0).reshape(-1)] * jnp.median(x),
    "nearest": lambda x: jax.lax.round(3.0 * x) + jax.lax.round(jnp.array([0.5, -1.5, 2.5, -0.5, 0.49, 7.5]) + 0.0 * x),
    "running": lambda x: jnp.cumprod(x) + jax.lax.cummax(x) - jax.lax.cummin(x.reshape(2, 3), 1, True).reshape(-1),
    "combined": lambda x: (
        x.at[jnp.int32(4.0 * x[:3])].add(x[3:]).at[jnp.int32(5.0 * x[1])].multiply(3.0).at[1].apply(lambda y: y * y)
        + x.reshape(2, 3).at[jnp.int32(2.0 * x[0]), jnp.int32(3.0 * x[1])].max(0.2).reshape(-1)
    ),
    "taken": lambda x: (
        jnp.take(x, jnp.int32(9.0 * x), fill_value=7.0)
        + jnp.tile(jnp.take_along_axis(x.reshape(2, 3), jnp.int32(3.0 * x[:2])[:, None], 1, mode="clip"), 3).reshape(-1)
    ),
    "split": lambda x: jnp.concatenate([*jnp.split(x, 3)][::-1]).T + jax.lax.dynamic_slice(x, (1,), (1,)),
}


@pytest.mark.ci
@pytest.mark.parametrize("name", MOVES)
def test_programs_of_scalars_and_their_kernels_compute_what_arrays_do(name):
    x = np.random.default_rng(0).normal(size=(4, 6))
    dtype = jnp.zeros(()).dtype
    program = jax.make_jaxpr(lambda x: MOVES[name](x).reshape(-1))(jnp.zeros(6, dtype))
    want = np.stack([np.asarray(MOVES[name](jnp.asarray(row, dtype))).reshape(-1) for row in x])
    rows = [np.asarray(k, dtype) for k in x.T]
    got = np.stack([np.broadcast_to(y, 4) for y in scalar_program(program).evaluate(*rows)], axis=1)
    assert_close(got, want)
    for limits in (UNLIMITED, Limits(10**9, 5), Limits(4, 100)):
        arrays = [np.ascontiguousarray(x.T.astype(dtype))]
        for launch in launches(program, [True], 4, limits):
            sizes = [(y.size, y.dtype) for y in launch.results]
            arrays += interpret(launch.text, [arrays[k] for k in launch.operands], sizes, 4)
        assert_close(arrays[-1].T, want)


@pytest.mark.ci
def test_results_that_are_constants_and_batches_of_which_nothing_depends():
    kernel = gpu_kernel(lambda x, y: (jnp.sin(x), jnp.zeros_like(y[0]), 2.0 * y))
    sine, zero, double = kernel(jnp.array(0.5), jnp.ones(3))
    assert_close(sine, np.sin(0.5))
    assert float(zero) == 0.0
    assert_close(double, [2.0] * 3)
    only = jax.jit(lambda ys: jax.vmap(kernel, (None, 0))(jnp.array(0.5), ys)[0])(jnp.ones((4, 3)))
    assert_close(only, np.full(4, np.sin(0.5)))


@pytest.mark.ci
@pytest.mark.parametrize("missing", ["costs", "end_costs"])
def test_problems_of_control_without_some_costs(gpu, missing):
    costs: dict[str, Any] = {"costs": [JointEffort(1e-3)], "end_costs": [JointVelocity(1.0)]} | {missing: ()}
    problem = ControlProblem(robots.two_link_arm(), dt=0.02, steps=4, **costs)
    x = jnp.full((3, 2), 0.3)
    cost = jax.jit(jax.vmap(lambda q: problem.cost(*problem.rollout(q, q, jnp.ones((4, 2))), jnp.ones((4, 2)))))
    assert "__gpu$xla.gpu.ptx" in cost.trace(x).lower(lowering_platforms=("cuda",)).as_text()
    want = (
        0.5 * 4 * 0.02 * 1e-3 * 2
        if missing == "end_costs"
        else 0.5 * (problem.rollout(x[0], x[0], jnp.ones((4, 2)))[1][-1] ** 2).sum()
    )
    assert_close(cost(x), np.full(3, want))


@pytest.mark.ci
def test_what_cannot_be_a_kernel_is_an_error():
    with pytest.raises(NotScalarError, match="scan in more than 64 turns"):
        scalar_program(jax.make_jaxpr(lambda x: jax.lax.scan(lambda c, y: (c + y, y), 0.0, x)[0])(jnp.zeros(65)))
    with pytest.raises(NotScalarError, match="lgamma"):
        scalar_program(jax.make_jaxpr(jax.lax.lgamma)(1.0))
    with pytest.raises(NotScalarError, match="reduce_precision to fewer bits"):
        scalar_program(jax.make_jaxpr(lambda x: jax.lax.reduce_precision(x, 8, 7))(1.0))
    with pytest.raises(NotScalarError, match="sort of more than 64 numbers"):
        scalar_program(jax.make_jaxpr(jnp.sort)(jnp.zeros(65)))
    for name, f in (("exp", jnp.exp), ("erf", jax.lax.erf), ("asinh", jnp.arcsinh)):
        with pytest.raises(UnsupportedError, match=name):
            launches(jax.make_jaxpr(f)(1.0), [True], 4)
    with pytest.raises(NotScalarError, match="more than 2 operations"):
        scalar_program(jax.make_jaxpr(lambda x: x * x + 2.0 * x)(1.0), most=2)
    with pytest.raises(UnsupportedError, match="float16"):
        launches(jax.make_jaxpr(lambda x: x + x)(jnp.zeros(2, jnp.float16)), [True], 4)


def assembler() -> Path:
    oracle("nvidia.cu13")
    path = next(Path(str(x.locate())) for x in files("nvidia-cuda-nvcc") or () if x.name == "ptxas")
    with contextlib.suppress(PermissionError):
        path.chmod(0o755)
    return path


@pytest.mark.ci
@pytest.mark.parametrize("limits", [Limits(40), Limits(100, 200)])
def test_parts_keep_to_their_limits(limits):
    program, model = program_of("mimic", rb.rnea_derivatives, *(states("mimic").q,) * 3)
    scalars = scalar_program(program)
    shared = set(scalars.inputs[: sum(x.size for x in jax.tree.leaves(model))])
    found = register_parts(scalars, [x.shape for x in program.out_avals], shared, limits)
    assert len(found) > 3
    done = set(scalars.inputs)
    for part in found:
        assert len(part.operations) <= limits.operations
        last = {y: k for k, x in enumerate(part.operations) for y in (*x.operands, x) if isinstance(y, Scalar)}
        live = dict.fromkeys(part.operations[:0])
        for k, x in enumerate(part.operations):
            assert done.issuperset(y for y in x.operands if isinstance(y, Scalar))
            done.add(x)
            live |= dict.fromkeys(y for y in (*x.operands, x) if isinstance(y, Scalar) and y not in shared)
            assert sum(max(1, y.dtype.itemsize // 4) for y in live) <= limits.registers
            live = {y: None for y in live if last[y] > k}
    assert done == {*scalars.inputs, *scalars.operations}


@pytest.mark.slow
def test_little_of_a_large_kernel_is_kept_in_memory(tmp_path):
    q = jnp.zeros((1, robot("rby1a").nq))
    program, model = program_of("rby1a", rb.rnea_derivatives, q, q, q)
    count = len(jax.tree.leaves(model))
    batched = [k >= count for k in range(len(program.in_avals))]
    kept = 0
    for k, launch in enumerate(launches(program, batched, 1000)):
        source = tmp_path / f"{k}.ptx"
        source.write_text(launch.text)
        call = [assembler(), "-v", "-arch=sm_90", source, "-o", tmp_path / "out.cubin"]
        done = subprocess.run(call, capture_output=True, text=True, check=True)
        kept += sum(map(int, re.findall(r"(\d+) bytes spill (?:stores|loads)", done.stderr)))
    assert kept < 20_000  # 100,000 and more, if a kernel does not fit


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["sm_75", "sm_120"])
def test_cuda_assembles_the_kernels(tmp_path, architecture):
    s = states("every_type")
    for f, args in ((rb.rnea, (s.q, s.v, s.a)), (rb.mass_matrix_inverse, (s.q,))):
        program, _ = program_of("every_type", f, *args)
        for k, launch in enumerate(launches(program, [True] * len(program.in_avals), 1000)):
            source = tmp_path / f"{k}.ptx"
            source.write_text(launch.text)
            call = [assembler(), f"-arch={architecture}", source, "-o", tmp_path / "out.cubin"]
            done = subprocess.run(call, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
