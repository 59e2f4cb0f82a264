"""Generated C: compiled without a warning, and equal to Pinocchio; what cannot be written is named."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rbydyn_jax as rb
from rbydyn_jax import collision, robots
from rbydyn_jax.compilation import codegen
from rbydyn_jax.sweeps import plan
from rbydyn_jax.xla.c_source import Array, c_function, c_literal, is_declared
from rbydyn_jax.xla.scalar_program import scalar_program
from tests.algorithms.cases import pin_robot, robot, states, tips
from tests.compilation.support import start
from tests.helpers import ROOT, X64, assert_close, c_compiler, normal, oracle, untyped

from .c_library import WARNINGS, compiled, run

ROWS = 10
FLOAT = np.float64 if X64 else np.float32

# The arguments of each function, Pinocchio's results for them, and whether it solves a system.
CASES = {
    "fk": ("q", lambda twin, tip, q: twin.fk(q), "value"),
    "link_pose": ("q", lambda twin, tip, q: twin.fk(q)[twin.ours.link_index(tip)], "value"),
    "jacobian": ("q", lambda twin, tip, q: twin.jacobian(q, tip), "value"),
    "rnea": ("q v a", lambda twin, tip, q, v, a: twin.rnea(q, v, a), "value"),
    "bias_forces": ("q v", lambda twin, tip, q, v: twin.rnea(q, v, 0 * v), "value"),
    "gravity_forces": ("q", lambda twin, tip, q: twin.gravity(q), "value"),
    "crba": ("q", lambda twin, tip, q: twin.crba(q), "value"),
    "aba": ("q v tau", lambda twin, tip, q, v, tau: twin.aba(q, v, tau), "solve"),
    "rnea_derivatives": ("q v a f_ext", lambda twin, tip, *xs: twin.rnea_derivatives(*xs), "value"),
    "aba_derivatives": ("q v tau f_ext", lambda twin, tip, *xs: twin.aba_derivatives(*xs), "solve"),
}


def entry(model, name, tip, dtype):
    if name in ("link_pose", "jacobian"):
        return name, {"link": tip}
    wrenches = {"f_ext": jax.ShapeDtypeStruct((model.nb, 6), dtype)}
    return (name, wrenches) if "f_ext" in CASES[name][0] else name


def same_as_pinocchio(folder, name, functions, parameters=False):
    model, twin, tip = robot(name), pin_robot(name), tips(name)[0]
    dtype = model.inertias.dtype
    codes = [rb.generate_c(model, entry(model, f, tip, dtype), parameters=parameters) for f in functions]
    given, found = jax.tree.map(lambda x: np.asarray(x[:ROWS]), states(name)), compiled(folder, *codes)
    for function, code, call in zip(functions, codes, found, strict=True):
        arguments, oracle, kind = CASES[function]
        robots_numbers = [code.parameters(model)] if parameters else []
        for xs in zip(*(getattr(given, x) for x in arguments.split()), strict=True):
            want = oracle(twin, tip, *xs)
            want = want if isinstance(want, tuple) else (want,)
            for got, expected in zip(call(*robots_numbers, *xs), want, strict=True):
                assert_close(got, expected, kind=kind)


@pytest.mark.ci
def test_generated_functions_give_what_pinocchio_does(tmp_path):
    same_as_pinocchio(tmp_path, "mimic", ["link_pose", "rnea", "aba"])


@pytest.mark.ci
def test_every_joint_type(tmp_path):
    same_as_pinocchio(tmp_path, "every_type", ["fk", "rnea"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["every_type", "mimic", "rby1a"])
def test_every_algorithm_gives_what_pinocchio_does(tmp_path, name):
    functions = [f for f in CASES if f != "aba_derivatives" or name == "mimic"]  # the rest takes gcc a minute
    same_as_pinocchio(tmp_path, name, functions)


@pytest.mark.slow
def test_functions_of_parameters_give_what_pinocchio_does(tmp_path):
    same_as_pinocchio(tmp_path, "every_type", ["fk", "rnea", "crba", "aba"], parameters=True)


def test_parameters_of_another_robot_of_the_tree(tmp_path):
    pin_model = oracle("rbydyn_jax.engines.pinocchio").pin_model
    arm = robots.two_link_arm()
    heavier = rb.with_gravity(rb.attach_payload(arm, "tool", 2.0), jnp.array([0.1, -1.6, -3.0]))
    code = rb.generate_c(arm, "rnea", parameters=True)
    (call,) = compiled(tmp_path, code)
    q, v, a = (np.asarray(normal(k, 2)) for k in range(3))
    for model in (arm, heavier):
        assert_close(call(code.parameters(model), q, v, a)[0], pin_model(model).rnea(q, v, a))
    numbers = re.search(r"arm_rnea_robot\[27\] = \{(.*?)\}", code.source, re.DOTALL)
    assert numbers is not None
    given = [float(x.strip().removesuffix("f")) for x in numbers[1].split(",") if x.strip()]
    np.testing.assert_array_equal(np.array(given, FLOAT), code.parameters(arm))
    with pytest.raises(rb.ModelError, match="rnea was generated for 'two_link_arm'; of 'pendulum' differs: name"):
        code.parameters(robots.pendulum())
    with pytest.raises(rb.ArgumentError, match="constants: generate it with parameters=True"):
        rb.generate_c(arm, "rnea").parameters(arm)


@pytest.mark.ci
def test_single_precision(tmp_path):
    s, twin, model = states("mimic"), pin_robot("mimic"), robot("mimic")
    code = rb.generate_c(model, "rnea", np.float32, name="single")
    assert code.dtype == np.float32
    assert not re.search(r"\bdouble\b|\b(sin|cos)\(|\d\.\d+\b(?!f)", code.source)
    (call,) = compiled(tmp_path, code)
    for q, v, a in zip(*(np.asarray(x[:3], np.float32) for x in (s.q, s.v, s.a)), strict=True):
        assert_close(call(q, v, a)[0], twin.rnea(q, v, a))


def hold(model, q, force):
    """Joint forces that hold the robot while a force acts on a link."""
    return rb.gravity_forces(model, q) - rb.jacobian(model, q, model.link_names[-1])[3:].T @ force


@pytest.mark.ci
def test_steps_on_quaternions_are_written(tmp_path):
    model = robot("every_type")
    code = rb.generate_c(model, ("integrate", {"dv": jnp.zeros(model.nv)}), name="step")
    (call,) = compiled(tmp_path, code)
    q, v = (x[0] for x in states("every_type")[:2])
    assert_close(call(q, v)[0], rb.integrate(model, q, v))  # which is compared with Pinocchio's elsewhere


def test_functions_of_users_are_written(tmp_path):
    model, twin = robot("mimic"), pin_robot("mimic")
    code = rb.generate_c(model, (hold, {"q": jnp.zeros(model.nq), "force": jnp.zeros(3)}), name="hold")
    (call,) = compiled(tmp_path, code)
    assert code.arguments == {"q": (model.nq,), "force": (3,)}
    q, force = np.asarray(states("mimic").q[0]), np.array([3.0, -2.0, 5.0])
    want = twin.gravity(q) - twin.jacobian(q, model.link_names[-1])[3:].T @ force
    assert_close(call(q, force)[0], want)


@pytest.mark.ci
def test_gradients_are_written(tmp_path):
    model, twin, s = robot("mimic"), pin_robot("mimic"), states("mimic")

    def loss(model, q, v, a):
        return jax.grad(lambda a: (rb.rnea(model, q, v, a) ** 2).sum())(a)

    arrays = dict.fromkeys("qva", jax.ShapeDtypeStruct((model.nv,), FLOAT))
    (call,) = compiled(tmp_path, rb.generate_c(model, (loss, arrays), name="slope"))
    q, v, a = (np.asarray(x[0]) for x in (s.q, s.v, s.a))
    assert_close(call(q, v, a)[0], 2.0 * twin.crba(q) @ twin.rnea(q, v, a), kind="solve")


@pytest.mark.ci
def test_batches_and_jacobians_are_written(tmp_path):
    model, twin, s = robot("mimic"), pin_robot("mimic"), states("mimic")
    q, v, a = (np.asarray(x[0]) for x in (s.q, s.v, s.a))

    def slopes(model, q, v, a):
        return jax.jacfwd(rb.rnea, argnums=3)(model, q, v, a), jax.jacrev(rb.aba, argnums=3)(model, q, v, a)

    def together(model, qs, v):
        return jax.vmap(rb.rnea, in_axes=(None, 0, None, 0))(model, qs, v, 2.0 * qs)

    vector, rows = (jax.ShapeDtypeStruct(shape, FLOAT) for shape in ((model.nv,), (3, model.nv)))
    codes = [
        rb.generate_c(model, (slopes, dict.fromkeys("qva", vector)), name="slopes"),
        rb.generate_c(model, (together, {"qs": rows, "v": vector}), name="together"),
    ]
    by_force, of_rows = compiled(tmp_path, *codes)
    M = twin.crba(q)
    forward, backward = by_force(q, v, a)
    assert_close(forward, M)
    assert_close(backward, np.linalg.inv(M), kind="solve")
    qs = np.asarray(s.q[:3])
    assert_close(of_rows(qs, v)[0], np.stack([twin.rnea(q, v, 2.0 * q) for q in qs]))


def within_loops(x):
    """A loop in a loop, numbers that change places, and one of many turns."""

    def halved(state):
        y, count = state
        z = jax.lax.while_loop(lambda z: z.sum() > 1.0, lambda z: z - 0.25 * jnp.abs(x), jnp.abs(y[::-1]) + count)
        return z[jnp.array([1, 2, 0])] * 0.7, count + 1

    y, count = jax.lax.while_loop(lambda s: (jnp.abs(s[0]).max() > 0.2) & (s[1] < 9), halved, (x, jnp.int32(0)))
    return y + count + jax.lax.fori_loop(0, 100, lambda k, z: jnp.cos(z + 0.1 * k), x)


def divided(count):
    """Quotients and remainders by 0, 1 and -1, of 2 and of the least number too."""
    by = count - jnp.array([2, 1, 3], jnp.int32)
    return jax.lax.div(jnp.array([7, -8, -(2**31)], jnp.int32), by) // 4 - jax.lax.rem(5 * count, by)


def every_operation(x):
    small, positive = jnp.tanh(x), jnp.exp(x)
    count = (x > 0).astype(jnp.int32).sum()
    bits = jnp.ldexp(jnp.frexp(x)[0], 3)
    return {
        "trigonometry": jnp.sin(x) * jnp.cos(x[::-1]) + jnp.tan(small) + jnp.arcsin(small) - jnp.arccos(small),
        "others": jnp.arcsinh(x) + jnp.arccosh(positive + 1.0) + jnp.arctanh(small) + jnp.exp2(x) + jnp.sinc(x),
        "errors": jax.lax.erf(x) - jax.lax.erfc(2.0 * x),
        "slopes": sum(
            jax.grad(lambda x, f=f: f(x).sum())(small)
            for f in (jnp.tanh, jnp.arcsin, jnp.arccos, jnp.arctanh, jnp.arctan, jnp.sinc, jax.nn.sigmoid, jax.lax.erf)
        ),
        "angles": jnp.arctan(x) + jnp.arctan2(x, x[::-1]) + jnp.sinh(x) * jnp.cosh(x),
        "powers": jnp.log(positive) + jnp.log1p(positive) + jnp.expm1(x) + positive**1.7 + jnp.cbrt(x) + x**-3,
        "roots": jnp.sqrt(positive) * jax.lax.rsqrt(positive)
        + jax.nn.sigmoid(x)
        + jnp.sign(x) * jnp.clip(x, -0.5, 0.5),
        "rounding": jnp.round(3.0 * x) + 10.0 * jnp.floor(x) + 100.0 * jnp.ceil(x) + bits,
        "extremes": jnp.maximum(x, x[::-1]) - jnp.minimum(x, 0.3) + jnp.abs(x).max() + jnp.clip(x, -0.5, 0.5),
        "choices": jnp.where((x > 0.2) & ~(x > 0.9) | (x <= -1.0), 1.0 / x, -x) + jnp.where(jnp.isfinite(x), 1.0, x),
        "integers": (count // 2 * 3 - (count | 4) + (count ^ 3) + jnp.maximum(count, 2) - abs(1 - count)).astype(
            x.dtype
        ),
        "best": 10.0 * x[jnp.array([2, 0, 1])] * jnp.argmax(x) + jnp.argmin(jnp.stack([x, -x]), axis=0),
        "turns": jax.lax.fori_loop(0, 5, lambda k, y: 0.5 * y + k * x, x),
        "loops": within_loops(x),
        "no_more_turns": jax.lax.fori_loop(
            0, 40, lambda k, y: (1.01 * jnp.eye(3, dtype=x.dtype) + 0.01) @ y + jnp.abs(x), jnp.zeros(3, x.dtype)
        ),
        "each_ends": jax.vmap(
            lambda y: jax.lax.while_loop(lambda z: z < 3.0, lambda z: z + jnp.abs(y) + 0.1, y), axis_size=3
        )(x),
        "picked": x[(x > 0).astype(jnp.int32)]
        + jax.lax.dynamic_slice(200.0 * x, (count.astype(jnp.int8),), (2,)).sum(),
        "divided": divided(jnp.asarray(count, jnp.int32)).astype(x.dtype),
        "unread": jax.lax.while_loop(lambda y: y[0] > 0.1, lambda y: jnp.stack([0.5 * y[0], y[0] * x[1]]), x[:2])[:1],
        "rows_of_constants": x[0]
        + jax.lax.scan(lambda c, y: (c + y, c * y), x.dtype.type(0), np.arange(100, dtype=x.dtype))[1][:2],
        "branches": jax.lax.cond(x[0] > 0, lambda x: 2.0 * x, jnp.cos, x)
        + jax.lax.switch((2.0 * x[2]).astype(jnp.int32), [jnp.sin, jnp.cos, jnp.tan], x),
        "solved": jnp.linalg.solve(jnp.outer(x, x) + jnp.diag(jnp.array([0.1, 2.0, -1.0]))[::-1], x),
        "rows": x[jnp.argsort(jnp.array([2, 0, 1]))[jnp.argmax(x)]] * jnp.arange(3.0, dtype=x.dtype)[jnp.argmin(x)],
        "cases": jax.lax.select_n((x > 0).astype(jnp.int32) + (x > 0.5), x, 2.0 * x, -x),
        "flags": (x > 0) ^ (x > 0.5),
        "known": jnp.array([0.1, jnp.inf, -2.0]),
        "single": x[1],
    }


@pytest.mark.ci
@pytest.mark.parametrize("most", [1000, 7])
def test_every_operation(tmp_path, most):
    x = np.array([0.37, -1.21, 0.86], FLOAT)
    want, _ = jax.tree.flatten(jax.jit(every_operation)(x))
    names = list(every_operation(x))
    program = scalar_program(jax.make_jaxpr(lambda x: jax.tree.leaves(every_operation(x)))(x))
    results = [Array(name, y.size, y.dtype) for name, y in zip(sorted(names), want, strict=True)]
    body = c_function("every", program, [Array("x", 3, FLOAT)], results, most)
    shapes = {name: np.shape(y) for name, y in zip(sorted(names), want, strict=True)}
    assert ("every_9" in body) == (most == 7)
    source = f'#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include "every.h"\n{body}'
    header = body[body.rindex("void every(") : body.rindex("\n{")].replace("restrict ", "") + ";\n"
    header = f"#include <stdbool.h>\n{header}"
    code = rb.CFunction("every", header, source, {"x": (3,)}, shapes, np.dtype(FLOAT), 0, "", {}, None)
    (call,) = compiled(tmp_path, code)
    for got, expected in zip(call(x, flags=bool), want, strict=True):
        if got.dtype == bool:
            np.testing.assert_array_equal(got, expected)
        else:
            np.testing.assert_allclose(got, expected, rtol=1e-14 if X64 else 3e-6)


@pytest.mark.slow
@pytest.mark.skipif(not X64, reason="accuracy in float64")
def test_distances_of_boxes_and_cylinders_are_written(tmp_path):
    """They are those of coal in C as well."""
    coal, arm = oracle("coal"), robots.two_link_arm()
    pose = np.eye(4)
    pose[:3, 3] = [0.9, 0.5, 0.3]
    world = collision.World(
        collision.box(jnp.asarray(pose), jnp.array([0.2, 0.3, 0.4])),
        collision.cylinder(jnp.asarray(pose), length=0.4, radius=0.1),
    )

    def distances(model, q):
        return collision.world_distances(model, q, world)

    q = np.array([0.4, -0.7])
    (call,) = compiled(tmp_path, rb.generate_c(arm, (distances, {"q": jnp.zeros(2)}), name="distances"))
    poses, want = np.asarray(rb.fk(arm, jnp.asarray(q))), []
    rods: Any = arm.shapes["capsule"]
    place = coal.Transform3s(pose[:3, :3], pose[:3, 3])
    for other in (coal.Box(0.2, 0.3, 0.4), coal.Cylinder(0.1, 0.4)):
        for row, link in enumerate(arm.tree.shape_links):
            T = poses[link]
            a, b = np.asarray(rods.segment[row]) @ T[:3, :3].T + T[:3, 3]
            along = Rotation.align_vectors([b - a], [[0.0, 0.0, 1.0]])[0].as_matrix()
            rod = coal.Capsule(float(rods.radius[row]), float(np.linalg.norm(b - a)))
            at = coal.Transform3s(along, 0.5 * (a + b))
            want.append(coal.distance(rod, at, other, place, coal.DistanceRequest(), coal.DistanceResult()))
    np.testing.assert_allclose(call(q)[0], want, atol=1e-6)


def test_what_is_no_number_stays_none(tmp_path):
    arm = robots.two_link_arm()
    both = {"x": jax.ShapeDtypeStruct((2,), FLOAT), "y": jax.ShapeDtypeStruct((2,), FLOAT)}
    (call,) = compiled(tmp_path, rb.generate_c(arm, (lambda m, x, y: jnp.maximum(x, y), both), name="most"))
    got = call([np.nan, 1.0], [0.0, np.nan])[0]
    assert np.isnan(got).all()


def test_what_is_read_beyond_an_array_is_what_jax_takes(tmp_path):
    def read(model, x):
        at, whole = jnp.array([0, 5]), (8 * x).astype(jnp.int32)
        flags = jnp.take(x > 0, at).astype(x.dtype)
        given = x.at[at].get(mode="fill", fill_value=7.0)
        return {"flags": flags, "given": given, "taken": jnp.take(x, at), "whole": jnp.take(whole, at)}

    x = np.array([0.25, -1.5], FLOAT)
    code = rb.generate_c(robots.pendulum(), (read, {"x": jax.ShapeDtypeStruct((2,), FLOAT)}))
    (call,) = compiled(tmp_path, code)
    want = read(None, jnp.asarray(x))
    for got, name in zip(call(x, whole=np.int32), code.results, strict=True):
        np.testing.assert_array_equal(got, want[name], name)


@pytest.mark.parametrize("given", [np.float32, np.float64])
def test_numbers_become_the_nearest_integers(tmp_path, given):
    """As in XLA, NaN and numbers beyond the type too, for which C defines no conversion."""
    kinds = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
    if not X64:
        if given == np.float64:
            pytest.skip("no float64")
        kinds = [kind for kind in kinds if "64" not in kind]
    ends = [float(end) for kind in kinds for end in (np.iinfo(kind).min, np.iinfo(kind).max)]
    beside = [np.nextafter(given(x), given(to)) for x in ends for to in (-np.inf, np.inf)]
    x = np.array([np.nan, np.inf, -np.inf, 1e20, -1e20, 3e9, 0.6, -0.6, -1.5, 300.7, *ends, *beside], given)

    def converted(x):
        mixed = jnp.stack([x[0], jnp.asarray(np.nan, x.dtype), jnp.asarray(1e20, x.dtype)])  # with what is known
        return {kind: x.astype(kind) for kind in kinds} | {"mixed": mixed.astype(jnp.int32)}

    shape = {"x": jax.ShapeDtypeStruct(x.shape, given)}
    code = rb.generate_c(robots.pendulum(), (lambda m, x: converted(x), shape), given, name="whole")
    (call,) = compiled(tmp_path, code)
    want = jax.jit(converted)(x)
    found = call(x, mixed=np.int32, **{kind: np.dtype(kind) for kind in kinds})
    for got, name in zip(found, code.results, strict=True):
        np.testing.assert_array_equal(got, want[name], name)
    assert dict(zip(code.results, found, strict=True))["mixed"].tolist() == [0, 0, np.iinfo(np.int32).max]


def test_rows_of_numbers_that_are_not_finite_are_those_of_jax(tmp_path):
    table = jnp.arange(0.0, 50.0, 10.0)

    def read(model, x):
        return table[jnp.floor(2.0 * x).astype(jnp.int32)]

    (call,) = compiled(tmp_path, rb.generate_c(robots.pendulum(), (read, {"x": jax.ShapeDtypeStruct((4,), FLOAT)})))
    np.testing.assert_array_equal(call([np.nan, 1e12, -1e12, 0.6])[0], [0.0, 40.0, 0.0, 10.0])


@pytest.mark.parametrize("kind", [jnp.uint8, jnp.int8, jnp.uint16, jnp.int16])
def test_narrow_integers_wrap_around(tmp_path, kind):
    def wrapped(model, x):
        n = x.astype(kind)
        least, most = (jnp.array(k, kind) for k in (jnp.iinfo(kind).min, jnp.iinfo(kind).max))
        sums = [(n + most) >> 1, (n - most) >> 1, (n * most) >> 1, (n << 7) >> 3, ~n >> 1, -n >> 1, -(least + n) // 2]
        return jnp.stack(sums).astype(x.dtype)

    x = np.array([7.0, 100.0, 0.0], FLOAT)
    (call,) = compiled(tmp_path, rb.generate_c(robots.pendulum(), (wrapped, {"x": jax.ShapeDtypeStruct((3,), FLOAT)})))
    np.testing.assert_array_equal(call(x)[0], wrapped(None, jnp.asarray(x)))


def test_names_of_arguments_and_results(tmp_path):
    arm, x = robots.two_link_arm(), jax.ShapeDtypeStruct((), FLOAT)

    def f(model, double, x1, sin):
        return {"x1": jnp.sin(double) + x1, "a b": (sin, double * x1), "valid": sin > 0}

    code = rb.generate_c(arm, (f, {"double": x, "x1": x, "sin": x}), name="f")
    assert list(code.arguments) == ["double_", "x1_", "sin_"]
    assert list(code.results) == ["a_b_0", "a_b_1", "valid", "x1__"]
    (call,) = compiled(tmp_path, code)
    got = call(0.5, 2.0, -1.0, valid=bool)
    np.testing.assert_allclose(got, [-1.0, 1.0, False, math.sin(0.5) + 2.0], rtol=1e-6)


@pytest.mark.ci
def test_loops_without_turns_end(tmp_path):
    """Within a branch that is not chosen, and within a loop that has no turns, from which XLA would take it."""

    def doubled(y):
        return jax.lax.while_loop(lambda y: y[0] > -100.0, lambda y: jnp.abs(y), y)

    def kept(model, x):
        again = jax.lax.while_loop(
            lambda s: (s[0] < 3) & (x[1] > 0), lambda s: (s[0] + 1, s[1] + doubled(x)), (jnp.int32(0), x)
        )
        return jax.lax.cond(x[1] > 0, doubled, lambda y: y, x) + again[1]

    code = rb.generate_c(robots.pendulum(), (kept, {"x": jax.ShapeDtypeStruct((2,), FLOAT)}), name="kept")
    np.testing.assert_array_equal(compiled(tmp_path, code)[0](np.array([3.0, -1.0]))[0], [6.0, -2.0])


@pytest.mark.ci
def test_arguments_that_are_called_as_variables_are(tmp_path):
    def halved(model, x1, y2):
        return jax.lax.while_loop(lambda y: y.max() > 0.1, lambda y: 0.5 * y, x1 * y2), jnp.all(x1 > y2)

    def still(model, x):
        return jax.lax.while_loop(lambda y: False, lambda y: 0.5 * y, x)

    x, shape = np.array([3.0, 1.0]), jax.ShapeDtypeStruct((2,), FLOAT)
    codes = [
        rb.generate_c(robots.pendulum(), (halved, {"x1": shape, "y2": shape}), name="halved"),
        rb.generate_c(robots.pendulum(), (still, {"x": shape}), name="still"),
    ]
    first, second = compiled(tmp_path, *codes)
    np.testing.assert_array_equal(first(x, np.array([1.0, 0.5]), result_1=bool)[0], [3 / 32, 0.5 / 32])
    np.testing.assert_array_equal(second(x)[0], x)


def test_a_robot_without_joints(tmp_path):
    model = rb.build_model(rb.RobotBuilder("stand").link("base", 1.0))
    (poses, torques) = compiled(tmp_path, rb.generate_c(model, "fk"), rb.generate_c(model, "gravity_forces"))
    np.testing.assert_array_equal(poses(np.zeros(0))[0], np.eye(4)[None])
    assert torques(np.zeros(0))[0].shape == (0,)


@pytest.mark.ci
def test_long_functions_are_cut_and_give_the_same(tmp_path, monkeypatch):
    model, s = robot("mimic"), states("mimic")
    whole = rb.generate_c(model, "aba", name="whole")
    monkeypatch.setattr(codegen, "C_OPERATIONS", 100)
    cut = rb.generate_c(model, "aba", name="cut")
    assert "static void cut_5(" in cut.source
    one, other = compiled(tmp_path, whole, cut)
    xs = [np.asarray(x[0]) for x in (s.q, s.v, s.tau)]
    np.testing.assert_array_equal(one(*xs)[0], other(*xs)[0])


@pytest.mark.ci
def test_the_text_depends_on_nothing_but_the_robot():
    first, second = (rb.generate_c(robot("short"), "crba") for _ in range(2))
    assert first == second
    assert rb.generate_c(rb.specialize(robot("short")), rb.crba) == first
    assert rb.generate_c(rb.with_traversal(robot("short"), "scanned"), rb.crba).source == first.source


TEXT = """
import json
import jax
jax.config.update("jax_enable_x64", True)
import rbydyn_jax as rb
print(json.dumps(rb.generate_c(rb.robots.panda_like(), "rnea").source))
"""


@pytest.mark.slow
def test_the_text_is_the_same_in_every_process(monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    first = start(TEXT)
    monkeypatch.setenv("PYTHONHASHSEED", "2")
    assert start(TEXT) == first


@pytest.mark.slow
def test_where_a_gpu_could_run_as_well(monkeypatch):
    want = rb.generate_c(robot("short"), "rnea").source
    monkeypatch.setattr(plan, "_platforms", lambda: {"cpu", "gpu"})
    jax.clear_caches()
    assert rb.generate_c(robot("short"), "rnea").source == want
    jax.clear_caches()


def rows(model, q):
    return jax.lax.scan(lambda c, x: (c + x, None), q, jnp.broadcast_to(q, (65, 2)))[0]


def axes(model, q):
    return jnp.linalg.eigh(rb.crba(model, q))


def batch(model, q):
    return jnp.linalg.cholesky(jnp.stack([rb.crba(model, q)] * 2))


def half(model, q):
    return q.astype(jnp.float16) * 2


def rounded(model, q):
    return jax.lax.reduce_precision(q, exponent_bits=5, mantissa_bits=2)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (rounded, r"rounded cannot be written in C: 'reduce_precision' to fewer bits is not supported"),
        (rows, r"rows cannot be written in C: 'scan' \(a loop over the rows of an array\) in more than 64 turns"),
        (axes, r"axes cannot be written in C: 'eigh' \(an eigenvalue decomposition\)"),
        (batch, r"batch cannot be written in C: 'cholesky' \(a batch of linear solves\)"),
        (half, r"half cannot be written in C: 'float16' is not a type of C"),
    ],
)
def test_what_cannot_be_written_is_named(function, message):
    arm = robots.two_link_arm()
    with pytest.raises(rb.ArgumentError, match=message):
        rb.generate_c(arm, (function, {"q": jax.ShapeDtypeStruct((2,), FLOAT)}))


@pytest.mark.parametrize("bits", [(8, 23), (11, 52)])
def test_numbers_with_all_their_bits_are_written(tmp_path, bits):
    kind = np.float32 if bits == (8, 23) else FLOAT
    shape = {"x": jax.ShapeDtypeStruct((1,), kind)}
    code = rb.generate_c(robots.pendulum(), (lambda m, x: jax.lax.reduce_precision(x, *bits), shape), kind, name="same")
    (call,) = compiled(tmp_path, code)
    np.testing.assert_array_equal(call([0.1])[0], np.array([0.1], kind))


@pytest.mark.parametrize("name", ["nope", "_directory", "planning._ik.solve", "load_urdf", "Model"])
def test_functions_that_are_not_public_are_not_found(name):
    with pytest.raises(rb.NameNotFoundError, match=f"no function named {name!r}") as info:
        rb.generate_c(robots.pendulum(), name)
    assert "rnea" in info.value.known and not {"to_urdf", "generate_c"} & set(info.value.known)
    assert not any(known.startswith("_") for known in info.value.known)


@pytest.mark.parametrize(
    ("name", "kind"), [("to_urdf", "str"), ("save_urdf", "None"), ("generate_c", "CFunction"), ("precompile", "tuple")]
)
def test_functions_without_arrays_are_refused(name, kind):
    with pytest.raises(rb.ArgumentError, match=f"function must return arrays, and {name} returns {kind}"):
        rb.generate_c(robots.pendulum(), name)


def test_results_that_are_no_arrays_are_refused():
    with pytest.raises(rb.DtypeError, match=r"return arrays; its result holds a str"):
        rb.generate_c(robots.pendulum(), (lambda model: {"mass": rb.total_mass(model), "unit": "kg"}, {}))


@pytest.mark.parametrize(
    "name",
    "2x a-b while sin a.c main double_t FP_NAN int64_t j0 gammaf sinl M_PI asm unix _X HUGE_VAL".split()
    + "printf malloc strlen abort toupper cabs floorf32x isnanf fabsd64 div_int32 to_uint8f".split()
    + [""],
)
def test_names_that_c_does_not_have_are_refused(name):
    with pytest.raises(rb.ArgumentError, match="name must be an identifier of C"):
        rb.generate_c(robots.pendulum(), "fk", name=name)
    with pytest.raises(rb.DtypeError, match="name must be a string"):
        rb.generate_c(robots.pendulum(), "fk", name=untyped(3))


@pytest.mark.slow
def test_no_function_is_called_as_one_that_gcc_knows(tmp_path):
    """Of all names of built-in functions in the compiler, it tells which it knows without their prefix."""
    if shutil.which("gcc") is None or not (path := Path(run("gcc", "-print-prog-name=cc1").strip())).is_file():
        pytest.skip("no gcc")
    names = set(re.findall(rb"__builtin_([a-zA-Z_]\w*)\0", path.read_bytes()))
    declared = "".join(f"void {name.decode()}(const double *q, double *r);\n" for name in sorted(names))
    (tmp_path / "names.c").write_text(declared)
    gcc = ["gcc", "-fsyntax-only", "-Wbuiltin-declaration-mismatch", "-fmax-errors=0", tmp_path / "names.c"]
    done = subprocess.run(gcc, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    known = set(re.findall(r"(?:warning|error): .*?'(\w+)'", done.stderr))
    assert {"printf", "sin", "memcpy"} <= known
    assert sorted(name for name in known if not is_declared(name)) == []


def test_names_of_headers_compile_as_arguments(tmp_path):
    def total(model, j0, gamma, M_PI, asm, unix, HUGE_VAL, erf, work_q, M):
        return ((j0 + gamma) + (M_PI + asm)) + ((unix + HUGE_VAL) + (erf + work_q)) + M

    names = "j0 gamma M_PI asm unix HUGE_VAL erf work_q M".split()
    x = jax.ShapeDtypeStruct((), FLOAT)
    code = rb.generate_c(robots.pendulum(), (total, dict.fromkeys(names, x)), name="total")
    assert list(code.arguments) == [
        "j0",
        "gamma",
        "own_M_PI",
        "asm_",
        "unix_",
        "own_HUGE_VAL",
        "erf_",
        "own_work_q",
        "M",
    ]
    (call,) = compiled(tmp_path, code)
    np.testing.assert_allclose(call(*(2.0**k for k in range(9))), [511.0])


def test_names_tell_what_was_chosen():
    arm = robots.two_link_arm()
    names = {rb.generate_c(arm, ("link_pose", {"link": link})).name for link in ("tool", "upper", 1)}
    assert names == {f"two_link_arm_link_pose_{link}" for link in ("tool", "upper", "1")}


def test_types_that_c_does_not_have_are_refused(tmp_path):
    with pytest.raises(rb.DtypeError, match="dtype must be float32 or float64, got bfloat16"):
        rb.generate_c(robots.pendulum(), "fk", jnp.bfloat16)
    with pytest.raises(rb.DtypeError, match="directory must be a path, got int"):
        rb.generate_c(robots.pendulum(), "fk").save(untyped(3))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(0.1), "0.1"), (np.float64(-3), "-3.0"), (np.float64(1e300), "1e+300"), (np.float32(0.1), "0.1f"),
        (np.float32(16777216), "1.6777216e+07f"), (np.float64(np.inf), "INFINITY"), (np.float32(-np.inf), "-INFINITY"),
        (np.float64(np.nan), "NAN"), (np.int32(-7), "-7"), (np.int64(2**40), "1099511627776LL"),
        (np.bool_(True), "true"),
    ],
)  # fmt: skip
def test_numbers_keep_their_digits(value, text):
    assert c_literal(value) == text


@pytest.mark.skipif(not X64, reason="the example is in double precision")
def test_the_example_in_cpp_of_the_documentation_runs(tmp_path):
    page = (ROOT / "docs" / "codegen.md").read_text()
    (example,) = re.findall(r"```cpp\n(.*?)```", page, re.DOTALL)
    (tmp_path / "main.cpp").write_text(example)
    _, source = rb.generate_c(robots.rby1a(), "gravity_forces", name="rby1a_gravity_forces").save(tmp_path)
    run(c_compiler(), "-std=c99", "-O1", "-c", source, "-o", tmp_path / "function.o")
    run("g++", "-std=c++17", *WARNINGS, tmp_path / "main.cpp", tmp_path / "function.o", "-o", tmp_path / "main")
    assert_close(float(run(tmp_path / "main")), pin_robot("rby1a").gravity(np.zeros(24))[3], 1e-9)
