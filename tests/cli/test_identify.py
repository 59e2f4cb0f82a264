"""`rbydyn identify`: what a simulated log shows, for people and machines, and what it refuses."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rbydyn_jax as rb
from rbydyn_jax import robots
from rbydyn_jax.cli import main
from tests.helpers import X64

pytestmark = pytest.mark.skipif(not X64, reason="accelerations of a log need float64")
MASS, FRICTION, CONSTANTS = 0.7, (0.3, 0.2), (5.0, 2.0)


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    """An arm in a file."""
    path = tmp_path_factory.mktemp("robot") / "arm.urdf"
    rb.save_urdf(robots.two_link_arm(), path)
    return str(path)


def write(path, model, t, q, tau):
    names = ["time", *(f"{x}_{name}" for x in ("q", "tau", "current") for name in model.joint_names)]
    table = np.column_stack([t, q, tau, tau / np.array(CONSTANTS)])
    np.savetxt(path, table, delimiter=",", header=",".join(names), comments="")
    return str(path)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Six seconds of it with a payload of 0.7 kg and friction, in torques and in currents."""
    arm, t = robots.two_link_arm(), np.arange(0.0, 6.0, 0.005)[:, None]
    real = rb.attach_payload(rb.with_friction(arm, jnp.array(FRICTION)), "tool", MASS)
    q, v, a = np.zeros((3, len(t), 2))
    for size, rate, phase in ((0.8, (3.0, 4.0), (0.0, 1.0)), (0.35, (7.0, 9.0), (0.0, 2.0))):
        angle = np.array(rate) * t + np.array(phase)
        q += size * np.sin(angle)
        v += size * np.array(rate) * np.cos(angle)
        a -= size * np.array(rate) ** 2 * np.sin(angle)
    torques = jax.jit(jax.vmap(rb.identification.motor_torques, (None, 0, 0, 0)))
    tau = np.asarray(torques(real, q, v, a)) + 0.02 * np.random.default_rng(0).normal(size=q.shape)
    return write(tmp_path_factory.mktemp("log") / "log.csv", arm, t, q, tau)


