"""Exported functions give what the functions give, where nothing can be traced, too; other robots are refused."""

from __future__ import annotations

import dataclasses
import json
import sys
import zipfile

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import collision, robots
from rbydyn_jax.compilation import export
from tests.algorithms.cases import robot
from tests.compilation.support import counted, start
from tests.helpers import X64, assert_close, normal, untyped

pytest.importorskip("flatbuffers")
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning")


@pytest.fixture(scope="module")
def arm():
    return robots.two_link_arm()


@pytest.fixture(scope="module")
def heavier(arm):
    return rb.attach_payload(arm, "tool", 2.0)


def saved(exported: rb.ExportedFunction, folder) -> rb.ExportedFunction:
    exported.save(folder / "program")
    return rb.load_function(folder / "program")


@pytest.mark.slow
def test_one_configuration(arm, heavier, tmp_path):
    q, v, a = (normal(k, 2) for k in range(3))
    exported = rb.export_function(arm, "rnea")
    loaded = saved(exported, tmp_path)
    for f in (exported, loaded, jax.jit(loaded)):
        for model in (arm, heavier, rb.specialize(heavier)):
            assert_close(f(model, q, v, a), rb.rnea(model, q, v, a))
    assert loaded.arguments == {"q": (2,), "v": (2,), "a": (2,)}
    assert (
        repr(loaded) == repr(exported) == "ExportedFunction(rnea(two_link_arm, q (2,), v (2,), a (2,)), float64, cpu)"
    )


@pytest.mark.slow
@pytest.mark.parametrize("batch", [6, "any"])
def test_an_exported_batch_gives_the_rows_of_single_calls(arm, heavier, batch, tmp_path):
    q, v, a = (normal(k, 6, 2) for k in range(3))
    loaded = saved(rb.export_function(arm, "rnea", batch), tmp_path)
    want = np.stack([rb.rnea(heavier, *x) for x in zip(q, v, a, strict=True)])
    assert_close(loaded(heavier, q, v, a), want)
    if batch == "any":
        assert_close(loaded(heavier, q[:2], v[:2], a[:2]), want[:2])
        with pytest.raises(rb.ShapeError, match="one size, got 2, 6"):
            loaded(arm, q, v[:2], a)
    else:
        with pytest.raises(rb.ShapeError, match=r"q must have shape \(6, 2\), got \(2, 2\)"):
            loaded(arm, q[:2], v[:2], a[:2])


@pytest.mark.slow
def test_static_arguments_and_named_results(arm, heavier, tmp_path):
    q, v = normal(0, 2), normal(1, 2)
    pair = collision.pairs(arm)
    cases = [
        (("jacobian", {"link": "tool", "frame": "local"}), (q,), lambda m: rb.jacobian(m, q, "tool", frame="local")),
        ("inverse_dynamics_terms", (q, v, v), lambda m: rb.inverse_dynamics_terms(m, q, v, v)),
        (("collision.capsule_distances", {"pairs": pair}), (q,), lambda m: collision.capsule_distances(m, q, pair)),
    ]
    for function, inputs, direct in cases:
        got, want = saved(rb.export_function(arm, function), tmp_path)(heavier, *inputs), direct(heavier)
        assert type(got) is type(want) or isinstance(want, jax.Array)
        jax.tree.map(assert_close, got, want)


@pytest.mark.slow
def test_functions_of_ones_own(arm, tmp_path):
    def step(model, q, target):
        return {"q": rb.clamp(model, q + target[0]), "poses": (rb.fk(model, q),)}

    shape = jax.ShapeDtypeStruct((1,), np.float64 if X64 else np.float32)
    exported = rb.export_function(arm, (step, {"q": normal(0, 2), "target": shape}), batch=3)
    q, target = normal(1, 3, 2), normal(2, 3, 1)
    jax.tree.map(assert_close, saved(exported, tmp_path)(arm, q, target), jax.vmap(step, (None, 0, 0))(arm, q, target))


@pytest.mark.ci
def test_the_dtype(arm, tmp_path):
    q = normal(0, 2)
    loaded = saved(rb.export_function(arm, "gravity_forces", dtype=np.float32), tmp_path)
    down = rb.with_gravity(arm, jnp.array([0.0, -9.81, 0.0]))
    got = loaded(down, q.astype(np.float32))  # the model's numbers are cast
    assert got.dtype == np.float32
    assert_close(got, rb.gravity_forces(down, q), 2e-6)
    with pytest.raises(rb.DtypeError, match="q must be float32, for which gravity_forces was exported, got float64"):
        loaded(down, q)


def test_jax_itself_is_told_how_to_export(arm):
    with pytest.raises(rb.RbydynError, match=r"use rbydyn_jax\.export_function"):
        jax.export.export(jax.jit(rb.rnea))(arm, *(jnp.zeros(2) for _ in range(3)))


@pytest.mark.parametrize("platforms", [("cpu",), ("cuda",), ("cpu", "cuda")])
def test_programs_hold_nothing_private_to_a_compiler(arm, platforms):
    text = rb.export_function(arm, "aba", 8, platforms=platforms)._program.mlir_module()
    assert "stablehlo.multiply" in text and "mhlo.fusion" not in text and "LayoutConstraint" not in text


