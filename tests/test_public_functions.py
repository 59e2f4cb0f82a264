"""Every public function on a small tree with every joint type: a new one fails here until it is in a table.

Functions of arrays: finite values, a call equals a row of the compiled batch, the dtype of the arguments, NaN in and
NaN out. The others (files, edits of models, compilation): one call each, with a result that is known.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import Model, robots
from rbydyn_jax.joints import JOINT_TYPES
from rbydyn_jax.testing import random_tree
from tests.compilation.support import start
from tests.helpers import assert_close, normal, oracle

TREE = random_tree(1, n=9)
LINK, REF = TREE.link_names[-1], TREE.link_names[2]
JOINT = next(TREE.joint_names[i] for i, kind in enumerate(TREE.tree.joint_types) if kind == "revolute")
ROWS = 3


class State(NamedTuple):
    """What the functions of arrays take."""

    q: jax.Array
    v: jax.Array
    a: jax.Array
    f_ext: jax.Array
    point: jax.Array


@cache
def states() -> State:
    q = jax.vmap(lambda key: rb.random_configuration(TREE, key))(jax.random.split(jax.random.key(0), ROWS))
    v, a, f_ext, point = (
        normal(1, ROWS, TREE.nv),
        normal(2, ROWS, TREE.nv),
        normal(3, ROWS, TREE.nb, 6),
        normal(4, ROWS, 3),
    )
    return State(q, v, a, f_ext, point)


ON_STATES: dict[str, Callable[[Model, State], Any]] = {
    "aba": lambda m, s: rb.aba(m, s.q, s.v, s.a, s.f_ext),
    "aba_derivatives": lambda m, s: rb.aba_derivatives(m, s.q, s.v, s.a, s.f_ext),
    "angular_momentum": lambda m, s: rb.angular_momentum(m, s.q, s.v, s.point),
    "angular_momentum_hessian": lambda m, s: rb.angular_momentum_hessian(m, s.q, s.point),
    "angular_momentum_jacobian": lambda m, s: rb.angular_momentum_jacobian(m, s.q, s.point),
    "bias_forces": lambda m, s: rb.bias_forces(m, s.q, s.v),
    "body_poses": lambda m, s: rb.body_poses(m, s.q),
    "center_of_mass": lambda m, s: rb.center_of_mass(m, s.q, links=(LINK,), ref=REF),
    "centroidal_momentum": lambda m, s: rb.centroidal_momentum(m, s.q, s.v),
    "centroidal_momentum_hessian": lambda m, s: rb.centroidal_momentum_hessian(m, s.q),
    "centroidal_momentum_matrix": lambda m, s: rb.centroidal_momentum_matrix(m, s.q),
    "centroidal_momentum_rate": lambda m, s: rb.centroidal_momentum_rate(m, s.q, s.v, s.a),
    "clamp": lambda m, s: rb.clamp(m, s.q),
    "com_acceleration": lambda m, s: rb.com_acceleration(m, s.q, s.v, s.a),
    "com_hessian": lambda m, s: rb.com_hessian(m, s.q),
    "com_jacobian": lambda m, s: rb.com_jacobian(m, s.q),
    "com_velocity": lambda m, s: rb.com_velocity(m, s.q, s.v),
    "coriolis_matrix": lambda m, s: rb.coriolis_matrix(m, s.q, s.v),
    "crba": lambda m, s: rb.crba(m, s.q),
    "damping_forces": lambda m, s: rb.damping_forces(m, s.v),
    "difference": lambda m, s: rb.difference(m, rb.neutral(m), s.q),
    "external_wrenches": lambda m, s: rb.external_wrenches(m, s.q, {LINK: jnp.tile(s.point, 2)}),
    "fk": lambda m, s: rb.fk(m, s.q),
    "friction_forces": lambda m, s: rb.friction_forces(m, s.v),
    "generalized_momentum": lambda m, s: rb.generalized_momentum(m, s.q, s.v),
    "gravito_inertial_wrench": lambda m, s: rb.gravito_inertial_wrench(m, s.q, s.v, s.a, s.point),
    "gravity_forces": lambda m, s: rb.gravity_forces(m, s.q),
    "hessian": lambda m, s: rb.hessian(m, s.q, LINK),
    "integrate": lambda m, s: rb.integrate(m, s.q, s.v),
    "inverse_dynamics_terms": lambda m, s: rb.inverse_dynamics_terms(m, s.q, s.v, s.a),
    "jacobian": lambda m, s: rb.jacobian(m, s.q, LINK, ref=REF),
    "jacobian_dot": lambda m, s: rb.jacobian_dot(m, s.q, s.v, LINK),
    "jacobian_dot_v": lambda m, s: rb.jacobian_dot_v(m, s.q, s.v, LINK),
    "joint_reaction_wrenches": lambda m, s: rb.joint_reaction_wrenches(m, s.q, s.v, s.a, s.f_ext),
    "kinetic_energy": lambda m, s: rb.kinetic_energy(m, s.q, s.v),
    "link_acceleration": lambda m, s: rb.link_acceleration(m, s.q, s.v, s.a, LINK),
    "link_pose": lambda m, s: rb.link_pose(m, s.q, LINK, REF),
    "link_velocity": lambda m, s: rb.link_velocity(m, s.q, s.v, LINK),
    "mass_matrix_inverse": lambda m, s: rb.mass_matrix_inverse(m, s.q),
    "momentum": lambda m, s: rb.momentum(m, s.q, s.v),
    "momentum_matrix": lambda m, s: rb.momentum_matrix(m, s.q),
    "net_contact_wrench": lambda m, s: rb.net_contact_wrench(m, s.q, s.v, s.a, s.point),
    "normalize": lambda m, s: rb.normalize(m, 1.5 * s.q),
    "operational_space_inertia": lambda m, s: rb.operational_space_inertia(m, s.q, LINK, REF),
    "point_hessian": lambda m, s: rb.point_hessian(m, s.q, LINK, s.point),
    "point_jacobian": lambda m, s: rb.point_jacobian(m, s.q, LINK, s.point),
    "potential_energy": lambda m, s: rb.potential_energy(m, s.q),
    "qdot_from_v": lambda m, s: rb.qdot_from_v(m, s.q, s.v),
    "quaternion_jacobian": lambda m, s: rb.quaternion_jacobian(m, s.q, LINK),
    "rnea": lambda m, s: rb.rnea(m, s.q, s.v, s.a, s.f_ext),
    "rnea_derivatives": lambda m, s: rb.rnea_derivatives(m, s.q, s.v, s.a, s.f_ext),
    "spatial_inertia": lambda m, s: rb.spatial_inertia(m, s.q, REF),
    "v_from_qdot": lambda m, s: rb.v_from_qdot(m, s.q, rb.qdot_from_v(m, s.q, s.v)),
    "zmp": lambda m, s: rb.zmp(m, s.q, s.v, s.a, s.point),
}
# Sums, products and derivatives of others of the table, in plain JAX: their batches need no rule of ours.
COMPOSED = (
    "angular_momentum_hessian",
    "centroidal_momentum_hessian",
    "centroidal_momentum_rate",
    "com_acceleration",
    "com_hessian",
    "gravito_inertial_wrench",
    "net_contact_wrench",
)
SOLVES = ("aba", "aba_derivatives", "mass_matrix_inverse", "operational_space_inertia", "zmp")
WITHOUT_STATE: dict[str, Callable[[Model], Any]] = {
    "neutral": rb.neutral,
    "random_configuration": lambda m: rb.random_configuration(m, jax.random.key(1)),
    "subtree_mass": lambda m: rb.subtree_mass(m, LINK),
    "total_mass": rb.total_mass,
}
EDITS: dict[str, Callable[[Model], Model]] = {
    "attach": lambda m: rb.attach(m, LINK, robots.pendulum(dtype=m.inertias.dtype), jnp.eye(4), prefix="bob_"),
    "attach_payload": lambda m: rb.attach_payload(m, LINK, 1.5),
    "lock_joints": lambda m: rb.lock_joints(m, {JOINT: 0.1}),
    "stack_models": lambda m: rb.stack_models([m, m]),
    "submodel": lambda m: rb.submodel(m, REF),
    "unstructured": rb.unstructured,
    "with_armature": lambda m: rb.with_armature(m, 0.2),
    "with_damping": lambda m: rb.with_damping(m, 3.0),
    "with_friction": lambda m: rb.with_friction(m, 0.5),
    "with_geometry": lambda m: rb.with_geometry(m, joint_placements=m.joint_placements),
    "with_gravity": lambda m: rb.with_gravity(m, jnp.array([0.0, 0.0, -1.62])),
    "with_inertias": lambda m: rb.with_inertias(m, {LINK: 2.0 * m.inertias[-1]}),
    "with_joint_parameters": lambda m: rb.with_joint_parameters(m, {}),
    "with_traversal": lambda m: rb.with_traversal(m, "scanned"),
    "with_limits": lambda m: rb.with_limits(m, velocity_limit=2.0 * m.velocity_limit),
}


@cache
def compiled(name: str) -> Callable[[State], Any]:
    return jax.jit(jax.vmap(lambda s: ON_STATES[name](TREE, s)))


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=pytest.mark.slow if x in COMPOSED else pytest.mark.ci) for x in ON_STATES]
)
def test_a_batch_is_finite_but_where_an_argument_is_nan(name):
    s = states()
    results = compiled(name)(jax.tree.map(lambda x: x.at[-1].set(jnp.nan), s))
    chex.assert_tree_all_finite(jax.tree.map(lambda x: x[:-1], results))
    assert any(np.isnan(x[-1]).any() for x in jax.tree.leaves(results))
    for x in jax.tree.leaves(results):
        assert x.dtype in (bool, s.q.dtype)  # bool: of `zmp`, whether there is one


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ON_STATES if name not in COMPOSED])
def test_a_call_is_a_row_of_the_compiled_batch(name):
    s = states()
    one, batched = ON_STATES[name](TREE, jax.tree.map(lambda x: x[0], s)), compiled(name)(s)
    chex.assert_trees_all_equal_structs(one, batched)
    for x, rows in zip(*map(jax.tree.leaves, (one, batched)), strict=True):
        assert x.dtype == rows.dtype
        if x.dtype == bool:
            assert rows[0] == x
            continue
        assert_close(rows[0], x, kind="solve" if name in SOLVES else "value", scale=float(np.abs(rows).max()))


@pytest.mark.parametrize("name", ON_STATES)
def test_results_are_float32_where_the_arguments_are(name):
    row = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], np.float32), states())
    model = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, np.float32), TREE)
    found = {x.dtype for x in jax.tree.leaves(jax.eval_shape(ON_STATES[name], model, row))}
    assert found == ({np.dtype(np.float32), np.dtype(bool)} if name == "zmp" else {np.dtype(np.float32)})


@pytest.mark.ci
@pytest.mark.parametrize(("moving", "rows"), [(False, 0), (False, 2), (True, 0)])
def test_small_robots_and_empty_batches(moving, rows, monkeypatch):
    robot = rb.RobotBuilder("r").link("a", 1.0, inertia=0.1).link("b", 1.0, inertia=0.1)
    model = rb.build_model(robot.revolute("j", "a", "b") if moving else robot.fixed("j", "a", "b"))
    monkeypatch.setitem(globals(), "REF", "a")
    monkeypatch.setitem(globals(), "LINK", "b")
    sizes = (model.nq,), (model.nv,), (model.nv,), (model.nb, 6), (3,)
    s = State(*(jnp.zeros((rows, *size), model.inertias.dtype) for size in sizes))
    for name, f in ON_STATES.items():
        shapes = [x.shape for x in jax.tree.leaves(jax.eval_shape(jax.vmap(lambda s: f(model, s)), s))]  # noqa: B023
        assert shapes and all(shape[0] == rows for shape in shapes), name


@pytest.mark.ci
@pytest.mark.parametrize("name", WITHOUT_STATE)
def test_what_depends_on_the_model_alone_is_the_same_compiled(name):
    f = WITHOUT_STATE[name]
    got = f(TREE)
    chex.assert_tree_all_finite(got)
    assert got.dtype == TREE.inertias.dtype
    assert_close(jax.jit(f)(TREE), got)


@pytest.mark.ci
@pytest.mark.parametrize("name", EDITS)
def test_edits_give_models_of_the_same_dtype_with_finite_dynamics(name):
    model = EDITS[name](TREE)
    chex.assert_trees_all_equal_dtypes(*jax.tree.leaves(model))
    assert model.inertias.dtype == TREE.inertias.dtype
    if name == "stack_models":
        assert_close(jax.vmap(rb.total_mass)(model), np.full(2, rb.total_mass(TREE)))
    else:
        chex.assert_tree_all_finite(rb.crba(model, rb.neutral(model)))


def read_back(load: Callable[[Any], Model], text: Any) -> None:
    again, model = load(text), robots.two_link_arm()
    assert again.joint_names == model.joint_names
    assert_close(rb.total_mass(again), rb.total_mass(model), 1e-6)


ARM = robots.two_link_arm()
MJCF = '<mujoco><worldbody><body name="a"><joint name="j"/><geom size="0.1" mass="2"/></body></worldbody></mujoco>'


def _mujoco(folder: Path) -> None:
    mujoco: Any = oracle("mujoco")
    (folder / "a.xml").write_text(MJCF)
    for model in (rb.from_mujoco(mujoco.MjModel.from_xml_string(MJCF)), rb.load_mjcf(folder / "a.xml")):
        assert model.joint_names == ("j",)
        assert_close(rb.total_mass(model), 2.0, 1e-6)


def _xacro(folder: Path) -> None:
    pytest.importorskip("xacrodoc")
    (folder / "arm.xacro").write_text(rb.to_urdf(ARM))
    read_back(rb.load_xacro, folder / "arm.xacro")


def _urdf(folder: Path) -> None:
    read_back(rb.load_urdf_string, rb.to_urdf(ARM))
    rb.save_urdf(ARM, folder / "arm.urdf")
    read_back(rb.load_urdf, folder / "arm.urdf")


def _build_model(folder: Path) -> None:
    robot = rb.RobotBuilder("r").link("a").link("b", 2.0, inertia=0.1).revolute("j", "a", "b")
    assert_close(rb.total_mass(rb.build_model(robot)), 2.0, 1e-6)


def _export(folder: Path) -> None:
    pytest.importorskip("flatbuffers")
    q = normal(0, 2)
    exported = rb.export_function(ARM, "gravity_forces")
    exported.save(folder / "program")
    assert_close(rb.load_function(folder / "program")(ARM, q), rb.gravity_forces(ARM, q))


def _saved(folder: Path) -> None:  # of all kinds: tests/test_saved.py
    s = states()
    found = rb.rnea_derivatives(TREE, s.q[0], s.v[0], s.a[0])
    found.save(folder / "result.npz")
    assert_close(rb.load_result(folder / "result.npz").dtau_dq, found.dtau_dq, 0.0)


def _codegen(folder: Path) -> None:  # values against Pinocchio's: tests/compilation
    code = rb.generate_c(robots.pendulum(), "gravity_forces", name="hold")
    assert [path.name for path in code.save(folder)] == ["hold.h", "hold.c"]
    assert "9.81" in (folder / "hold.c").read_text()


def _precompile(folder: Path) -> None:
    rb.precompile(ARM, functions=["potential_energy"])
    q = jnp.zeros(2, ARM.inertias.dtype)
    with rb.no_recompile():
        rb.potential_energy(ARM, q)
    with pytest.raises(rb.RecompilationError), rb.no_recompile():
        rb.potential_energy(dataclasses.replace(ARM, inertias=np.zeros((2, 10), "f2")), q)


CACHE = """
import json, sys
import jax
import rbydyn_jax as rb

