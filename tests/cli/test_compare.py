"""``rbydyn compare``: agreement, a difference that is named, and engines that are missing or have no such joint."""

from __future__ import annotations

import json
import sys

import pytest

from rbydyn_jax import robots, save_urdf
from rbydyn_jax.cli import compare as command
from rbydyn_jax.cli import main
from tests.helpers import oracle


@pytest.mark.slow
def test_the_engines_agree_and_a_difference_is_named(tmp_path, capsys, monkeypatch):
    for engine in ("pinocchio", "mujoco", "rby1_sdk"):
        oracle(engine)
    path = tmp_path / "arm.urdf"
    save_urdf(robots.two_link_arm(), path)
    computed, kept = command.our_results, []

    def results(*arguments):
        kept[:] = kept or [computed(*arguments)]
        return kept[0]

    monkeypatch.setattr(command, "our_results", results)
    given = ["compare", str(path), "--with", "pinocchio,mujoco,rby1_sdk", "--samples", "20", "--bound", "1e-12"]
    assert main([*given, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert set(facts["errors"]) == {"pinocchio", "mujoco", "rby1_sdk"} and facts["first_difference"] is None
    assert all({"fk", "crba", "rnea", "aba"} <= set(errors) for errors in facts["errors"].values())

    rnea = kept[0].values["rnea"].copy()
    rnea[7, 1] += 10.0
    kept[0].values["rnea"] = rnea
    assert main(given) == 1
    out = capsys.readouterr().out
    assert "first difference: rnea against pinocchio: " in out and out.endswith("configuration 7, joint 'elbow'\n")
    assert sum("!" in line for line in out.splitlines()[1:]) == 1  # rnea, and nothing else


def test_engines_that_cannot_be_asked(capsys, monkeypatch, tmp_path):
    with pytest.raises(SystemExit) as stop:
        main(["compare", "pendulum", "--with", "drake"])
    assert stop.value.code == 2 and "no engine named 'drake'" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "mujoco", None)
    assert main(["compare", "pendulum", "--with", "mujoco"]) == 2
    assert "needs the package 'mujoco': pip install 'rbydyn_jax[mjcf]'" in capsys.readouterr().err
    path = tmp_path / "stone.urdf"
    path.write_text('<robot name="stone"><link name="base"/></robot>')
    oracle("pinocchio")
    assert main(["compare", str(path), "--with", "pinocchio"]) == 2
    assert "stone has no joint that moves a mass" in capsys.readouterr().err
