"""Batches of batches are one batch: nested `vmap` gives what one `vmap` over all states gives, by the same program."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from tests.helpers import assert_close, compiled_text, normal, slow

OUTER, INNER = 3, 5


def rnea(model, q, v, a):
    return rb.rnea(model, q, v, a)


def gradient(f):
    def of(model, q, v, a):
        def loss(*x):
            return sum(jnp.sum(x**2) for x in jax.tree.leaves(f(model, *x)))

        return jax.grad(loss, (0, 1, 2))(q, v, a)

    return of


FUNCTIONS = {
    "rnea": rnea,
    "aba": lambda model, q, v, a: rb.aba(model, q, v, a),
    "crba": lambda model, q, v, a: rb.crba(model, q),
    "fk": lambda model, q, v, a: rb.fk(model, q),
    "rnea_derivatives": lambda model, q, v, a: rb.rnea_derivatives(model, q, v, a),
    "gradient_of_rnea": gradient(rnea),
    "gradient_of_fk": gradient(lambda model, q, v, a: rb.fk(model, q)),
    "jacobian_of_rnea": lambda model, q, v, a: jax.jacfwd(rnea, (1, 2))(model, q, v, a),
}
functions = pytest.mark.parametrize("name", ["rnea", "fk", *slow(*(x for x in FUNCTIONS if x not in ("rnea", "fk")))])


def model_and_states(*batch):
    model = robots.two_link_arm()
    model = jax.tree.map(lambda x: x.astype(normal(0).dtype), model)
    return model, [normal(k, *batch, 2) for k in range(3)]


def flat(f, axes=(None, 0, 0, 0)):
    return jax.jit(jax.vmap(f, axes))


def nested(f, outer=(None, 0, 0, 0), inner=(None, 0, 0, 0)):
    return jax.jit(jax.vmap(jax.vmap(f, inner), outer))


def check(got, want):
    jax.tree.map(lambda x, y: assert_close(x.reshape(y.shape), y, kind="solve"), got, want)


def opcodes(f, *arguments):
    """How many operations of each kind a compiled program has."""
    found = re.findall(r"= .*?\s([a-z][a-z-]*)\(", compiled_text(f.lower(*arguments)))
    return {name: found.count(name) for name in set(found)}


@pytest.mark.ci
@functions
def test_nested_is_flat(name):
    model, xs = model_and_states(OUTER, INNER)
    check(nested(FUNCTIONS[name])(model, *xs), flat(FUNCTIONS[name])(model, *(x.reshape(-1, 2) for x in xs)))


def kernels(f, *arguments):
    """The types of the results of each kernel of a compiled program, sorted."""
    text = compiled_text(f.lower(*arguments))
    return sorted(re.findall(r"= (\(.*\)) fusion\(.*rbydyn_boundary", text))


@pytest.mark.ci
@functions
def test_the_compiled_program_is_that_of_one_batch(name):
    """Beyond one tile: as many loops and products, and kernels of the same arrays."""
    model, xs = model_and_states(32, 32)
    one, given = flat(FUNCTIONS[name]), [x.reshape(-1, 2) for x in xs]
    got, want = opcodes(nested(FUNCTIONS[name]), model, *xs), opcodes(one, model, *given)
    assert {x: got.get(x) for x in ("while", "dot")} == {x: want.get(x) for x in ("while", "dot")}
    assert kernels(nested(FUNCTIONS[name]), model, *xs) == kernels(one, model, *given) != []


@pytest.mark.ci
def test_three_batches_and_other_axes():
    model, xs = model_and_states(2, OUTER, INNER)
    want = flat(rnea)(model, *(x.reshape(-1, 2) for x in xs))
    thrice = jax.jit(jax.vmap(jax.vmap(jax.vmap(rnea, (None, 0, 0, 0)), (None, 0, 0, 0)), (None, 0, 0, 0)))
    check(thrice(model, *xs), want)
    assert opcodes(thrice, model, *xs).get("fusion") == opcodes(flat(rnea), model, *(x.reshape(-1, 2) for x in xs)).get(
        "fusion"
    )
    q, v, a = (x[0] for x in xs)  # (OUTER, INNER, 2)
    want = flat(rnea)(model, *(x.reshape(-1, 2) for x in (q, v, a))).reshape(OUTER, INNER, 2)
    other = jax.vmap(jax.vmap(rnea, (None, 0, 1, 0), 1), (None, 1, 2, 0), 2)  # outer the axis INNER
    got = jax.jit(other)(model, q, jnp.moveaxis(v, (0, 1, 2), (1, 2, 0)), jnp.swapaxes(a, 0, 1))
    assert_close(got, jnp.moveaxis(want, 2, 0))


def batch_of_models(model, number):
    models = [rb.with_gravity(model, normal(k, 3)) for k in range(number)]
    return rb.stack_models(
        [m.__class__(**{**m.__dict__, "inertias": m.inertias * (1 + k)}) for k, m in enumerate(models)]
    )


@pytest.mark.ci
@pytest.mark.parametrize("name", ["rnea", *slow("crba", "gradient_of_rnea", "gradient_of_fk")])
@pytest.mark.parametrize("level", ["outer", "inner", "both"])
def test_models_in_one_of_the_batches(name, level):
    """Models of the outer or the inner batch, with states of both, of the other one or of one alone."""
    model, (q, v, a) = model_and_states(OUTER, INNER)
    f = FUNCTIONS[name]
    models = batch_of_models(model, OUTER if level == "outer" else INNER)
    which = np.indices((OUTER, INNER))[0 if level == "outer" else 1]
    if level == "both":
        models = batch_of_models(model, OUTER * INNER)
        which = np.arange(OUTER * INNER).reshape(OUTER, INNER)
        models = jax.tree.map(lambda x: x.reshape(OUTER, INNER, *x.shape[1:]), models)
    m_outer, m_inner = (0 if level in ("outer", "both") else None), (0 if level in ("inner", "both") else None)
    got = nested(f, (m_outer, 0, None, 0), (m_inner, 0, 0, None))(models, q, v[0], a[:, 0])
    whole = jax.tree.map(lambda x: x.reshape(OUTER * INNER, *x.shape[2:]), models) if level == "both" else models
    each = jax.tree.map(lambda x: x[which.ravel()], whole)
    vs, accelerations = (jnp.broadcast_to(x, (OUTER, INNER, 2)).reshape(-1, 2) for x in (v[:1], a[:, :1]))
    check(got, flat(f, (0, 0, 0, 0))(each, q.reshape(-1, 2), vs, accelerations))


@pytest.mark.ci
@pytest.mark.parametrize("name", ["rnea", *slow("fk", "crba", "aba")])
def test_gradients_through_and_between_the_batches(name):
    model, (q, v, a) = model_and_states(OUTER, INNER)
    f = FUNCTIONS[name]

    def loss(g):
        return lambda q: sum(jnp.sum(x**2) for x in jax.tree.leaves(g(model, q, v, a)))

    def along(q, v, a):
        return jax.grad(lambda q: jnp.sum(jax.vmap(f, (None, 0, 0, 0))(model, q, v, a) ** 2))(q)

    one = flat(gradient(f))(model, *(x.reshape(-1, 2) for x in (q, v, a)))[0].reshape(q.shape)
    assert_close(jax.jit(jax.grad(loss(nested(f))))(q), one, kind="solve")
    assert_close(jax.jit(jax.vmap(along))(q, v, a), one, kind="solve")
    slope = jax.jit(lambda q: jax.jvp(lambda q: nested(f)(model, q, v, a), (q,), (v,))[1])(q)
    want = flat(lambda m, q, v, a: jax.jvp(lambda q: f(m, q, v, a), (q,), (v,))[1])
    check(slope, want(model, *(x.reshape(-1, 2) for x in (q, v, a))))


@pytest.mark.ci
def test_scans_inside_and_outside():
    model, (q, v, a) = model_and_states(OUTER, INNER)
    rows = jax.vmap(rnea, (None, 0, 0, 0))

    def outside(q, v, a):
        return jax.lax.scan(lambda c, x: (c, jax.vmap(rows, (None, 0, 0, 0))(model, *x)), 0, (q, v, a))[1]

    def inside(q, v, a):
        return jax.vmap(lambda *x: jax.lax.scan(lambda c, y: (c, rows(model, *(z[None] for z in y))[0]), 0, x)[1])(
            q, v, a
        )

    want = nested(rnea)(model, q, v, a)
    twice = tuple(jnp.stack([x, x]) for x in (q, v, a))
    assert_close(jax.jit(outside)(*twice), jnp.stack([want, want]))
    assert_close(jax.jit(inside)(q, v, a), want)


@pytest.mark.slow
@pytest.mark.parametrize(("outer", "inner"), [(0, 4), (4, 0), (0, 0), (1, 1)])
def test_empty_and_single_batches(outer, inner):
    model, xs = model_and_states(outer, inner)
    with jax.checking_leaks():
        got = jax.vmap(jax.vmap(rnea, (None, 0, 0, 0)), (None, 0, 0, 0))(model, *xs)
    assert got.shape == (outer, inner, 2) and got.dtype == xs[0].dtype


@pytest.mark.slow
def test_results_without_use_are_not_computed():
    model, xs = model_and_states(4, 8)
    f = FUNCTIONS["rnea_derivatives"]
    one = nested(lambda *x: f(*x).dtau_da)
    assert opcodes(one, model, *xs)["fusion"] < opcodes(nested(f), model, *xs)["fusion"]
    program = str(jax.make_jaxpr(jax.vmap(lambda *x: f(model, *x).dtau_da))(*(x[0] for x in xs)))
    assert "rbydyn_tiles" in program
