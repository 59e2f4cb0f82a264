"""Results in files."""

from __future__ import annotations

import json
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import collision, planning, robots
from rbydyn_jax._result import Result
from tests.helpers import untyped

ARM = robots.two_link_arm()
START = jnp.array([0.2, 0.3])


def assert_same(got, want):
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(*map(jax.tree.leaves, (got, want)), strict=True):
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b, strict=True)


def results():
    goal = planning.PositionGoal("tool", jnp.array([0.3, 0.6, 0.0]))
    problem = planning.TrajectoryProblem(ARM, START, [goal], duration=2.0, clearance=None)
    solved = planning.solve_trajectory(problem)
    yield solved
    yield solved.trajectory
    yield planning.time_parametrize(ARM, jnp.array([[0.0, 0.1], [0.3, 0.2]]), intervals=2, torques=False)
    yield planning.solve_ik(ARM, "tool", rb.link_pose(ARM, START + 0.1, "tool"))
    yield rb.aba_derivatives(ARM, START, START, START)
    world = collision.World(collision.sphere(jnp.array([1.0, 0.0, 1.0]), 0.1))
    yield collision.world_contacts(robots.rby1a(), jnp.zeros(24), world)


@pytest.mark.ci
def test_what_is_saved_is_loaded(tmp_path):
    for k, result in enumerate(results()):
        result.save(tmp_path / f"{k}.npz")
        got = rb.load_result(tmp_path / f"{k}.npz")
        assert type(got) is type(result)
        assert_same(got, result)
        assert repr(got) == repr(result)


def test_a_batch_is_saved_whole(tmp_path):
    targets = jax.vmap(lambda q: rb.link_pose(ARM, q, "tool"))(START[None] + jnp.array([[0.1, 0.2], [0.3, -0.1]]))
    found = jax.vmap(lambda T: planning.solve_ik(ARM, "tool", T))(targets)
    found.save(str(tmp_path / "batch"))
    assert_same(rb.load_result(tmp_path / "batch"), found)


class Nested(Result):
    """A result of all that results consist of.

    Args:
        values: Some.
    """

    values: object


def test_containers_and_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(Nested, "__module__", "rbydyn_jax._result")
    monkeypatch.setattr("rbydyn_jax._result.Nested", Nested, raising=False)
    inside = {"a": (1, 2.5, None, True, "x"), "b": [np.float32(0.5), np.arange(3)], "c": {"inf": float("inf")}}
    Nested(inside).save(tmp_path / "n")
    got = rb.load_result(tmp_path / "n").values
    assert got["a"] == inside["a"] and [type(x) for x in got["a"]] == [int, float, type(None), bool, str]
    assert got["c"] == inside["c"] and got["b"][0] == np.float32(0.5) and got["b"][0].dtype == np.float32
    np.testing.assert_array_equal(got["b"][1], np.arange(3), strict=True)


def test_what_cannot_be_saved_or_read_is_named(tmp_path):
    found = rb.aba_derivatives(ARM, START, START, START)
    with pytest.raises(rb.DtypeError, match="traced"):
        jax.jit(lambda q: rb.aba_derivatives(ARM, q, q, q).save(tmp_path / "x"))(START)
    assert not (tmp_path / "x").exists()
    with pytest.raises(rb.DtypeError, match=r"path must be a path"):
        untyped(found).save(b"x")
    with pytest.raises(rb.ArgumentError, match="must be a file of a result"):
        rb.load_result(tmp_path)
    with pytest.raises(FileNotFoundError):
        rb.load_result(tmp_path / "none")
    (tmp_path / "text").write_text("not a result")
    np.savez(tmp_path / "arrays.npz", a=np.zeros(2))
    np.save(tmp_path / "array.npy", np.zeros(2))
    with zipfile.ZipFile(tmp_path / "header.npz", "w") as file:
        file.writestr("tree.npy", (tmp_path / "array.npy").read_bytes().replace(b"'shape'", b"'sh\0pe'"))
    np.savez(tmp_path / "deep.npz", tree=np.array("[" * 200_000))
    np.savez(tmp_path / "deeper.npz", tree=np.array('{"list": [' * 900 + "1" + "]}" * 900))
    (tmp_path / "film.gif").write_bytes(b"GIF89a" + bytes(100))
    for name in ("text", "arrays.npz", "array.npy", "header.npz", "deep.npz", "deeper.npz", "film.gif"):
        with pytest.raises(rb.ArgumentError, match=rf"{name} must be a file of a result, as `save` writes it$"):
            rb.load_result(tmp_path / name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class": "os:system"}, "does not have"),
        ({"class": "rbydyn_jax._check:known"}, "does not have"),
        ({"class": "rbydyn_jax.nowhere:Result"}, "does not have"),
        ({"class": "rbydyn_jax.planning.trajectory:Trajectory"}, "another version"),
        ({"fields": {"dtau_dq": {"array": "array_9", "jax": True}}}, "must be a file of a result"),
    ],
)
def test_only_classes_of_the_library_are_made(tmp_path, change, message):
    rb.aba_derivatives(ARM, START, START, START).save(tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz") as file:
        stored = dict(file)
    tree = json.loads(str(stored.pop("tree"))) | change
    np.savez(tmp_path / "changed.npz", tree=np.array(json.dumps(tree)), **stored)
    with pytest.raises(rb.ArgumentError, match=message):
        rb.load_result(tmp_path / "changed.npz")
