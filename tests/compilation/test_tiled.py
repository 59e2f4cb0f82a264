"""`tiled`: the same numbers and derivatives as without, a tile at a time."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import DtypeError, robots, tiled
from rbydyn_jax.model.states import random_states

from ..helpers import assert_close

SIZE = 300  # more than two tiles, and a rest


@functools.cache
def _states():
    panda = robots.panda_like()
    model = rb.lock_joints(panda, dict.fromkeys(panda.joint_names[3:], 0.1))
    return model, *random_states(model, jax.random.key(0), SIZE)


def _cost(model, q, v, a):
    """Forces, a pose, and a product of matrices."""
    tau, T = rb.rnea(model, q, v, a), rb.link_pose(model, q, model.link_names[-1])
    return tau @ tau / 100.0 + T[:3, 3].sum() + v @ rb.crba(model, q) @ v


def _features(model, q, v, a):
    return {"tau": rb.rnea(model, q, v, a), "largest": jnp.argmax(q), "J": rb.jacobian(model, q, model.link_names[-1])}


def _rows(f):
    return jax.jit(jax.vmap(f, in_axes=(None, 0, 0, 0)))


def _same(f, g, *args):
    got, want = g(*args), f(*args)
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert x.dtype == y.dtype
        assert_close(x, y, 1e-12)


@pytest.mark.parametrize("f", [_cost, _features], ids=["cost", "features"])
def test_values(f):
    _same(_rows(f), _rows(tiled(f)), *_states())


def test_one_configuration():
    model, *rest = _states()
    _same(_cost, tiled(_cost), model, *(x[0] for x in rest))


@pytest.mark.ci
@pytest.mark.parametrize("place", [1, 2, 3])
def test_gradients_inside_and_outside(place):
    want = _rows(jax.grad(_cost, place))
    _same(want, _rows(jax.grad(tiled(_cost), place)), *_states())
    _same(want, _rows(tiled(jax.grad(_cost, place))), *_states())


@pytest.mark.ci
def test_gradient_by_inertias():
    model, *rest = _states()

    def of_inertias(f, inertias, *rest):
        return f(eqx.tree_at(lambda m: m.inertias, model, inertias), *rest)

    def gradients(f):
        return _rows(jax.grad(functools.partial(of_inertias, f)))

    _same(gradients(_cost), gradients(tiled(_cost)), model.inertias, *rest)


@pytest.mark.ci
@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_matrices_of_derivatives(mode):
    model, *rest = _states()

    def features(*args):
        found = _features(*args)
        return found["tau"], found["J"]

    some = [x[:20] for x in rest]
    _same(_rows(mode(features, (1, 2))), _rows(mode(tiled(features), (1, 2))), model, *some)


@pytest.mark.ci
def test_second_derivatives():
    model, *rest = _states()
    some = [x[:20] for x in rest]
    _same(_rows(jax.hessian(_cost, 1)), _rows(jax.hessian(tiled(_cost), 1)), model, *some)


def test_gradient_with_integers_beside():
    def chosen(f, *args):
        found = f(*args)
        return found["tau"][found["largest"]]

    def gradients(f):
        return _rows(jax.grad(functools.partial(chosen, f), 1))

    _same(gradients(_features), gradients(tiled(_features)), *_states())


@pytest.mark.ci
def test_closes_over_what_is_traced():
    model, q, *_ = _states()

    def over(wrap, scale, q):
        return wrap(lambda q: jnp.sin(scale * q).sum() * rb.link_pose(model, q, model.link_names[-1])[0, 3])(q)

    plain, inside = (functools.partial(over, wrap) for wrap in (lambda f: f, tiled))
    scales = q[:, 0]
    _same(jax.vmap(plain), jax.vmap(inside), scales, q)
    _same(jax.vmap(plain, in_axes=(None, 0)), jax.vmap(inside, in_axes=(None, 0)), 2.0, q)
    _same(jax.vmap(jax.grad(plain, (0, 1))), jax.vmap(jax.grad(inside, (0, 1))), scales, q)
    _same(jax.jit(jax.grad(plain, (0, 1))), jax.jit(jax.grad(inside, (0, 1))), 2.0, q[0])


def test_vmap_in_vmap_and_a_robot_for_each():
    model, *rest = _states()
    models = rb.stack_models([model, rb.with_gravity(model, jnp.array([0.0, 0.0, -1.62]))])
    both = [x[:20].reshape(2, 10, -1) for x in rest]

    def nested(f):
        return jax.vmap(jax.vmap(f, in_axes=(None, 0, 0, 0)))

    _same(nested(_cost), nested(tiled(_cost)), models, *both)


def test_keywords_constants_and_numbers():
    model, q, *_ = _states()

    def height(model, q, *, link, scale=1.0):
        return scale * rb.link_pose(model, q, link)[2, 3]

    def rows(f):
        return jax.vmap(lambda q: f(model, q, link=model.link_names[-1], scale=2.0))

    _same(rows(height), rows(tiled(height)), q)
    assert tiled(height)(model, q[0], link=np.str_(model.link_names[-1])).shape == ()
    assert tiled(height).__name__ == "height"


def test_is_traced_once():
    model, q, *_ = _states()
    traces = []

    @tiled
    def height(model, q, link):
        traces.append(link)
        return rb.link_pose(model, q, link)[2, 3]

    for _ in range(3):
        height(model, q[0], model.link_names[-1])
        jax.grad(height, 1)(model, q[0], model.link_names[-1])
    assert len(traces) == 1
    height(model, q[0], model.link_names[-2])
    assert len(traces) == 2


def test_a_batch_is_one_loop():
    """What the functions hand on is no larger than a tile."""
    model, *rest = _states()
    largest = []
    for f in (_cost, tiled(_cost)):
        memory = _rows(f).lower(model, *(jnp.tile(x, (10, 1)) for x in rest)).compile().memory_analysis()
        assert memory is not None
        largest.append(memory.temp_size_in_bytes)
    assert largest[1] < 0.3 * largest[0]


@pytest.mark.ci
def test_float32_stays():
    model, *rest = _states()
    model, rest = jax.tree.map(lambda x: x.astype(jnp.float32), (model, rest))
    got = _rows(jax.grad(tiled(_cost), 1))(model, *rest)
    assert got.dtype == jnp.float32
    assert_close(got, _rows(jax.grad(_cost, 1))(model, *rest), 1e-4)


def test_nothing_batched():
    assert tiled(lambda: jnp.float32(2.0))() == 2.0
    assert jax.jit(tiled(lambda x: (x, 1)))(jnp.ones(2))[1] == 1
    empty = jax.vmap(tiled(_cost), in_axes=(None, 0, 0, 0))(_states()[0], *(x[:0] for x in _states()[1:]))
    assert empty.shape == (0,)


def test_collectives_over_the_rows():
    """They need all rows at once: there `tiled` does nothing."""

    def centered(q):
        return (q - jax.lax.pmean(q, "rows")) * jax.lax.axis_index("rows")

    def over_rows(f):
        return jax.vmap(lambda q: (f(q), jax.grad(lambda q: (f(q) ** 2).sum())(q)), axis_name="rows")(q)

    q = jax.random.normal(jax.random.key(0), (SIZE, 2))
    jax.tree.map(assert_close, over_rows(rb.tiled(centered)), over_rows(centered))


def test_refused():
    with pytest.raises(DtypeError, match="f must be a function"):
        tiled(3.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(DtypeError, match="f must return arrays, got str"):
        tiled(lambda x: "x")(jnp.ones(2))
    with pytest.raises(DtypeError, match=r"args\[1\] must be an array or hashable, got set"):
        tiled(lambda x, y: x)(jnp.ones(2), {1})


@pytest.mark.parametrize("array", [np.ones(2, ">f8"), np.array(["a"]), np.array([None])])
def test_arrays_that_jax_cannot_read(array):
    with pytest.raises(DtypeError, match=r"args\[0\]\['x'\] must be an array that JAX can read, got an array of"):
        tiled(lambda given: given)({"x": array})


def test_several_dtypes_and_keys():
    x, keys = jnp.linspace(0.0, 1.0, 2 * SIZE).reshape(SIZE, 2), jax.random.split(jax.random.key(0), SIZE)

    def mixed(key, x):
        return x.astype(jnp.float32).sum(), (x * jax.random.normal(key, (2,), x.dtype)).sum(), jnp.abs(x.sum() * 1j)

    def total(f, key, x):
        return sum(y.astype(x.dtype) for y in f(key, x))

    _same(jax.vmap(mixed), jax.vmap(tiled(mixed)), keys, x)
    gradients = (jax.vmap(jax.grad(functools.partial(total, f), 1)) for f in (mixed, tiled(mixed)))
    _same(*gradients, keys, x)


def test_loops_without_a_reverse():
    x = jnp.linspace(0.0, 1.0, 2 * SIZE).reshape(SIZE, 2)

    def grown(x):
        return jax.lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, 1.1 * s[1]), (0, x.sum()))[1]

    def change(f):
        return jax.vmap(lambda x: jax.jvp(f, (x,), (x,)))

    _same(change(grown), change(tiled(grown)), x)


def test_values_against_differences():
    """One that shares nothing with the rules of derivatives."""
    model, *rest = _states()
    q, v, a = (x[0] for x in rest)
    got, step = jax.grad(tiled(_cost), 1)(model, q, v, a), 1e-6
    units = np.eye(model.nq) * step
    want = [(_cost(model, q + e, v, a) - _cost(model, q - e, v, a)) / (2 * step) for e in units]
    assert_close(got, np.array(want), 1e-6)
