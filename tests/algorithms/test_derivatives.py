"""Analytic derivatives against pinocchio, against differentiation of the plain algorithms, and to second order."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax.algorithms import aba, crba, inertial_wrench, kinematics, momentum_columns, rnea
from rbydyn_jax.algorithms.derivatives import inverse_dynamics_matrices
from rbydyn_jax.engines.conventions import swap_rows
from rbydyn_jax.spatial import se3
from rbydyn_jax.sweeps.plan import traverse
from rbydyn_jax.testing import random_tree
from rbydyn_jax.xla.transpose import LinearMap, apply_linear
from tests.helpers import X64, assert_close, normal, oracle, slow

from .cases import ROBOTS, pin_robot, robot, run, states

every_robot = pytest.mark.parametrize("name", ROBOTS)
needs_float64 = pytest.mark.skipif(not X64, reason="compared far below float32's resolution")

# Functions of (model, q, v, a or tau, f_ext): with their rules, and as they are without.
RULES = {
    "rnea": (rb.rnea, rnea._plain),
    "bias": (
        lambda m, q, v, a, f: rb.bias_forces(m, q, v),
        lambda m, q, v, a, f: rnea._plain(m, q, v, None, None),
    ),
    "gravity": (
        lambda m, q, v, a, f: rb.gravity_forces(m, q),
        lambda m, q, v, a, f: rnea._plain(m, q, None, None, None),
    ),
    "aba": (rb.aba, aba._plain),
    "fk": (
        lambda m, q, v, a, f: projected(m, rb.fk(m, q)),
        lambda m, q, v, a, f: projected(m, kinematics._plain(kinematics._all, m, q)),
    ),
    "body_poses": (
        lambda m, q, v, a, f: projected(m, rb.body_poses(m, q)),
        lambda m, q, v, a, f: projected(m, kinematics._plain(kinematics._principal, m, q)),
    ),
    "crba": (
        lambda m, q, v, a, f: projected(m, rb.crba(m, q)),
        lambda m, q, v, a, f: projected(m, traverse(m, crba._crba, q)),
    ),
    "momentum_matrix": (
        lambda m, q, v, a, f: projected(m, rb.momentum_matrix(m, q)),
        lambda m, q, v, a, f: projected(m, traverse(m, momentum_columns._columns, q)),
    ),
    "inertial_wrench": (
        lambda m, q, v, a, f: projected(m, inertial_wrench.inertial_wrench(m, q, v, a)),
        lambda m, q, v, a, f: projected(m, inertial_wrench._plain(m, q, v, a)),
    ),
}


def projected(model, result):
    """As many numbers as there are forces, made of all of the result."""
    return normal(7, model.nv, result.size) @ result.reshape(-1)


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


@pytest.mark.slow
@pytest.mark.float32
@every_robot
@pytest.mark.parametrize("which", ["rnea_derivatives", "aba_derivatives"])
def test_matrices_against_pinocchio(which, name):
    model, s, twin = robot(name), states(name, 10), pin_robot(name)
    inputs = (s.q, s.v, s.a if which == "rnea_derivatives" else s.tau, s.f_ext)
    got = run(matrices(lambda *x: getattr(rb, which)(model, *x)), *inputs)
    want = [getattr(twin, which)(*row) for row in zip(*inputs, strict=True)]
    for part, matrix in zip(got, zip(*want, strict=True), strict=True):
        assert_close(part, np.stack(matrix), kind="value" if which == "rnea_derivatives" else "solve")


@pytest.mark.slow
@pytest.mark.float32
@pytest.mark.parametrize("name", ["few_types", "short"])
def test_changes_of_the_mass_matrix_against_pinocchio(name):
    """Its gradient, from the derivatives of inverse dynamics at rest; its rate C + C^T; and those of momentum."""
    pin, model, twin, (q, v, a, f) = oracle("pinocchio"), robot(name), pin_robot(name), one(name)
    weights, still, wrench = normal(8, model.nv), jnp.zeros_like(v), np.asarray(normal(9, 6))

    @jax.jit
    def found(q):
        def at(dv):
            moved = rb.integrate(model, q, dv)
            M, A = rb.crba(model, moved), rb.centroidal_momentum_matrix(model, moved)
            return M, weights @ M @ a, wrench @ A @ a, wrench @ rb.centroidal_momentum(model, moved, a)

        gradients = [jax.grad(lambda dv, k=k: at(dv)[k])(still) for k in (1, 2, 3)]
        return jax.jvp(lambda dv: at(dv)[0], (still,), (v,))[1], *gradients

    rate, gradient, of_matrix, of_momentum = found(q)
    moving, resting = (twin.rnea_derivatives(q, still, x, 0 * f)[0] for x in (a, still))
    assert_close(gradient, np.asarray(weights) @ (moving - resting))
    C = twin.coriolis_matrix(q, v)
    assert_close(rate, C + C.T)
    along, want = np.eye(model.nv, dtype=v.dtype), []
    for e in along:  # pinocchio's matrix changes about the point where the centre of mass is now
        dA = pin.computeCentroidalMapTimeVariation(twin.model, twin.data, twin.q(q), twin.v(e))
        p = pin.computeCentroidalMomentum(twin.model, twin.data, twin.q(q), twin.v(a)).linear.copy()
        dc = pin.jacobianCenterOfMass(twin.model, twin.data, twin.q(q)) @ twin.G @ e
        want.append(swap_rows(wrench) @ dA @ twin.v(a) - wrench[:3] @ np.cross(dc, p))
    for x in (of_matrix, of_momentum):
        assert_close(x, np.stack(want))


@functools.cache
def small(which):
    """A free body with a few joints, and a chain with a mimic joint."""
    if which == "mimic":
        return random_tree(0, ("revolute", "prismatic"), 3, branching=0.0, mimics=1)
    return random_tree(6, ("floating", "revolute", "spherical"), 3, branching=0.0)


@functools.cache
def plain_jacobians(name, which):
    """The value of an algorithm and its Jacobians at two states, by differentiation without rules."""
    model, batch = small(name), small_states(name)
    plain = RULES[which][1]
    both = jax.jacfwd(lambda *x: (plain(model, *x),) * 2, (0, 1, 2, 3), has_aux=True)
    return jax.jit(jax.vmap(both))(*batch)


def small_states(name):
    model = small(name)
    q = jnp.stack([rb.random_configuration(model, jax.random.key(k)) for k in (0, 1)])
    return q, normal(1, 2, model.nv), normal(2, 2, model.nv), normal(3, 2, model.nb, 6)


# For each way to differentiate: of g(q, v, a, f) with cotangent w and states x (a batch of two: b), and what it is in
# terms of the Jacobians J, those of the first state and of both.
WAYS = {
    "grad": (
        lambda g, w, x, b: jax.grad(lambda *y: w @ g(*y), (0, 1, 2, 3))(*x),
        lambda J, w: [w @ flat(j[0]) for j in J],
    ),
    "jacfwd": (lambda g, w, x, b: jax.jacfwd(g, (0, 1, 2))(*x), lambda J, w: [j[0] for j in J[:3]]),
    "jacrev": (lambda g, w, x, b: jax.jacrev(g, (0, 1, 2))(*x), lambda J, w: [j[0] for j in J[:3]]),
    "vmap of grad": (
        lambda g, w, x, b: jax.vmap(jax.grad(lambda *y: w @ g(*y), (0, 1)))(*b),
        lambda J, w: [jnp.einsum("i,bij->bj", w, j) for j in J[:2]],
    ),
    "grad of vmap": (
        lambda g, w, x, b: jax.grad(lambda *y: (jax.vmap(g)(*y) @ w).sum(), (0, 1))(*b),
        lambda J, w: [jnp.einsum("i,bij->bj", w, j) for j in J[:2]],
    ),
    "vmap of jacfwd": (lambda g, w, x, b: [jax.vmap(jax.jacfwd(g))(*b)], lambda J, w: [J[0]]),
}


def flat(J):
    return J.reshape(J.shape[0], -1)


@needs_float64
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "which", "way"),
    [
        *(("free", which, way) for which in ("fk", "rnea", "aba") for way in WAYS),
        # What a batch does with a rule does not depend on mimic joints, nor on which terms are asked of `rnea`.
        *(("mimic", which, way) for which in ("fk", "gravity", "bias", "aba") for way in ("grad", "jacfwd")),
        *(("free", "crba", way) for way in ("grad", "jacfwd", "vmap of grad", "grad of vmap")),
        *(("mimic", which, "grad") for which in ("crba", "momentum_matrix", "inertial_wrench")),
        *(("free", which, "grad") for which in ("momentum_matrix", "inertial_wrench")),
        *(("mimic", "body_poses", way) for way in ("grad", "jacfwd", "grad of vmap")),
    ],
)
def test_rules_equal_differentiation_of_the_plain_algorithm(name, which, way):
    model, batch = small(name), small_states(name)
    weight, (jacobians, value) = normal(5, model.nv), plain_jacobians(name, which)
    ruled = lambda *x: RULES[which][0](model, *x)  # noqa: E731
    first = tuple(x[0] for x in batch)
    take, expected = WAYS[way]
    got = jax.jit(lambda: take(ruled, weight, first, batch))()
    assert_close(ruled(*first), value[0], kind="solve")
    for x, y in zip(got, expected(jacobians, weight), strict=True):
        assert_close(x.reshape(y.shape), y, 1e-10, scale=max(float(np.abs(y).max()), 1.0))


@pytest.mark.slow
@needs_float64
@pytest.mark.parametrize(
    ("name", "which"), [("free", "rnea"), ("mimic", "aba"), ("free", "fk"), ("mimic", "fk"), ("mimic", "crba")]
)
def test_hessians_equal_differentiation_of_the_plain_algorithm(name, which):
    model, batch = small(name), small_states(name)
    (q, v, a, f), weight = (x[0] for x in batch), normal(5, model.nv)

    def hessian(f_):
        return jax.jit(jax.hessian(lambda q, v: weight @ f_(model, q, v, a, f) ** 2, (0, 1)))(q, v)

    ruled, plain = RULES[which]
    want = hessian(plain)
    assert_all_close(hessian(ruled), want, tol=1e-9)
    if name == "mimic":  # the smaller program
        loss = lambda q: weight @ ruled(model, q, v, a, f) ** 2  # noqa: E731
        assert_close(jax.jit(jax.jacrev(jax.grad(loss)))(q), want[0][0], 1e-9)


@pytest.mark.slow
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
        along_q = [theirs(rb.integrate(model, q, jnp.asarray(x)), v, a, f) for x in (e, -e)]
        along_v = [theirs(q, np.asarray(v) + x, a, f) for x in (e, -e)]
        for which_argument, (ahead, behind) in enumerate((along_q, along_v)):
            for tensor, plus, minus in zip(tensors, ahead, behind, strict=True):
                scale = float(np.abs(tensor[0]).max())
                got = tensor[which_argument][..., k]
                assert_close(got, (plus - minus) / (2 * step), kind="difference", scale=scale)


@pytest.mark.slow
@needs_float64
def test_numbers_of_the_model_have_derivatives():
    """Those of placements, inertias, gravity and rotors, together with those of q, as of the plain algorithm.

    Those of a tree with mimic joints: `test_gradients_with_respect_to_every_leaf`.
    """
    model, batch = small("free"), small_states("free")
    (q, v, tau, f), weight = (x[0] for x in batch), normal(5, model.nv)
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


@pytest.mark.ci
def test_the_gradient_of_a_scalar_forms_no_matrix_and_a_jacobian_one_sweep():
    model = robot("panda_like")
    q, v, a, _ = one("panda_like")
    n = model.nv
    text = jax.jit(jax.grad(lambda *x: rb.rnea(model, *x).sum(), (0, 1, 2))).lower(q, v, a).as_text()
    assert f"{n}x{n}x" not in text
    assert text.count("mhlo.fusion") == 2 * model.nb + 1  # out and in, and the sines: the value itself is unused
    jacobian = jax.jit(jax.jacfwd(lambda q: rb.rnea(model, q, v, a))).lower(q).as_text()
    assert f"{n}x{n}x" in jacobian
    assert jacobian.count("mhlo.fusion") < model.nb + 12  # the poses, and stages for all bodies at once


CAPTURED = {
    "scan": lambda f, q: jax.lax.scan(lambda c, _: (c - 0.01 * f(c), None), q, None, length=3)[0],
    "while": lambda f, q: jax.lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] - 0.01 * f(c[0]), c[1] + 1), (q, 0))[
        0
    ],
    "cond": lambda f, q: jax.lax.cond(q[0] > 100.0, f, lambda x: -f(x), q),
    "checkpoint": lambda f, q: jax.checkpoint(f)(q),
}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["scan", *slow("while", "cond", "checkpoint")])
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


@pytest.mark.slow
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


@pytest.mark.ci
@pytest.mark.parametrize("name", ["few_types", "mimic"])
def test_forces_come_with_their_derivatives(name):
    """Of robots with rotors: those of `rnea`, which Pinocchio checks in `test_dynamics`."""
    model = rb.with_armature(robot(name), jnp.linspace(0.1, 1.0, robot(name).nv))
    q, v, a, *_ = states(name)

    def of_one(q, v, a):
        moving = inverse_dynamics_matrices(model, q, v, a, None, wrt=("tau", "a"))
        return moving[0], moving[1] @ a, *inverse_dynamics_matrices(model, q, None, None, None, wrt=("tau",))

    moving, inertial, still = jax.jit(jax.vmap(of_one))(q, v, a)
    want, gravity = jax.vmap(lambda *x: rb.rnea(model, *x))(q, v, a), jax.vmap(lambda q: rb.gravity_forces(model, q))(q)
    assert_close(moving, want)
    assert_close(still, gravity)
    assert_close(moving - inertial, jax.vmap(lambda *x: rb.bias_forces(model, *x))(q, v), scale=np.abs(want).max())