rb.set_compilation_cache(sys.argv[1])
print(json.dumps(jax.config.jax_compilation_cache_dir))
"""


def _cache(folder: Path) -> None:
    assert start(CACHE, str(folder)) == str(folder)


def _map_batch(folder: Path) -> None:
    s = states()
    got = rb.map_batch(rb.fk, TREE, s.q, in_axes=(None, 0))
    assert_close(got, jax.vmap(rb.fk, (None, 0))(TREE, s.q))


def _tiled(folder: Path) -> None:
    s = states()
    got = jax.vmap(rb.tiled(rb.fk), (None, 0))(TREE, s.q)
    assert_close(got, jax.vmap(rb.fk, (None, 0))(TREE, s.q))


def _specialize(folder: Path) -> None:
    assert jax.tree.leaves(rb.specialize(ARM)) == []
    assert_close(rb.total_mass(rb.specialize(ARM)), rb.total_mass(ARM))


def _precision(folder: Path) -> None:
    report = rb.precision_report(ARM, jax.random.key(0), samples=32)  # as in its docstring: one program
    assert all(np.isfinite(x.worst) and 0.0 < x.worst < 1e-3 for x in report.algorithms)


def _plan(folder: Path) -> None:
    assert rb.execution_plan(TREE, "cpu").sweep == "unrolled"


# What one call checks, by the functions that it calls.
CALLS: dict[tuple[str, ...], Callable[[Path], None]] = {
    ("build_model",): _build_model,
    ("execution_plan",): _plan,
    ("export_function", "load_function"): _export,
    ("from_mujoco", "load_mjcf"): _mujoco,
    ("generate_c",): _codegen,
    ("load_urdf", "load_urdf_string", "save_urdf", "to_urdf"): _urdf,
    ("load_result",): _saved,
    ("load_xacro",): _xacro,
    ("map_batch",): _map_batch,
    ("precision_report",): _precision,
    ("precompile", "no_recompile"): _precompile,
    ("set_compilation_cache",): _cache,
    ("specialize",): _specialize,
    ("tiled",): _tiled,
}


# The same program runs as the doctest of `precision_report`.
PRECISION = pytest.param(("precision_report",), marks=pytest.mark.slow)


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning")
@pytest.mark.parametrize(
    "names", [PRECISION if names == ("precision_report",) else names for names in CALLS], ids="-".join
)
def test_files_compilation_and_reports(names, tmp_path):
    CALLS[names](tmp_path)


def test_every_public_function_is_in_a_table():
    public = {
        name
        for name in dir(rb)
        if not name.startswith("_") and callable(f := getattr(rb, name)) and not isinstance(f, type)
    }
    tables = [*ON_STATES, *WITHOUT_STATE, *EDITS, *(name for names in CALLS for name in names)]
    assert sorted(tables) == sorted(public)
    assert set(TREE.tree.joint_types) | {"fixed", "screw"} == set(JOINT_TYPES)  # screws: tests/joints
