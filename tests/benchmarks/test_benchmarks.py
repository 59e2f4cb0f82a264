"""The benchmarks: what counts as arithmetic, robots of any size, runs that are resumed, losses on the page."""

from __future__ import annotations

import argparse
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from benchmarks import compare, floor, gpu, scale, versions, worker
from benchmarks.case import Entry, make_case
from benchmarks.ours import LIBRARY, Ours
from benchmarks.plans import BATCHES, REFERENCE, Job, plan
from benchmarks.records import Run
from benchmarks.render import render
from benchmarks.store import Store
from benchmarks.summary import insert, summary

X = jnp.linspace(0.1, 1.0, 8)


@pytest.mark.parametrize(
    ("f", "operations"),
    [
        (lambda x: x * x + 1.0, 16),
        (lambda x: (x * x, x / 3.0)[0], 8),  # what is not used does not count
        (lambda x: jnp.outer(x, x) @ x, 64 + 2 * 64),
        (lambda x: jnp.where(x > 0.5, x, -x), 8),  # a comparison and a choice are free, the negation is not
        (lambda x: jax.lax.scan(lambda c, _: (c * x + x, None), x, None, length=5)[0], 5 * 16),
        (lambda x: jax.jit(jnp.sin)(x).sum(), 8 + 8),
        (lambda x: x**3, 16),
        (lambda x: jax.lax.linalg.cholesky(jnp.outer(x, x), symmetrize_input=False), 64 + 8**3 // 3),
    ],
)
def test_arithmetic_is_counted(f, operations):
    assert floor.count(f, X) == operations


@pytest.mark.slow
def test_the_arithmetic_of_the_library_is_counted():
    """A rigid body takes some hundred operations in each of the recursions; the plain sums are far below that."""
    model = make_case("chain7", "float64", 1).model
    q = jnp.zeros(7)
    counts = {
        "rnea": floor.count(rb.rnea, model, q, q, q),
        "aba": floor.count(rb.aba, model, q, q, q),
        "crba": floor.count(rb.crba, model, q),
        "gradient": floor.count(jax.grad(lambda x: rb.rnea(model, x, q, q).sum()), q),
    }
    assert all(n > 7 * 100 for n in counts.values()), counts
    assert counts["gradient"] > counts["rnea"] < counts["aba"], counts


@pytest.mark.parametrize(("robot", "depth"), [("chain7", 7), ("tree7", 3)])
def test_robots_of_any_size(robot, depth):
    case = make_case(robot, "float64", 1)
    tree = case.model.tree
    assert tree.nv == 7 and max(len(tree.path(i)) for i in range(7)) == depth
    assert case.link in tree.link_names and case.inputs["q"].shape[1] == 7


def test_plans_hold_what_they_promise():
    for name in ("quick", "standard", "full"):
        jobs = plan(name)
        assert len({job.key for job in jobs}) == len(jobs)
        assert all(REFERENCE in job.batches for job in jobs)
    batches = {b for job in plan("standard") if job.robot == "rby1a" for b in job.batches}
    assert batches == set(BATCHES) == {1, 64, 1024, 16384, 131072}
    assert {"rby1a", "panda", "g1", "talos", "chain128", "tree127"} <= {job.robot for job in plan("standard")}


def entry(library: str, operation: str) -> Entry:
    return Entry(library, operation, 1, lambda: None)


def test_results_that_differ_or_are_not_finite_are_told():
    reference = np.array([[1.0, 2.0], [4.0, 0.0]])
    assert worker._difference(entry("mujoco", "crba"), reference + 0.1, reference) == pytest.approx(0.025)
    hole = np.array([[1.0, np.nan], [4.0, 0.0]])
    assert worker._difference(entry("mujoco", "fk"), hole, reference) == 0.0
    for library, operation in ((LIBRARY, "fk"), ("mujoco", "crba")):
        assert worker._difference(entry(library, operation), hole, reference) == np.inf
    with pytest.raises(ValueError, match="mujoco"):
        worker._difference(entry("mujoco", "crba"), reference[:1], reference)


def filled(store: Store) -> Store:
    """A run in which Pinocchio is twice as fast in crba, and rnea is not the same."""
    here = {"robot": "rby1a", "nv": 24, "dtype": "float64"}
    store.add("peak", {"dtype": "float64", "per_second": 1e9})
    store.add("versions", {"pinocchio": "4.1", "frax": "not installed"})
    for operation, ours, peer, error in (("rnea", 0.5, 5.0, 1e-3), ("crba", 2.0, 1.0, 1e-15)):
        record = here | {"operation": operation}
        times = record | {"library": LIBRARY, "batch": REFERENCE, "us": ours, "error": error}
        store.add("times", times)
        store.add("times", record | {"library": "pinocchio", "batch": 1, "us": peer, "overhead_us": 0.5, "error": 0.0})
        stages = {"trace_s": 1.0, "lower_s": 1.0, "xla_s": 2.0, "compile_s": 4.0}
        size = {"stablehlo_operations": 10, "hlo_instructions": 5, "temporary_bytes": 1000, "output_bytes": 1000}
        store.add("compile", record | stages | size | {"batch": REFERENCE, "mapped": False, "flops": 100})
        store.add("single", record | {"us": 30.0, "noop_us": 10.0})
        store.add("done", record | {"batches": [REFERENCE]})
    return store


def test_page_shows_losses_as_plainly_as_wins(tmp_path):
    run = Run(filled(Store(tmp_path / "r.json", keep=False)).found)
    page = render(run)
    assert "Of 2 comparisons 1 are lost." in page
    assert "| `crba` (full matrix) | RB-Y1 A | float64 | pinocchio | **0.5** |" in page
    assert "| `crba` (full matrix) | float64 | 2 | **1** | **0.5** | 2.4 | **no** |" in page
    assert "| `rnea` | float64 | 0.5 | 5 | 10 | 8 | yes |" in page
    assert "| `rnea` | float64 | 1 | 1 | 2 | 4 | 2 | **no** | 10 | 5 |" in page  # compiles in 4 s, 2 are promised
    assert "| `rnea` | RB-Y1 A | float64 | **1e-03** |" in page
    assert "| `rnea` | float64 | 100 | 0.1 | 0.5 | 20 % |" in page
    assert "frax: not installed" in page

    page = tmp_path / "page.md"
    page.write_text("before\n<!-- benchmarks -->\nstale\n<!-- /benchmarks -->\nafter\n")
    insert(page, summary(run))
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "stale" not in text
    assert "| `crba` (full matrix) | 2 | **1** | **0.5** | 4 | 30 (**1.5**) |" in text
    assert "faster in 1 of 2 comparisons, most of all in `crba` (full matrix) of RB-Y1 A" in text
    assert "compile [s], target <= 2: `rnea` 4 (float64)" in text


def test_a_run_is_resumed(tmp_path):
    path = tmp_path / "deep" / "r.json"
    store = filled(Store(path, keep=False))
    store.save(2.0)
    again = Store(path, keep=True)
    done = Job("rby1a", "float64", "rnea", (REFERENCE,), ())
    assert again.has(done) and not again.has(Job("rby1a", "float32", "rnea", (REFERENCE,), ()))
    assert not again.has(Job("rby1a", "float64", "rnea", (1, REFERENCE), ()))  # a batch is missing
    again.forget(done)
    assert not again.has(done) and {x["operation"] for x in again.found["times"]} == {"crba"}
    assert not Store(path, keep=False).found["times"]
    found = json.loads(path.read_text())
    found["machine"]["cpu"] = "another"
    path.write_text(json.dumps(found))
    with pytest.raises(SystemExit, match="another machine"):
        Store(path, keep=True)


def test_a_run_takes_the_place_of_that_of_the_same_jax(tmp_path):
    path = tmp_path / "r.json"
    other = {"versions": {"jax": "0.0.1"}, "rows": 1}
    path.write_text(json.dumps({"runs": [other, {"versions": {"jax": jax.__version__}, "rows": 2}]}))
    found = Store(path, keep=False).save_run({"rows": 3})
    assert found == json.loads(path.read_text())
    assert [run["rows"] for run in found["runs"]] == [1, 3]
    assert found["runs"][0] == other
    assert found["runs"][1]["versions"]["jax"] == jax.__version__


@pytest.mark.slow
def test_ours_is_compiled_and_agrees_with_itself():
    case = make_case("chain1", "float64", 4)
    ours = Ours(case, "rnea")
    assert ours.result_bytes() == 8
    record = ours.compile_cold(4)
    assert record["compile_s"] > 0 and record["hlo_instructions"] > 0 and record["output_bytes"] >= 4 * 8
    told = ours.entry(4)
    told.run()
    assert told.values is not None and told.values().shape == (4, 1)


def test_scale_says_what_is_not_flat():
    us = {("vmap", 1024): 1.0, ("numpy", 4096): 1.2, ("jax", 4096): 1.4}
    record = {"dtype": "float32", "operation": "fk"}
    memory = {"size": 4096, "data_mib": 10.0, "peak_mib": 300.0, "cap_mib": 1034.0, "vmap_mib": 90.0}
    times = [{**record, "way": way, "batch": batch, "us": x} for (way, batch), x in us.items()]
    text = scale.table({"times": times, "memory": [record | memory]})
    assert "| `fk` float32 | 1.000 | 1.200 | 1.400 | 1.20 | 1.40 (!) |" in text
    assert "| `fk` float32 | 4,096 | 10 | 300 | 1,034 | 90 |" in text


def results(path, us, compile_s):
    same = {"robot": "rby1a", "dtype": "float64", "operation": "rnea", "batch": REFERENCE}
    times = [same | {"library": LIBRARY, "us": us}, same | {"library": "frax", "us": 9.0, "batch": 1}]
    path.write_text(json.dumps({"times": times, "compile": [same | {"compile_s": compile_s}]}))
    return path


def test_a_loss_between_two_files_of_results_is_an_error(tmp_path, capsys):
    before, same = results(tmp_path / "before", 0.3, 2.0), results(tmp_path / "same", 0.32, 2.1)
    slower = results(tmp_path / "slower", 0.3, 2.5)
    compare.run(argparse.Namespace(before=before, after=same, loss=compare.LOSS))
    assert "1.07  run rby1a float64 rnea 1024" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"1 of 2 took more than 1\.1 times as long"):
        compare.run(argparse.Namespace(before=before, after=slower, loss=compare.LOSS))
    assert capsys.readouterr().out.splitlines()[0] == "  1.25  compile rby1a float64 rnea 1024"


