"""Programs on several devices are what they are on one: inside `shard_map`, through it, and on explicit meshes."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import rbydyn_jax as rb
from rbydyn_jax import collision, robots
from rbydyn_jax.shapes import CapsuleGeometry
from tests.helpers import assert_close, normal

FUNCTIONS = {
    "fk": rb.fk,
    "link_pose": lambda model, q: rb.link_pose(model, q, "tool"),
    "jacobian": lambda model, q: rb.jacobian(model, q, "tool"),
    "rnea": lambda model, q: rb.rnea(model, q, q, q),
    "aba": lambda model, q: rb.aba(model, q, q, q),
    "crba": rb.crba,
    "mass_matrix_inverse": rb.mass_matrix_inverse,
    "coriolis_matrix": lambda model, q: rb.coriolis_matrix(model, q, q),
    "rnea_derivatives": lambda model, q: rb.rnea_derivatives(model, q, q, q),
    "aba_derivatives": lambda model, q: rb.aba_derivatives(model, q, q, q),
    "com_jacobian": rb.com_jacobian,
    "momentum_matrix": rb.momentum_matrix,
    "kinetic_energy": lambda model, q: rb.kinetic_energy(model, q, q),
    "center_of_mass": rb.center_of_mass,
    "integrate": lambda model, q: rb.integrate(model, q, q),
    "link_acceleration": lambda model, q: rb.link_acceleration(model, q, q, q, "tool"),
    "tiled": rb.tiled(lambda model, q: rb.jacobian(model, q, "tool") @ rb.rnea(model, q, q, q)),
}
pytestmark = [
    pytest.mark.devices,
    pytest.mark.skipif(jax.device_count() < 2, reason="runs with RBYDYN_TEST_DEVICES=2 and -m devices"),
]

every_function = pytest.mark.parametrize("name", FUNCTIONS)


def half_square(tree):
    return 0.5 * sum(jnp.sum(x**2) for x in jax.tree.leaves(tree))


def batched(name):
    model = robots.two_link_arm()
    model = jax.tree.map(lambda x: x.astype(normal(0).dtype), model)
    return model, normal(0, 4, 2), jax.vmap(FUNCTIONS[name], (None, 0))


def check(got, want):
    jax.tree.map(lambda x, y: assert_close(np.asarray(x), np.asarray(y), kind="solve"), got, want)


MESH = Mesh(np.array(jax.devices()[:2]), ("b",))


def on_shards(f):
    return jax.jit(jax.shard_map(f, mesh=MESH, in_specs=P("b"), out_specs=P("b")))


@every_function
def test_values_inside_of_shard_map(name):
    model, q, f = batched(name)
    check(on_shards(lambda q: f(model, q))(q), f(model, q))


@every_function
def test_gradients_inside_of_shard_map(name):
    model, q, f = batched(name)
    slope = jax.grad(lambda q: half_square(f(model, q)))
    check(on_shards(slope)(q), slope(q))


@pytest.mark.parametrize("name", ["fk", "rnea", "aba"])
def test_a_loop_over_tiles_inside_of_shard_map(name):
    model, _, f = batched(name)
    q = normal(1, 2 * 512, 2)
    check(on_shards(lambda q: f(model, q))(q), f(model, q))
    slope = jax.grad(lambda q: half_square(f(model, q)))
    check(on_shards(slope)(q), slope(q))


@every_function
def test_gradients_through_shard_map(name):
    model, q, f = batched(name)
    got = jax.jit(jax.grad(lambda q: half_square(on_shards(lambda q: f(model, q))(q))))(q)
    check(got, jax.grad(lambda q: half_square(f(model, q)))(q))


@every_function
def test_gradients_of_a_summed_loss_with_respect_to_a_replicated_model(name):
    model, q, f = batched(name)

    def loss(model, q):
        return jax.lax.psum(half_square(f(model, q)), "b")

    summed = jax.shard_map(loss, mesh=MESH, in_specs=(P(), P("b")), out_specs=P())
    check(jax.jit(jax.grad(summed))(model, q), jax.grad(lambda model: half_square(f(model, q)))(model))


@every_function
def test_inputs_on_a_mesh_with_explicit_axes(name):
    """Values, and gradients of a loss over the batch and row by row."""
    model, q, f = batched(name)
    split = jax.device_put(
        q, NamedSharding(jax.make_mesh((2,), ("b",), (AxisType.Explicit,), devices=jax.devices()[:2]), P("b"))
    )

    def slope(q):
        return jax.grad(lambda q: half_square(f(model, q)))(q)

    def slopes(q):
        return jax.vmap(jax.grad(lambda q: half_square(FUNCTIONS[name](model, q))))(q)

    want = slope(q)
    check(jax.jit(f)(model, split), f(model, q))
    check(jax.jit(slope)(split), want)
    check(jax.jit(slopes)(split), want)


@every_function
def test_gradients_alone_of_a_batch_that_jit_splits(name):
    """Without the values: nothing else in the program would tell which devices it is for."""
    model, q, _ = batched(name)
    slopes = jax.jit(jax.vmap(jax.grad(lambda q: sum(jnp.sum(x) for x in jax.tree.leaves(FUNCTIONS[name](model, q))))))
    check(slopes(jax.device_put(q, NamedSharding(MESH, P("b")))), slopes(q))


@every_function
def test_a_batch_that_jit_splits_is_not_gathered(name):
    model, q, f = batched(name)
    split = jax.device_put(q, NamedSharding(MESH, P("b")))
    gradient = jax.jit(lambda q: jax.vjp(lambda q: f(model, q), q)[1](f(model, q))).lower(split).compile()
    check(gradient(split), jax.vjp(lambda q: f(model, q), q)[1](f(model, q)))
    compiled = jax.jit(f).lower(model, split).compile()
    check(compiled(model, split), f(model, q))
    assert "all-gather" not in f"{compiled.as_text()}{gradient.as_text()}"


@pytest.mark.parametrize("name, tile", [("aba", 256), ("crba", 128)])
def test_each_device_has_tiles_of_its_share(name, tile):
    model, _, f = batched(name)
    q = normal(1, 2 * 1024, 2)
    split = jax.device_put(q, NamedSharding(MESH, P("b")))
    compiled = jax.jit(f).lower(model, split).compile()
    check(compiled(model, split), f(model, q))
    text = str(compiled.as_text())
    assert "all-gather" not in text
    # The results of a kernel are of one share and some configurations of it, padded, not of all 1024.
    padded = tile + 64 // q.dtype.itemsize
    assert re.search(rf"rbydyn_in_one_loop\S* = \(f\d\d\[({tile}|{padded}),1,2\]", text)


@pytest.mark.parametrize("name", ["rnea", "aba"])
def test_the_steps_of_a_split_batch_are_one_kernel_each(name):
    model, q, f = batched(name)
    rows = jax.device_put(q, NamedSharding(MESH, P("b")))
    text = str(jax.jit(f).lower(model, rows).compile().as_text())
    assert re.search(r"= \(.*\) fusion\(.*rbydyn_in_one_loop", text)


def test_a_mesh_of_which_one_axis_is_manual():
    model, q, f = batched("aba")
    mesh = Mesh(MESH.devices.reshape(2, 1), ("b", "other"))
    some = jax.shard_map(lambda q: f(model, q), mesh=mesh, in_specs=P("b"), out_specs=P("b"), axis_names={"b"})
    check(jax.jit(some)(q), f(model, q))


def test_one_result_of_a_kernel_of_a_split_batch():
    """A program of which JAX sees no kernel (they are in lanes), and uses one result of each."""
    b = rb.RobotBuilder("free").link("w").link("body", 1.0, (0, 0, 0), (0.004, 0.004, 0.004))
    model = rb.build_model(b.floating("free", "w", "body").collision("body", CapsuleGeometry(0.2, 0.05)))
    floor = collision.World(collision.half_space(jnp.zeros(3), jnp.array([0.0, 0.0, 1.0])))
    qs = jnp.tile(jnp.array([1.0, 0, 0, 0, 0.03, 0.02, 0.05]), (4, 1))
    mesh = jax.make_mesh((2,), ("b",), axis_types=(AxisType.Auto,))
    split = jax.device_put(qs, NamedSharding(mesh, P("b")))
    found = jax.jit(jax.vmap(lambda q: collision.contact_points(model, q, floor).distance))(split)
    assert_close(found, jnp.tile(jnp.array([0.1, -0.1]), (4, 1)))
