"""Base parameters: their numbers are those of the literature, and they predict the torques as all parameters do."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.identification import (
    TrajectoryData,
    base_parameters,
    parameter_names,
    parameters,
    torque_regressor,
    with_parameters,
)
from rbydyn_jax.identification.identifiability import BaseParameters
from rbydyn_jax.model.states import random_states
from tests.helpers import assert_close


def chain(base: str | None, joints: int) -> rb.Model:
    """Revolute joints that are neither parallel nor at one place, on a body that floats or on the ground."""
    rng = np.random.default_rng(1)
    robot, last = rb.RobotBuilder("chain").link("base"), "base"
    for k in range(joints):
        robot.link(f"link_{k}", 1.0, (0.1, 0.0, 0.2), 0.1)
        if k == 0 and base:
            robot.floating("base", last, "link_0")
        else:
            axis = (0, 0, 1) if k == 0 else rng.normal(size=3)
            robot.revolute(f"joint_{k}", last, f"link_{k}", axis=axis, xyz=rng.normal(size=3))
        last = f"link_{k}"
    return rb.build_model(robot)


@pytest.mark.ci
# An arm on a vertical axis: 1 + 7 (n - 1), with another gravity 3 + 7 (n - 1) [Gautier and Khalil 1990]; for the
# Panda 43 [Gaz et al. 2019]. On a floating base all ten of it and 7 for each joint.
@pytest.mark.parametrize(
    "model, gravity, count",
    [
        (robots.panda_like(), (0.0, 0.0, -9.81), 43),
        (robots.panda_like(), (3.0, -4.0, -8.0), 45),
        (chain(None, 3), (0.0, 0.0, -9.81), 15),
        (chain("floating", 3), (0.0, 0.0, -9.81), 24),
    ],
    ids=["panda", "panda on a slope", "chain", "floating chain"],
)
def test_numbers_of_base_parameters(model, gravity, count):
    model = rb.with_gravity(model, jnp.array(gravity))
    found = base_parameters(model)
    assert found.rank == count
    assert len(found.identifiable) + len(found.grouped) == count
    assert 1.0 <= found.condition < 1e4


@pytest.mark.ci
def test_base_parameters_predict_the_torques_and_name_what_is_summed():
    model = chain(None, 3)
    found = base_parameters(model)
    motion = random_states(model, jax.random.key(5), 20)
    Y = np.asarray(jax.jit(jax.vmap(lambda *x: torque_regressor(model, *x)))(*motion))
    assert_close(Y[:, :, list(found.pivots)] @ found.combinations, Y, kind="solve")
    assert "Izz of link_0" in str(found) and found.unobservable[:3] == ("m of link_0", "mx of link_0", "my of link_0")
    # Equal changes of mass along a vertical axis cannot be seen.
    q, v, a = motion
    still = TrajectoryData(q, 0.0 * v, 0.0 * a, 0.0 * v)
    at_rest = base_parameters(model, still, terms=("friction", "inertia"))
    assert at_rest.rank < found.rank and "friction of joint_0" in at_rest.unobservable


@pytest.mark.ci
@pytest.mark.parametrize("payload", [None, "tool"])
def test_of_some_links_and_a_payload_it_tells_what_their_own_parameters_do(payload):
    """The columns are differences of torques of robots with and without each parameter."""
    model = rb.with_gravity(robots.two_link_arm(), jnp.array([0.0, -9.81, 0.0]))
    motion = random_states(model, jax.random.key(2), 12)
    found = base_parameters(
        model, TrajectoryData(*motion, motion[1]), links=["upper"], payload=payload, terms=("inertia", "damping")
    )
    links = ["upper"] if payload is None else ["upper", payload]
    torques = jax.jit(jax.vmap(rb.rnea, (None, 0, 0, 0)))
    columns = []
    for link in links:
        own = model.link_inertias[model.link_index(link)]
        for unit in jnp.eye(10):
            with_it, without = (torques(rb.with_inertias(model, {link: own + x}), *motion) for x in (unit, 0.0 * unit))
            columns.append(np.ravel(with_it - without))
    columns += [np.ravel(motion[1] * unit[None]) for unit in jnp.eye(2)]
    W = np.stack(columns, axis=1)
    assert found.rank == np.linalg.matrix_rank(W, tol=1e-8)
    assert_close(W[:, list(found.pivots)] @ found.combinations, W, kind="solve")
    titles = ["upper", "the payload"][: len(links)]
    names = [f"{x} of {title}" for title in titles for x in ("m", "mx", "my", "mz")]
    assert [x for x in found.names if x.startswith("m")] == names and found.names[-1] == "damping of elbow"


@pytest.mark.ci
def test_links_that_are_not_fitted_are_refused():
    arm = robots.two_link_arm()
    with pytest.raises(rb.ArgumentError, match="does not move"):
        base_parameters(arm, links=[arm.link_names[0]])
    with pytest.raises(rb.NameNotFoundError, match="no link named 'nope'"):
        base_parameters(arm, payload="nope")


@pytest.mark.slow
def test_parameters_and_their_names():
    model = chain("floating", 2)
    names, values = parameter_names(model), parameters(model)
    assert values.shape == (len(names),) == (20 + 3 * 7,)
    assert names[11] == "mx of link_1" and names[20] == "armature of base[0]" and names[-1] == "friction of joint_1"
    other = with_parameters(model, 2.0 * values[:20], ("inertia",))
    assert_close(rb.total_mass(other), 4.0)
    with pytest.raises(rb.ArgumentError, match=r"terms must be a sequence of some of inertia, .*mass"):
        parameter_names(model, ("mass",))  # type: ignore[arg-type]
    zeros = TrajectoryData(*[jnp.zeros((2, 3)) for _ in range(4)])
    with pytest.raises(rb.ArgumentError, match="data has its own"):
        base_parameters(model, zeros, samples=3)
    with pytest.raises(rb.ShapeError, match=r"rows of q \(8,\)"):
        base_parameters(model, zeros)


def test_it_is_compiled_once():
    base_parameters(robots.two_link_arm())
    with rb.no_recompile():
        base_parameters(robots.two_link_arm(), key=jax.random.key(3))


def test_of_a_robot_that_does_not_move_nothing_can_be_told():
    still = rb.build_model(rb.RobotBuilder("still").link("w").link("a", 1.0, inertia=0.1).fixed("f", "w", "a"))
    assert base_parameters(still).rank == 0


def test_a_factor_that_is_one_to_four_digits_is_not_written():
    combinations = np.array([[1.0, 1.0 - 1e-5, -0.5]])  # of float32
    assert BaseParameters(("a", "b", "c"), (0,), combinations, 1.0).grouped == ("(a) + (b) - 0.5 (c)",)
