"""What has loops inside of `shard_map`: sweeps along long chains, solvers, simulation, planning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import rbydyn_jax as rb
from rbydyn_jax import Model, collision, constraints, planning, robots, whole_body
from rbydyn_jax.planning import ConfigurationGoal, ControlProblem, JointEffort, SoftGoal
from rbydyn_jax.sweeps import plan
from rbydyn_jax.testing import random_tree
from tests.helpers import assert_close, normal

pytestmark = [
    pytest.mark.devices,
    pytest.mark.skipif(jax.device_count() < 2, reason="runs with RBYDYN_TEST_DEVICES=2 and -m devices"),
]
TOOL = "tool"


def in_dtype(model: Model) -> Model:
    return jax.tree.map(lambda x: jnp.asarray(x, normal(0).dtype), model)


def pulling(model: Model) -> ControlProblem:
    down = SoftGoal(ConfigurationGoal(jnp.zeros(model.nq, normal(0).dtype)), 10.0)
    return ControlProblem(model, [down, JointEffort(0.01)], dt=0.05, steps=6)


def held(model: Model, q: jax.Array) -> Any:
    return (constraints.LoopJoint("spherical", None, TOOL, predecessor_pose=rb.link_pose(model, q, TOOL)),)


class Case(NamedTuple):
    f: Callable[..., Any]
    """Of a robot, q and v."""
    grad: bool = True
    """Whether its gradient is compared too."""


def standing(model: Model, q: jax.Array, v: jax.Array) -> Any:
    block = in_dtype(
        rb.build_model(rb.RobotBuilder().link("w").link("block", 2.0, inertia=0.1).floating("f", "w", "block"))
    )
    up = whole_body.Com(jnp.array([0.0, 0.0, 1.0]))
    start = jnp.concatenate([jnp.array([1.0, 0.0, 0.0, 0.0]), 0.1 * q, v[:1]])
    return whole_body.inverse_dynamics(block, start, jnp.zeros(6), [up], [whole_body.PatchContact("block")]).a


CASES = {
    "chain": Case(lambda model, q, v: rb.rnea(rb.with_traversal(model, "scanned"), q, v, v)),
    "chain, aba": Case(lambda model, q, v: rb.aba(rb.with_traversal(model, "scanned"), q, v, v)),
    "chain, rnea_derivatives": Case(lambda m, q, v: rb.rnea_derivatives(rb.with_traversal(m, "scanned"), q, v, v)),
    # From one start: which of several comes first depends on the other problems of a batch.
    "solve_ik": Case(
        lambda model, q, v: (
            planning.solve_ik(model, (TOOL,), rb.link_pose(model, q, TOOL)[None], q0=q + 0.1, attempts=1).q
        )
    ),
    "differential_ik": Case(
        lambda model, q, v: (
            planning.differential_ik(
                model, q, [planning.LinkVelocity(TOOL, jnp.tile(0.01 * v[:2], 3))], dt=0.01, damping=1e-3
            ).v
        ),
        grad=False,
    ),
    "ilqr": Case(lambda model, q, v: planning.ilqr(pulling(model), q, 0.1 * v, iterations=5).qs, grad=False),
    "mppi": Case(
        lambda model, q, v: planning.mppi(pulling(model), q, 0.1 * v, jax.random.key(0), noise=2.0).qs, grad=False
    ),
    "time_parametrize": Case(
        lambda model, q, v: planning.time_parametrize(model, jnp.stack([q, 2.0 * q + 0.3, q * v])).duration
    ),
    "jerk_limited_profile": Case(
        lambda model, q, v: (
            planning.jerk_limited_profile(
                q, q + 1.0, jnp.ones_like(q), 2.0 * jnp.ones_like(q), 8.0 * jnp.ones_like(q)
            ).duration
        )
    ),
    "simulate": Case(lambda model, q, v: constraints.simulate(model, q, v, 0.01, 0.002).qs),
    "simulate, implicit": Case(lambda m, q, v: constraints.simulate(m, q, v, 0.01, 0.002, method="implicit").qs),
    "forward_dynamics": Case(lambda model, q, v: constraints.forward_dynamics(model, q, v, v, held(model, q)).a),
    "close_loops": Case(lambda model, q, v: constraints.close_loops(model, q + 0.1 * v, held(model, q)).q),
    "inverse_dynamics": Case(standing, grad=False),
    "sdf": Case(
        lambda model, q, v: collision.sdf(model, q, jnp.stack([jnp.append(q, 0.1), jnp.append(v, 0.2)])).distance
    ),
    "signed_distances": Case(
        lambda model, q, v: collision.world_distances(
            model, q, collision.World(collision.box(jnp.eye(4).at[0, 3].set(1.5), 0.2 * jnp.ones(3)))
        )
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    model, q, v = in_dtype(robots.two_link_arm()), 0.3 + 0.2 * normal(0, 4, 2), normal(1, 4, 2)
    mesh = jax.make_mesh((2,), ("b",), (AxisType.Auto,), devices=jax.devices()[:2])
    case = CASES[name]

    def rows(f: Callable[..., Any]) -> tuple[Any, Any]:
        mapped = jax.vmap(f)
        return jax.jit(jax.shard_map(mapped, mesh=mesh, in_specs=P("b"), out_specs=P("b")))(q, v), mapped(q, v)

    def check(got: Any, want: Any) -> None:
        jax.tree.map(lambda x, y: assert_close(np.asarray(x), np.asarray(y), kind="solve"), got, want)

    check(*rows(lambda q, v: case.f(model, q, v)))
    if case.grad:
        loss = lambda q, v: sum(jnp.sum(x**2) for x in jax.tree.leaves(case.f(model, q, v)))  # noqa: E731
        check(*rows(jax.grad(loss)))


def test_kernels_of_a_gpu_on_each_device(monkeypatch):
    """In `shard_map` they are kernels; a batch that `jit` splits is left to XLA, which cannot split a kernel."""
    monkeypatch.setattr(plan, "_platforms", lambda: {"cpu", "gpu"})
    model = in_dtype(random_tree(0, ("revolute",), 3))
    mesh = jax.make_mesh((2,), ("b",), (AxisType.Auto,), devices=jax.devices()[:2])
    f = jax.vmap(rb.rnea, (None, 0, 0, 0))

    def kernels(f: Callable[..., Any], *args: Any) -> int:
        return jax.jit(f).trace(*args).lower(lowering_platforms=("cuda",)).as_text().count("__gpu$xla.gpu.ptx")

    x = jax.ShapeDtypeStruct((64, model.nv), normal(0).dtype)
    split = jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(mesh, P("b")))
    mapped = jax.shard_map(lambda q: f(model, q, q, q), mesh=mesh, in_specs=P("b"), out_specs=P("b"))
    assert kernels(f, model, x, x, x) == 1
    assert kernels(mapped, x) == 1
    assert kernels(f, model, split, split, split) == 0