def test_a_program_for_two_platforms_runs_on_this_one(arm):
    q = normal(0, 2)
    exported = rb.export_function(arm, "fk", platforms=("cpu", "cuda"))
    assert exported.platforms == ("cpu", "cuda")
    assert_close(exported(arm, q), rb.fk(arm, q))


def test_exporting_leaves_what_is_compiled_as_it_was(arm):
    q = jnp.zeros(2)
    rb.fk(arm, q)
    for platforms in (("cpu",), ("cuda",)):
        rb.export_function(arm, "fk", platforms=platforms)
    with counted() as counts:
        rb.fk(arm, q)
    assert not counts


@pytest.mark.parametrize("function", ["crba", "mass_matrix_inverse"])
@pytest.mark.slow
def test_matrices_of_a_robot_with_branches_are_exported(function):
    model = robot("hands")  # its matrices are put in order, as those of the arm are not
    q = rb.neutral(model)
    assert_close(rb.export_function(model, function)(model, q), getattr(rb, function)(model, q), kind="solve")


@pytest.mark.ci
def test_machine_code_runs_as_the_function_does(arm, heavier, tmp_path):
    q, v, a = (normal(k, 2) for k in range(3))
    exported = rb.export_function(arm, "rnea", native=True)
    loaded = saved(exported, tmp_path)
    assert exported.native and loaded.native and not rb.export_function(arm, "fk").native
    for f in (exported, loaded):
        with counted() as counts:
            got = f(heavier, q, v, a)
        assert not counts  # nothing is traced or compiled
        np.testing.assert_array_equal(got, jax.jit(rb.rnea)(heavier, q, v, a))
    assert_close(jax.jit(loaded)(heavier, q, v, a), rb.rnea(heavier, q, v, a))


@pytest.mark.slow
def test_machine_code_of_another_machine_does_not_run(arm, tmp_path, monkeypatch):
    q = normal(0, 2)
    exported = rb.export_function(arm, "crba", native=True)
    exported.save(tmp_path / "program")
    here = export.machine()
    for other in ({"jaxlib": "0.9"}, {"processor": "another"}, {"platform": "cuda"}):
        monkeypatch.setattr(export, "machine", lambda other=other: here | other)
        loaded = rb.load_function(tmp_path / "program")
        assert not loaded.native
        assert_close(loaded(arm, q), rb.crba(arm, q))


def test_machine_code_is_for_one_size_of_the_batch(arm):
    with pytest.raises(rb.ArgumentError, match="batch must be a number or None with native=True, got 'any'"):
        rb.export_function(arm, "crba", "any", native=True)


LOADING = """
import json, sys
import jax, numpy as np

jax.config.update("jax_enable_x64", True)
import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.sweeps import plan, scanned, unrolled

def no_tracing(*args, **kwargs):
    raise AssertionError("an algorithm is traced")

unrolled.UnrolledSweep.__init__ = scanned.ScannedSweep.__init__ = no_tracing
model = rb.attach_payload(robots.two_link_arm(), "tool", 2.0)
q, v, a = np.asarray(json.loads(sys.argv[2]))
try:
    rb.rnea(model, q, v, a)
except AssertionError as error:
    assert "is traced" in str(error)
else:
    raise SystemExit("the algorithms can still be traced")
print(json.dumps(np.asarray(rb.load_function(sys.argv[1])(model, q, v, a)).tolist()))
"""


@pytest.mark.slow
def test_another_process_traces_nothing(arm, heavier, tmp_path):
    q, v, a = np.random.default_rng(0).normal(size=(3, 2))
    rb.export_function(arm, "rnea").save(tmp_path / "program")
    got = start(LOADING, str(tmp_path / "program"), str(np.stack([q, v, a]).tolist()))
    assert_close(np.asarray(got), rb.rnea(heavier, q, v, a))


CACHED = """
import sys, json, jax
for name, value in (("dir", sys.argv[1]), ("min_compile_time_secs", 0.0), ("min_entry_size_bytes", -1)):
    jax.config.update("jax_compilation_cache_dir" if name == "dir" else f"jax_persistent_cache_{name}", value)
import rbydyn_jax as rb
arm, found = rb.robots.two_link_arm(), []
for _ in range(2):  # the second time programs are there
    found.append(rb.export_function(arm, "gravity_forces", native=True)(arm, jax.numpy.array([0.3, 0.4])).tolist())
    jax.clear_caches()
print(json.dumps(found))
"""


@pytest.mark.ci
def test_machine_code_is_whole_where_programs_are_cached(arm, tmp_path):
    want = rb.gravity_forces(arm, jnp.array([0.3, 0.4]))
    for got in start(CACHED, str(tmp_path)):
        assert_close(np.asarray(got), np.asarray(want), 1e-5)


