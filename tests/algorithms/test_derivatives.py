"""Analytic derivatives against pinocchio, against differentiation of the plain algorithms, and to second order."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax.algorithms import _newton_euler, forward_dynamics
from rbydyn_jax.algorithms._linear import LinearMap, apply_linear
from rbydyn_jax.spatial import se3
from tests.helpers import X64, assert_close, normal

from .cases import ROBOTS, TREES, pin_robot, robot, run, states

every_tree = pytest.mark.parametrize("name", TREES)
every_robot = pytest.mark.parametrize("name", ROBOTS)
needs_float64 = pytest.mark.skipif(not X64, reason="compared far below float32's resolution")

# Functions of (model, q, v, a or tau, f_ext): with their rules, and as they are without.
RULES = {
    "rnea": (rb.rnea, _newton_euler._plain),
    "bias": (
        lambda m, q, v, a, f: rb.bias_forces(m, q, v),
        lambda m, q, v, a, f: _newton_euler._plain(m, q, v, None, None),
    ),
    "gravity": (
        lambda m, q, v, a, f: rb.gravity_forces(m, q),
        lambda m, q, v, a, f: _newton_euler._plain(m, q, None, None, None),
    ),
    "aba": (rb.aba, forward_dynamics._plain),
}
every_rule = pytest.mark.parametrize("which", RULES)


def one(name, seed=0):
    s = states(name, 2, seed)
    return s.q[0], s.v[0], s.a[0], s.f_ext[0]


def matrices(function):
    return lambda *x: jax.tree.leaves(function(*x))


def assert_all_close(got, want, **how):
    got, want = jax.tree.leaves(got), jax.tree.leaves(want)
    assert len(got) == len(want)
    for x, y in zip(got, want, strict=True):
        assert_close(x, y, **how)


@pytest.mark.float32
@every_robot
def test_rnea_derivatives(name):
    model, s, twin = robot(name), states(name, 10), pin_robot(name)
    got = run(matrices(lambda *x: rb.rnea_derivatives(model, *x)), s.q, s.v, s.a, s.f_ext)
    want = [twin.rnea_derivatives(*row) for row in zip(s.q, s.v, s.a, s.f_ext, strict=True)]
    for part, matrix in zip(got, zip(*want, strict=True), strict=True):
        assert_close(part, np.stack(matrix))


@pytest.mark.float32
@every_robot
def test_aba_derivatives(name):
    model, s, twin = robot(name), states(name, 10), pin_robot(name)
    got = run(matrices(lambda *x: rb.aba_derivatives(model, *x)), s.q, s.v, s.tau, s.f_ext)
    want = [twin.aba_derivatives(*row) for row in zip(s.q, s.v, s.tau, s.f_ext, strict=True)]
    for part, matrix in zip(got, zip(*want, strict=True), strict=True):
        assert_close(part, np.stack(matrix), kind="solve")


@needs_float64
@every_tree
@every_rule
def test_rules_equal_differentiation_of_the_plain_algorithm(name, which):
    """Gradients, Jacobians both ways, tangents, and batches of them inside and outside."""
    model, arguments, weight = robot(name), one(name), normal(5, robot(name).nv)
    wrt = tuple(range(4))

    def all_of(f):
        g = lambda *x: f(model, *x)  # noqa: E731
        loss = lambda *x: weight @ g(*x)  # noqa: E731
        batch = tuple(jnp.stack([x, 0.9 * x]) for x in arguments)
        return {
            "grad": jax.grad(loss, wrt)(*arguments),
            "jacfwd": jax.jacfwd(g, (0, 1, 2))(*arguments),
            "jacrev": jax.jacrev(g, (0, 1, 2))(*arguments),
            "jvp": jax.jvp(g, arguments, arguments),
            "vmap of grad": jax.vmap(jax.grad(loss, wrt))(*batch),
            "grad of vmap": jax.grad(lambda *x: jax.vmap(loss)(*x).sum(), wrt)(*batch),
            "vmap of jacfwd": jax.vmap(jax.jacfwd(g))(*batch),
            "one q, many v": jax.vmap(jax.grad(loss, 1), (None, 0, None, None))(
                arguments[0], *batch[1:2], *arguments[2:]
            ),
        }

    ruled, plain = RULES[which]
    got, want = jax.jit(lambda: all_of(ruled))(), jax.jit(lambda: all_of(plain))()
    for key in got:
        for x, y in zip(jax.tree.leaves(got[key]), jax.tree.leaves(want[key]), strict=True):
            assert_close(x, y, 1e-10, scale=max(float(np.abs(y).max()), 1.0))


@needs_float64
@every_tree
@pytest.mark.parametrize("which", ["rnea", "aba"])
def test_hessians_equal_differentiation_of_the_plain_algorithm(name, which):
    model, (q, v, a, f), weight = robot(name), one(name), normal(5, robot(name).nv)

    def hessians(f_):
        loss = lambda q, v: weight @ f_(model, q, v, a, f) ** 2  # noqa: E731
        return jax.hessian(loss, (0, 1))(q, v), jax.jacrev(jax.grad(loss))(q, v)

    ruled, plain = RULES[which]
    for x, y in zip(*(jax.tree.leaves(jax.jit(lambda g=g: hessians(g))()) for g in (ruled, plain)), strict=True):
        assert_close(x, y, 1e-9)


@needs_float64
@pytest.mark.parametrize("which", ["rnea_derivatives", "aba_derivatives"])
def test_second_order_tensors_against_differences_of_pinocchios_first_order(which):
    name = "every_type"
    model, twin, (q, v, a, f) = robot(name), pin_robot(name), one(name, 3)
    first = lambda dv, v: jax.tree.leaves(getattr(rb, which)(model, rb.integrate(model, q, dv), v, a, f))  # noqa: E731
    tensors = jax.jit(jax.jacfwd(first, (0, 1)))(jnp.zeros(model.nv), v)
    theirs = getattr(twin, which)
    step = 1e-5
    for k in (0, 4, 9, 15):
        e = np.eye(model.nv)[k] * step
        ahead, behind = (theirs(rb.integrate(model, q, jnp.asarray(x)), v, a, f) for x in (e, -e))
        for tensor, plus, minus in zip(tensors, ahead, behind, strict=True):
            assert_close(tensor[0][..., k], (plus - minus) / (2 * step), kind="difference")
        ahead, behind = (theirs(q, np.asarray(v) + x, a, f) for x in (e, -e))
        scale = max(float(np.abs(t[1]).max()) for t in tensors)
        for tensor, plus, minus in zip(tensors, ahead, behind, strict=True):
            assert_close(tensor[1][..., k], (plus - minus) / (2 * step), kind="difference", scale=scale)


@needs_float64
@every_tree
def test_numbers_of_the_model_have_derivatives(name):
    """Of aba by its rule (through rnea) as of the plain algorithm, alone and together with q."""
    model, (q, v, tau, f), weight = robot(name), one(name), normal(5, robot(name).nv)
    twists = 0.1 * normal(7, model.nb, 6)

    def moved(numbers):
        turned = jnp.einsum("bij,bjk->bik", model.joint_placements, jax.vmap(se3.exp)(numbers["twists"] + twists))
        changed = rb.with_geometry(rb.unstructured(model), joint_placements=turned)
        return dataclasses.replace(
            changed, inertias=numbers["inertias"], gravity=numbers["gravity"], armature=numbers["armature"]
        )

    def gradients(f_):
        def loss(numbers, q):
            return weight @ f_(moved(numbers), q, v, tau, f)

        numbers = {
            "twists": jnp.zeros_like(twists),
            "inertias": model.inertias,
            "gravity": model.gravity,
            "armature": model.armature,
        }
        return jax.jit(jax.grad(loss, (0, 1)))(numbers, q)

    ruled, plain = RULES["aba"]
    assert_all_close(gradients(ruled), gradients(plain), tol=1e-9)


def test_the_gradient_of_a_scalar_forms_no_matrix_and_a_jacobian_one_sweep():
    model = robot("panda_like")
    q, v, a, _ = one("panda_like")
    n = model.nv
    text = jax.jit(jax.grad(lambda *x: rb.rnea(model, *x).sum(), (0, 1, 2))).lower(q, v, a).as_text()
    assert f"{n}x{n}x" not in text
    assert text.count("xla_cpu_small_call") == 2 * model.nb + 1  # out and in, and the sines: the value itself is unused
    jacobian = jax.jit(jax.jacfwd(lambda q: rb.rnea(model, q, v, a))).lower(q).as_text()
    assert f"{n}x{n}x" in jacobian
    assert jacobian.count("xla_cpu_small_call") < model.nb + 12  # the poses, and stages for all bodies at once


CAPTURED = {
    "scan": lambda f, q: jax.lax.scan(lambda c, _: (c - 0.01 * f(c), None), q, None, length=3)[0],
    "fori": lambda f, q: jax.lax.fori_loop(0, 3, lambda k, c: c - 0.01 * f(c), q),
    "while": lambda f, q: jax.lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] - 0.01 * f(c[0]), c[1] + 1), (q, 0))[
        0
    ],
    "cond": lambda f, q: jax.lax.cond(q[0] > 100.0, f, lambda x: -f(x), q),
    "checkpoint": lambda f, q: jax.checkpoint(f)(q),
}


@pytest.mark.parametrize("how", CAPTURED)
def test_captured_robots_inside_control_flow(how):
    """Constants inside of loops and branches must not end the process, nor change a number."""
    model = robot("panda_like")
    q, v, _, _ = one("panda_like")

    def step(model, v):
        gradient = jax.grad(lambda x: (rb.rnea(model, x, v, v) ** 2).sum())
        return lambda x: jnp.tanh(gradient(x) + rb.aba(model, x, v, v))

    captured = jax.jit(lambda q: CAPTURED[how](step(model, v), q))(q)
    given = jax.jit(lambda m, q, v: CAPTURED[how](step(m, v), q))(model, q, v)
    assert_close(captured, given, kind="solve")


@dataclasses.dataclass(frozen=True)
class _Times(LinearMap):
    """y = A x for the matrix A that is its parameter."""

    transposed: bool = False
    dense: bool = True

    def apply(self, parameters, arguments):
        return ((parameters.T if self.transposed else parameters) @ arguments[0],)

    def transpose(self):
        return _Times(not self.transposed, self.dense)

    def matrix(self, parameters):
        return [[parameters.T if self.transposed else parameters]] if self.dense else None


@pytest.mark.parametrize("dense", [True, False])
def test_linear_maps_under_every_transformation(dense):
    A, x, B = normal(0, 4, 3), normal(1, 3), normal(2, 8, 4, 3)
    times = lambda A, x: apply_linear(_Times(dense=dense), A, (x,), [(A.shape[0],)])[0]  # noqa: E731
    loss = lambda A, x: jnp.sin(times(A, x)).sum()  # noqa: E731
    reference = lambda A, x: jnp.sin(A @ x).sum()  # noqa: E731
    assert_close(times(A, x), A @ x)
    assert_close(jax.jacfwd(times, 1)(A, x), A)
    assert_close(jax.jacrev(times, 1)(A, x), A)
    assert_all_close(jax.grad(loss, (0, 1))(A, x), jax.grad(reference, (0, 1))(A, x))
    assert_all_close(jax.hessian(loss, (0, 1))(A, x), jax.hessian(reference, (0, 1))(A, x))
    batched = jax.vmap(jax.grad(loss, (0, 1)), (0, None))(B, x)
    assert_all_close(batched, jax.vmap(jax.grad(reference, (0, 1)), (0, None))(B, x))
    many = normal(3, 8, 3)
    assert_close(jax.vmap(times, (None, 0))(A, many), many @ A.T)
    twice = jax.vmap(jax.vmap(times, (None, 0)), (0, None))(B, many)
    assert_close(twice, jnp.einsum("bij,kj->bki", B, many))
    pulled = jax.grad(lambda A: jax.vmap(times, (None, 0))(A, many).sum())(A)
    assert_close(pulled, jax.grad(lambda A: (many @ A.T).sum())(A))
