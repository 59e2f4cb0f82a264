"""How results and robots are printed: values with units, batches summarized, shapes where nothing is known."""

from __future__ import annotations

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import rbydyn_jax as rb
from rbydyn_jax import constraints, planning, robots
from rbydyn_jax._result import Result
from rbydyn_jax.testing import random_tree

PACKAGES = (rb, rb.collision, constraints, rb.estimation, rb.identification, planning, rb.rby1.impedance)
PACKAGES += (rb.whole_body,)
NOT_RESULTS = {"Model", "World", "ShapePairs"}


def ik_result(status, error):
    status, error = jnp.asarray(status), jnp.asarray(error)
    q = jnp.broadcast_to(jnp.array([0.5, -1.25]), (*status.shape, 2))
    return planning.IkResult(q, status, error, 0 * error, jnp.ones_like(status), jnp.full_like(status, 7))


def test_values_are_printed_with_units():
    assert ik_result(0, 2.5e-7).summary().splitlines() == [
        "IkResult: solved",
        "  q                  [0.5, -1.25]  rad, m",
        "  status             SOLVED",
        "  position_error     2.5e-07       m",
        "  orientation_error  0             rad",
        "  attempts           1",
        "  iterations         7",
    ]
    assert str(ik_result(3, 0.0)).startswith("IkResult: not solved\n")


def test_a_batch_is_summarised():
    lines = str(ik_result([0, 0, 1, 0], [1e-7, jnp.nan, 0.25, 0.0])).splitlines()
    assert lines[0] == "IkResult: 3 of 4 solved"
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[1:]}
    assert rows["q"].startswith("4 x 2, -1.25 to 0.5 ") and rows["status"] == "3 SOLVED, 1 NOT_FOUND"
    many = str(ik_result(jnp.zeros(50, int), jnp.linspace(0, 0.25, 50).at[3].set(jnp.nan)))
    assert "50, 0 to 0.25, 1 not finite  m\n" in many and "iterations         50, all 7" in many


def test_nested_results_and_inherited_units():
    samples = planning.TrajectorySamples(jnp.zeros(12), jnp.zeros((12, 1)), jnp.zeros((12, 1)), jnp.ones((12, 1)))
    one, shown = jnp.asarray(0.5), jnp.zeros((12, 1))
    report = planning.TrajectoryReport(one, one, None, one, one, one, one, one, samples, shown, None)
    text = str(report)
    assert text.startswith("TrajectoryReport: within the limits\n")
    assert "distance" not in text  # nothing is known of it
    row = next(line for line in text.splitlines() if "samples.a" in line)
    assert row.split(maxsplit=1)[1].split("  ") == ["12 x 1, all 1", "rad/s^2, m/s^2"]
    beyond = eqx.tree_at(lambda r: r.torque_ratio, report, 4 * one)
    assert str(beyond).startswith("TrajectoryReport: beyond a limit, or in collision\n")
    point = jnp.zeros((1, 3))
    pairs = rb.collision.NearestPairs(one[None], point, point, point, point, jnp.array([4]))
    assert [line.split()[-1] for line in str(pairs).splitlines()[1:]] == ["m", "m", "m", "m", "m", "[4]"]


def test_unknown_values_are_printed_as_shapes():
    seen = []
    jax.jit(lambda q: seen.append(repr(constraints.InverseDynamicsResult(q, q, q))))(jnp.ones(3))
    assert "tau=f" in seen[0] and "[3]" in seen[0]
    assert "ShapeDtypeStruct" in repr(jax.eval_shape(lambda: constraints.InverseDynamicsResult(*3 * [jnp.ones(3)])))


def test_notebooks_get_a_table():
    page = ik_result(0, 2.5e-7)._repr_html_()
    assert page.startswith("<table><caption>IkResult: solved</caption><tr>") and page.count("<tr>") == 6
    assert "<tr><td>position_error</td><td>2.5e-07</td><td>m</td></tr>" in page


@pytest.mark.parametrize("package", PACKAGES, ids=lambda x: x.__name__)
def test_what_public_functions_return_is_a_result(package):
    functions = [
        f
        for f in (getattr(package, name) for name in dir(package))
        if inspect.isroutine(f) or hasattr(f, "__wrapped__")
    ]
    for function in functions:
        name = str(inspect.signature(function).return_annotation)
        found = inspect.unwrap(function).__globals__.get(name)
        if inspect.isclass(found) and issubclass(found, eqx.Module) and name not in NOT_RESULTS:
            assert issubclass(found, Result), f"{function.__name__} returns {name}"


def test_a_robot_is_printed_as_a_tree():
    arm = robots.two_link_arm()
    assert str(arm) == arm.summary()
    assert str(arm).splitlines()[0] == "two_link_arm: 2 moving joints, nq = 2, nv = 2, 4 links, 2 capsules"
    shoulder, elbow = str(arm).splitlines()[2:]
    assert shoulder.startswith("  shoulder -> upper  revolute (0 0 1)")
    assert elbow.startswith("    elbow -> lower   revolute (0 0 1)") and elbow.endswith(" + tool")
    assert repr(arm) == "Model('two_link_arm', nq=2, nv=2, joints=2, links=4)"
    assert "(0 0 1)" not in str(rb.stack_models([arm, arm]))  # the axes are those of no single robot
    traced = []
    jax.jit(lambda model: (traced.append(str(model)), model.gravity)[1])(arm)
    assert traced[0].splitlines()[2] == "  shoulder -> upper  revolute"


def test_a_large_robot_is_cut():
    tree = random_tree(1, ("revolute",), 60)
    lines = str(tree).splitlines()
    assert len(lines) == 31 and lines[-1] == f"  ... and {tree.nb - 28} more joints: model.summary() has all"
    assert len(tree.summary().splitlines()) == tree.nb + 2