@pytest.mark.ci
def test_a_robot_of_another_tree_is_refused(arm):
    q = np.zeros(2)
    program = rb.export_function(arm, "gravity_forces")
    placements = arm.joint_placements.at[1, 2, 3].set(0.1)
    with pytest.raises(rb.ModelError, match="for 'two_link_arm'; of 'two_link_arm' differs: placement_pattern, "):
        program(rb.with_geometry(arm, joint_placements=placements), q)
    with pytest.raises(rb.ModelError, match=r"of 'double_pendulum' differs: name, joint_types, .*shape_links"):
        program(robots.double_pendulum(), q)
    with pytest.raises(rb.DtypeError, match="model must be a Model"):
        untyped(program)("two_link_arm", q)
    # A report of the file from which a robot was read is no part of its tree.
    finding = rb.Finding("note", "corrected")
    program(dataclasses.replace(arm, tree=dataclasses.replace(arm.tree, report=(finding,))), q)


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        ({"function": "rneaa"}, rb.NameNotFoundError, "did you mean 'rnea'"),
        ({"batch": "all"}, rb.DtypeError, "batch must be an integer, got 'all'"),
        ({"batch": 0}, rb.ArgumentError, "at least 1"),
        ({"platforms": "cpu"}, rb.DtypeError, "a sequence of names"),
        ({"platforms": ()}, rb.DtypeError, "a sequence of names"),
        ({"dtype": int}, rb.DtypeError, "floating-point"),
        ({"function": lambda q: q}, rb.DtypeError, "function must take a model first, and return arrays"),
    ],
)
def test_wrong_arguments(arm, wrong, error, match):
    with pytest.raises(error, match=match):
        rb.export_function(arm, **{"function": "fk", **wrong})


def test_wrong_inputs(arm):
    program = rb.export_function(arm, "rnea")
    with pytest.raises(rb.ShapeError, match="rnea takes the model and q, v, a, got 1 arrays"):
        program(arm, np.zeros(2))
    with pytest.raises(rb.DtypeError, match="v must be an array of floats, got list"):
        program(arm, np.zeros(2), [0.0, 0.0], np.zeros(2))


def test_other_files_are_refused(arm, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"no archive")
    with pytest.raises(rb.ArgumentError, match="must be a file of an exported function"):
        rb.load_function(path)
    for members, match in (
        ({}, "must be a file of"),
        ({"header.json": '{"format": 99}', "program": "x"}, "must be of format 1, .* got 99"),
    ):
        with zipfile.ZipFile(path, "w") as file:
            for name, content in members.items():
                file.writestr(name, content)
        with pytest.raises(rb.ArgumentError, match=match):
            rb.load_function(path)
    with pytest.raises(FileNotFoundError):
        rb.load_function(tmp_path / "nothing")
    with pytest.raises(rb.ArgumentError, match="must be a file of an exported function: IsADirectoryError"):
        rb.load_function(tmp_path)


def test_platforms_that_are_none_are_refused(arm):
    with pytest.raises(rb.ArgumentError, match=r"platforms\[1\] must be one of 'cpu', 'cuda', .*, got 'abc'"):
        rb.export_function(arm, "fk", platforms=("cpu", "abc"))


@pytest.mark.parametrize(
    ("member", "content", "match"),
    [
        ("header.json", b"[]", "must be of format 1, .* got None"),
        ("header.json", b"[" * 200_000, "must be a file of an exported function: RecursionError"),
        ("header.json", b'{"format": 1}', "must be a file of an exported function: KeyError"),
        ("program", b"abc", "must be a file of an exported function: error: unpack"),
        ("machine_code", b"abc", "must be a file of an exported function: UnpicklingError"),
    ],
)
def test_damaged_files_are_refused(tmp_path, member, content, match):
    whole, damaged = tmp_path / "whole", tmp_path / "damaged"
    rb.export_function(robots.pendulum(), "gravity_forces").save(whole)
    with zipfile.ZipFile(whole) as file:
        header, program = json.loads(file.read("header.json")), file.read("program")
    own = json.dumps(header | {"machine": export.machine()})
    members = {"header.json": own, "program": program} | {member: content}
    with zipfile.ZipFile(damaged, "w") as file:
        for name, text in members.items():
            file.writestr(name, text)
    with pytest.raises(rb.ArgumentError, match=match):
        rb.load_function(damaged)


@pytest.mark.ci
def test_an_empty_batch(arm):
    of_any = rb.export_function(arm, "rnea_derivatives", "any")
    q = np.zeros((0, 2), of_any.dtype)
    found, want = of_any(arm, q, q, q), of_any(arm, *(np.zeros((1, 2), q.dtype) for _ in range(3)))
    assert jax.tree.map(lambda x: (*x.shape, x.dtype), found) == jax.tree.map(
        lambda x: (0, *x.shape[1:], x.dtype), want
    )


def test_without_flatbuffers(arm, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "flatbuffers", None)
    program = rb.export_function(arm, "fk")
    program(arm, np.zeros(2))  # nothing is written
    with pytest.raises(rb.MissingExtraError, match=r"rbydyn_jax\[export\]"):
        program.save(tmp_path / "program")
    with pytest.raises(rb.MissingExtraError, match=r"rbydyn_jax\[export\]"):
        rb.load_function(tmp_path / "program")