@pytest.mark.slow
def test_a_payload_is_found_and_the_robot_written(robot, log, tmp_path, capsys):
    output = tmp_path / "loaded.urdf"
    options = ["--payload", "tool", "--terms", "inertia,friction", "--output", str(output)]
    assert main(["identify", log, "--urdf", robot, *options]) == 0
    said = capsys.readouterr()
    assert said.err == "1200 rows of 2 joints are read, 900 are fitted\n"
    assert "m of the payload" in said.out and "every link can exist" in said.out
    assert main(["identify", log, "--urdf", robot, *options, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert facts["rows"] == {"fitted": 900, "held_out": 300}
    assert facts["converged"] and facts["consistent"] and facts["better"]
    assert abs(facts["unknowns"]["m of the payload"]["fitted"] - MASS) < 0.01
    for joint, friction in zip(("shoulder", "elbow"), FRICTION, strict=True):
        assert abs(facts["unknowns"][f"friction of {joint}"]["fitted"] - friction) < 0.01
        assert facts["errors"][joint]["after"] < 0.05 * facts["errors"][joint]["before"]
    written = rb.load_urdf(output)
    assert abs(float(written.friction[0]) - FRICTION[0]) < 0.01
    assert float(rb.total_mass(written)) > float(rb.total_mass(robots.two_link_arm())) + 0.3


@pytest.mark.slow
def test_currents_and_robots_that_do_not_fit(robot, log, tmp_path, capsys):
    loaded = tmp_path / "loaded.urdf"
    rb.save_urdf(rb.attach_payload(robots.two_link_arm(), "tool", MASS), loaded)
    options = ["--terms", "friction", "--json"]
    assert main(["identify", log, "--urdf", str(loaded), "--constants", "3,3", *options]) == 0
    found = json.loads(capsys.readouterr().out)["unknowns"]
    for joint, constant in zip(("shoulder", "elbow"), CONSTANTS, strict=True):
        assert abs(found[f"constant of {joint}"]["fitted"] / constant - 1.0) < 0.01
    # Friction alone cannot explain a payload that is not in the model, and a prior of nothing leaves all as it was.
    assert main(["identify", log, "--urdf", robot, "--terms", "damping", "--prior", "1e-12"]) == 1
    assert "does not predict" in capsys.readouterr().out


@pytest.mark.ci
def test_the_friction_of_a_joint_that_stands_still_has_no_deviation_in_json(robot, tmp_path, capsys):
    t = np.arange(0.0, 4.0, 0.005)
    q = np.column_stack([0.8 * np.sin(3.0 * t), np.zeros_like(t)])
    tau = np.random.default_rng(0).normal(size=q.shape)
    log = write(tmp_path / "log.csv", robots.two_link_arm(), t, q, tau)
    main(["identify", log, "--urdf", robot, "--terms", "damping,friction", "--json"])
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["unknowns"]
    for term in ("damping", "friction"):
        assert found[f"{term} of elbow"]["deviation"] is None
        assert 0.0 < found[f"{term} of shoulder"]["deviation"] < 1.0


@pytest.mark.ci
def test_it_computes_in_float64_whatever_the_default(robot, log, capsys):
    with jax.enable_x64(False):
        assert main(["identify", log, "--urdf", robot, "--payload", "tool", "--terms", "inertia", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["consistent"] and facts["better"]
    # Of a body that turns about two parallel axes the torques tell m, two moments and one inertia.
    assert facts["combinations"]["of"] == len(facts["unknowns"]) and facts["combinations"]["told_apart"] == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--window", "20"], "window must be odd"),
        (["--payload", "hand"], "no link named 'hand'"),
        (["--constants", "1"], "constants must have shape (2,)"),
        (["--prior", "-1"], "prior must be finite and positive"),
    ],
)
def test_wrong_options_end_with_2(options, message, robot, tmp_path, capsys):
    t = 0.01 * np.arange(40)
    log = write(tmp_path / "log.csv", robots.two_link_arm(), t, np.sin(t[:, None] * [1.0, 2.0]), np.ones((40, 2)))
    assert main(["identify", log, "--urdf", robot, *options]) == 2
    assert message in capsys.readouterr().err


def test_fewer_torques_than_unknowns_are_told(robot, tmp_path, capsys):
    t = 0.01 * np.arange(40)
    log = write(tmp_path / "log.csv", robots.two_link_arm(), t, np.sin(t[:, None] * [1.0, 2.0]), np.ones((40, 2)))
    message = "warning: 2 torques are fitted to 4 unknowns"
    for share, few in (("0.99", True), ("0.9", False)):
        main(["identify", log, "--urdf", robot, "--terms", "damping,friction", "--held-out", share])
        assert (message in capsys.readouterr().err) is few


def test_wrong_logs_and_words_end_with_2(robot, tmp_path, capsys):
    empty = tmp_path / "log.csv"
    empty.write_text("time,q_shoulder\n")
    assert main(["identify", str(empty), "--urdf", robot]) == 2
    assert "log.csv:1: error: the file has no column" in capsys.readouterr().err
    assert main(["identify", str(tmp_path / "none.csv"), "--urdf", robot]) == 2
    assert "none.csv" in capsys.readouterr().err
    t = 0.01 * np.arange(40)
    log = write(tmp_path / "log.csv", robots.two_link_arm(), t, np.full((40, 2), np.nan), np.ones((40, 2)))
    assert main(["identify", log, "--urdf", robot]) == 2
    assert "log.csv:2: error: column 'q_shoulder': a value must be finite" in capsys.readouterr().err
    for options in (["--terms", "masses"], ["--held-out", "1"]):
        with pytest.raises(SystemExit) as stop:
            main(["identify", str(empty), "--urdf", robot, *options])
        assert stop.value.code == 2
        assert "usage: rbydyn identify" in capsys.readouterr().err
