"""``rbydyn bench``: its tables, what it tells machines, and its exit codes."""

from __future__ import annotations

import json

import pytest

from rbydyn_jax import robots, save_urdf
from rbydyn_jax.cli import main


@pytest.fixture
def pendulum(tmp_path):
    path = tmp_path / "pendulum.urdf"
    save_urdf(robots.pendulum(), path)
    return path


@pytest.mark.slow
def test_speed_is_told_for_each_size(pendulum, capsys):
    assert main(["bench", str(pendulum), "--batches", "2,1", "--dtype", "float32"]) == 0
    out = capsys.readouterr().out
    assert "pendulum, 1 degrees of freedom, float32 on" in out
    assert "compile [s]       B = 1       B = 2" in out
    rows = {row.split("  ")[0]: row.split()[-3:] for row in out.splitlines()[4:]}
    assert list(rows) == ["fk", "jacobian of bob", "rnea", "gradient through rnea", "crba", "aba"]
    assert all(float(x) > 0 for numbers in rows.values() for x in numbers)


@pytest.mark.slow
def test_speed_is_told_to_machines(pendulum, capsys):
    assert main(["bench", str(pendulum), "--batches", "1", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["name"], facts["nv"], facts["dtype"]) == ("pendulum", 1, "float64")
    assert [x["name"] for x in facts["algorithms"]][2:] == ["rnea", "gradient through rnea", "crba", "aba"]
    assert all(set(x["us"]) == {"1"} and x["us"]["1"] > 0 < x["compile_s"] for x in facts["algorithms"])


@pytest.mark.slow
def test_precision_is_told_to_people_and_machines(pendulum, capsys):
    assert main(["bench", str(pendulum), "--precision", "--samples", "8"]) == 0
    out = capsys.readouterr().out
    assert "pendulum: float32 against float64 in 8 random states inside the limits" in out
    assert "cond(M): median 1, worst 1" in out
    joint = next(row for row in out.splitlines() if row.startswith("hinge"))
    assert len(joint.split()) == 10  # all algorithms but fk, whose parts are links
    assert out.endswith("float32 is sufficient.\n")

    assert main(["bench", str(pendulum), "--precision", "--samples", "8", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert facts["condition"] == {"median": 1.0, "worst": 1.0}
    found = {x["name"]: x for x in facts["algorithms"]}
    assert list(found["aba"]["errors"]) == ["hinge"] and list(found["fk"]["errors"]) == ["base", "bob"]
    assert 0 < found["rnea"]["median"] <= found["rnea"]["worst"] < 1e-5
    assert f"{found['rnea']['worst']:.1e}" in out  # the same states
    assert facts["recommendation"][-1] == "float32 is sufficient."


@pytest.mark.parametrize("options", [[], ["--precision"]])
def test_what_cannot_be_measured_ends_with_2(options, tmp_path, capsys):
    path = tmp_path / "stone.urdf"
    path.write_text('<robot name="stone"><link name="base"/></robot>')
    assert main(["bench", str(path), *options]) == 2
    told = capsys.readouterr()
    assert told.out == "" and "stone has no joint that moves" in told.err
    assert main(["bench", str(tmp_path / "none.urdf"), *options]) == 2