def test_two_versions_stand_side_by_side():
    one = {"dtype": "float64", "operation": "rnea", "jax": "0.10.2", "us": 0.4, "compile_s": 2.0, "kernels": 50}
    text = versions.table({"times": [one, one | {"jax": "0.12.0", "us": 0.5, "compile_s": 3.0, "kernels": 60}]})
    assert text.splitlines()[-1] == "| `rnea` float64 | 0.400 | 0.500 | 1.25 | 2.0 | 3.0 | 1.50 | 50 | 60 |"


@pytest.mark.ci
def test_libraries_on_a_device_are_compared_in_processes_of_their_own(tmp_path, capsys):
    """On a CPU, where each has one: values against this library in float64, and what fails beside what is found."""
    output = tmp_path / "gpu.json"
    parser = argparse.ArgumentParser()
    gpu.add_command(parser.add_subparsers(), tmp_path)
    options = ["--robots", "chain2", "--operations", "rnea", "--libraries", "rbydyn_jax,nothing", "--batches", "4,8"]
    options += ["--platform", "cpu", "--seconds", "0.01", "--processes", "1", "--output", str(output)]
    gpu.run(parser.parse_args(["gpu", *options]))
    found = json.loads(output.read_text())
    assert [r["batch"] for r in found["times"]] == [4, 8]
    assert all(0.0 < r["error"] < 1e-5 and r["loop_us"] > 0.0 and r["bytes"] == 4 * 4 * 2 for r in found["times"])
    (failure,) = found["failures"]
    assert (failure["library"], failure["failure"]) == ("nothing", "exit status 1")
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("| chain2 float32 `rnea` | rbydyn_jax |") for line in lines)
    assert lines[-1] == "- without nothing rnea: exit status 1"
