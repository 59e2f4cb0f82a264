"""The demo on a small arm: what it prints and writes, and when it ends with which exit code."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import MissingExtraError, link_pose
from rbydyn_jax.cli import batch as batch_module
from rbydyn_jax.cli import main
from rbydyn_jax.cli.batch import compile_batch, run_batch
from rbydyn_jax.cli.demo import demo, table
from rbydyn_jax.cli.task import Task, reaching_task
from rbydyn_jax.collision import min_distance
from rbydyn_jax.planning import Trajectory, TrajectoryReport, TrajectorySamples
from tests.helpers import untyped
from tests.planning.arms import pole_arm, q_start, target


def small_task() -> Task:
    """The tip of an arm gets past a pole."""
    model = pole_arm()
    return Task("past the pole", model, q_start(), "tool", target(model), ("shoulder", "elbow"), 0.6, ("lower", "tool"))


@pytest.mark.slow
def test_demo_ends_with_0_if_the_motion_keeps_its_limits(tmp_path, capsys):
    assert demo(tmp_path / "new", batch=8, task=small_task) == 0
    told = capsys.readouterr()
    assert "pole_arm, 2 degrees of freedom, float64" in told.out
    for algorithm in ("fk, all links", "jacobian of tool", "rnea", "crba", "aba", "signed_distances"):
        assert any(row.startswith(algorithm) for row in told.out.splitlines())
    assert "before" in told.out and "after" in told.out and "all checks passed" in told.out
    picture = tmp_path / "new" / "trajectory.png"
    assert str(picture) in told.out
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_demo_ends_with_1_if_the_motion_misses_its_target(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rbydyn_jax.cli.demo.compile_batch", lambda *_: None)
    monkeypatch.setattr("rbydyn_jax.cli.demo.run_batch", lambda *_: True)
    still = Trajectory(q_start(), jnp.zeros((1, 2)), jnp.asarray(0.6), (0, 1), (0, 1), 2)
    monkeypatch.setattr(
        "rbydyn_jax.cli.demo.solve", lambda _: [SimpleNamespace(trajectory=still, solved=False, iterations=3)] * 2
    )
    assert demo(tmp_path, task=small_task) == 1
    out = capsys.readouterr().out
    row = next(row for row in out.splitlines() if row.startswith("final position error"))
    assert row.count("!") == 2 and "FAILED" in out


@pytest.mark.ci
def test_demo_ends_with_1_if_an_identity_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("rbydyn_jax.cli.demo.compile_batch", lambda *_: None)
    monkeypatch.setattr("rbydyn_jax.cli.demo._compile_planner", lambda *_: 0.0)
    monkeypatch.setattr("rbydyn_jax.cli.demo.run_batch", lambda *_: False)
    monkeypatch.setattr("rbydyn_jax.cli.demo._plan", lambda *_: True)
    assert demo(tmp_path, task=small_task) == 1


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["aba", "crba"])
def test_run_batch_finds_a_wrong_algorithm(wrong, monkeypatch, capsys):
    right = getattr(batch_module, wrong)
    monkeypatch.setattr(batch_module, wrong, lambda *arguments: right(*arguments) * (1.0 + 1e-6))
    with jax.enable_x64(True):
        assert not run_batch(compile_batch(pole_arm(), "tool", 8))
    assert "identity: " in capsys.readouterr().out


def test_table_marks_what_is_not_kept():
    grid = untyped(TrajectorySamples)(np.zeros(2), np.zeros((2, 1)), np.zeros((2, 1)), np.zeros((2, 1)))
    rest = (0.5, 0.5, 0.5, 20.0, grid, np.zeros((2, 1)), np.zeros(2))
    before = untyped(TrajectoryReport)(2e-3, 0.001, -0.05, 1.2, *rest)
    after = untyped(TrajectoryReport)(5e-4, 0.001, 0.01, 1.0, *rest)
    rows = dict(row.split("  ", 1) for row in table(before, after).splitlines()[1:-1])
    assert rows["final position error [mm]"].split() == ["2!", "0.5", "<=", "1"]
    assert rows["final orientation error [deg]"].split() == ["0.0573", "0.0573", "<=", "0.5"]
    assert rows["smallest distance [mm]"].split() == ["-50!", "10", ">", "0"]
    assert rows["largest position / limit"].split() == ["1.2!", "1", "<=", "1"]


@pytest.mark.slow
def test_task_starts_free_of_collision_within_its_limits():
    task = reaching_task()
    assert float(min_distance(task.model, task.q_start)) > 0.02
    assert (task.q_start >= task.model.position_lower).all() and (task.q_start <= task.model.position_upper).all()
    assert float(np.linalg.norm(link_pose(task.model, task.q_start, task.link)[:3, 3] - task.target[:3, 3])) > 0.3


def test_missing_extra_is_named_before_anything_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rbydyn_jax\[viz\]'"):
        demo(tmp_path / "new", task=small_task)
    assert main(["demo", "--output", str(tmp_path / "new")]) == 2
    told = capsys.readouterr()
    assert told.out == "" and "rbydyn_jax[viz]" in told.err
    assert not (tmp_path / "new").exists()
