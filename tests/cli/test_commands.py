"""The command line: exit codes, what goes to which stream, and the facts that it prints."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict

import numpy as np
import pytest

from rbydyn_jax import load_urdf, robots, save_urdf
from rbydyn_jax.cli import main
from tests.helpers import assert_close, rby1_file

ROBOT = """<robot name="crank">
  <link name="base"/>
  <link name="arm">
    <inertial><origin xyz="0.2 0 0.1"/><mass value="1.5"/>
      <inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="slider">
    <inertial><origin xyz="0 0 0"/><mass value="0.5"/>
      <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="tip"/>
  <joint name="hinge" type="revolute">
    <parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
    <limit lower="-1.5" upper="0.5" velocity="2" effort="12"/>
  </joint>
  <joint name="rail" type="prismatic">
    <origin xyz="0.4 0 0"/><parent link="arm"/><child link="slider"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="3" effort="4"/>
    <mimic joint="hinge" multiplier="0.25" offset="0.1"/>
  </joint>
  <joint name="mount" type="fixed"><parent link="slider"/><child link="tip"/></joint>
</robot>
"""
LINES = ROBOT.splitlines()
COMMANDS = "info check fk ik compare identify bench convert codegen view demo doctor".split()
MASS = """<inertial><origin xyz="0.1 0 0"/><mass value="2"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>"""


@pytest.fixture
def robot(tmp_path):
    path = tmp_path / "crank.urdf"
    path.write_text(ROBOT)
    return path


def line(text: str) -> int:
    return 1 + next(k for k, content in enumerate(LINES) if text in content)


def broken(robot, old: str, new: str):
    assert old in ROBOT
    path = robot.with_name("broken.urdf")
    path.write_text(ROBOT.replace(old, new))
    return path


def test_help_names_the_commands(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    out = capsys.readouterr().out
    assert stop.value.code == 0
    assert all(f"\n    {command} " in out for command in COMMANDS)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["info"],
        ["demo", "--batch", "0"],
        ["demo", "--steps", "many"],
        ["bench"],
        ["bench", "x", "--batches", "0"],
        *(["compare", "two_link_arm", f"--bound={bound}"] for bound in ("nan", "-1", "inf", "x")),
        ["fk", "two_link_arm", "--q", "inf,0"],
        ["fk", "two_link_arm", "--q", "0,0", "--random", "1"],
        ["ik", "two_link_arm", "--link", "tool", "--position", "nan,0,0"],
        ["fk", "two_link_arm", "--random", "1", "--seed", str(2**63)],
        ["ik", "two_link_arm", "--link", "tool", "--position", "1,0,0", "--seed", str(-(2**63) - 1)],
    ],
)
def test_wrong_arguments_end_with_2_and_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: rbydyn" in capsys.readouterr().err


def test_numbers_that_are_none_are_told(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "two_link_arm", "--batches", "1,x"])
    assert "argument --batches: must be whole numbers between commas, got '1,x'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["fk", "two_link_arm", "--q", "a,b"])
    assert "argument --q: must be numbers between commas, got 'a,b'" in capsys.readouterr().err


def test_info_tells_numbers_to_machines(robot, capsys):
    assert main(["info", str(robot), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["name"] == "crank"
    assert (facts["nq"], facts["nv"], facts["capsules"]) == (1, 1, 0)
    assert facts["links"] == ["base", "arm", "slider", "tip"]
    assert facts["fixed_links"] == {"base": "world", "tip": "slider"}
    assert facts["massless_links"] == ["base", "tip"]
    assert_close(facts["mass"], 2.0)
    # At q = 0 the slider is at its offset: (1.5 (0.2, 0, 0.1) + 0.5 (0.4, 0.1, 0)) / 2.
    assert_close(np.array(facts["center_of_mass"]), np.array([0.25, 0.025, 0.075]))
    hinge, rail = facts["joints"]
    assert hinge["type"] == "revolute" and hinge["parent"] is None and hinge["link"] == "arm"
    assert (hinge["lower"], hinge["upper"]) == ([-1.5], [0.5])
    assert (hinge["velocity_limit"], hinge["effort_limit"], hinge["acceleration_limit"]) == ([2.0], [12.0], [None])
    assert rail["parent"] == "hinge" and rail["axis"] == [0.0, 1.0, 0.0]
    assert rail["mimic"] == {"joint": "hinge", "multiplier": 0.25, "offset": 0.1}
    assert not {"lower", "upper", "velocity_limit", "effort_limit"} & rail.keys()  # those of the hinge are in rad


def test_info_tells_people_the_tree(robot, capsys):
    assert main(["info", str(robot)]) == 0
    out = capsys.readouterr().out
    assert "crank: 2 moving joints, nq = 1, nv = 1, 4 links, 0 capsules" in out
    assert "mass 2.0000 kg, centre of mass at neutral (0.2500, 0.0250, 0.0750) m" in out
    assert "\n  hinge -> arm" in out and "\n    rail -> slider" in out  # indented by depth
    assert "revolute (0 0 1), q [-1.5, 0.5], v 2, tau 12" in out
    assert "prismatic (0 1 0), mimics hinge + tip" in out
    assert "massless links: base, tip" in out
    assert "mimic: rail = 0.25 * hinge + 0.1" in out


@pytest.mark.parametrize(("inertial", "line"), [("", "mass 0.0000 kg"), (MASS, "mass 2.0000 kg, centre of mass at")])
def test_info_on_a_robot_without_joints(inertial, line, tmp_path, capsys):
    path = tmp_path / "stone.urdf"
    path.write_text(f'<robot name="stone"><link name="base">{inertial}</link></robot>')
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert "nan" not in out and "cond(M)" not in out
    assert line + (" neutral (0.1000, 0.0000, 0.0000) m" if inertial else "") in out.splitlines()
    assert main(["info", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)  # NaN is no JSON
    assert facts["mass_matrix_condition"] is None
    assert facts["center_of_mass"] == ([0.1, 0.0, 0.0] if inertial else None)


def test_the_package_runs_as_a_module(robot):
    done = subprocess.run(
        [sys.executable, "-m", "rbydyn_jax.cli", "check", str(robot), str(robot.with_name("none.urdf"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "2 files checked: 1 error" in done.stdout and done.stderr == ""


@pytest.mark.slow
def test_info_on_the_vendors_robot(capsys):
    assert main(["info", str(rby1_file("rby1a_model_v1.2.urdf"))]) == 0
    out = capsys.readouterr().out
    assert "24 moving joints, nq = 24, nv = 24" in out and "17 capsules" in out
    assert "right_arm_6 -> link_right_arm_6" in out


def test_check_passes_a_good_file(robot, capsys):
    assert main(["check", "--strict", str(robot)]) == 0
    note, summary = capsys.readouterr().out.splitlines()
    assert note.endswith("note: joint 'rail': follows joint 'hinge': its own effort limit is not used")
    assert summary == "1 file checked: 0 errors, 0 warnings, 1 note"


def test_check_says_file_line_and_element(robot, capsys):
    path = broken(robot, '<child link="arm"/>', '<child link="amr"/>')
    assert main(["check", str(path)]) == 2
    out = capsys.readouterr().out
    assert f"{path}:{line('<joint name=')}: error: joint 'hinge': " in out
    assert "'amr'" in out and "0 errors" not in out


def test_check_counts_warnings_under_strict_only(robot, capsys):
    path = broken(robot, 'ixx="0.01" iyy="0.02" izz="0.02"', 'ixx="0.01" iyy="0.02" izz="0.2"')
    assert main(["check", str(path)]) == 0
    assert main(["check", str(path), "--strict"]) == 1
    out = capsys.readouterr().out
    assert f"{path}:" in out and "warning: link 'arm': " in out
    assert main(["check", "--strict", str(robot), str(path)]) == 1  # one bad file of two


def test_check_tells_findings_to_machines(robot, tmp_path, capsys):
    bad = broken(robot, '<mass value="1.5"/>', '<mass value="heavy"/>')
    missing = tmp_path / "missing.urdf"
    assert main(["check", "--json", str(robot), str(bad), str(missing)]) == 2
    told = json.loads(capsys.readouterr().out)
    good, wrong, absent = told["files"]
    assert good == {"file": str(robot), "findings": [asdict(f) for f in load_urdf(robot).report]}
    finding = next(f for f in wrong["findings"] if f["level"] == "error")
    assert finding["line"] == line('mass value="1.5"') and finding["element"] == "link 'arm'"
    assert finding["source"] == str(bad) and "heavy" in finding["message"]
    assert [f["level"] for f in absent["findings"]] == ["error"]
    assert told["count"]["error"] == 2


def test_unknown_and_unreadable_files_end_with_2(robot, tmp_path, capsys):
    missing = tmp_path / "missing.urdf"
    for command in ("info", "check"):
        assert main([command, str(missing)]) == 2
        told = capsys.readouterr()
        assert "missing.urdf" in told.out + told.err
        assert "Traceback" not in told.err
    bad = broken(robot, '<mass value="1.5"/>', '<mass value="heavy"/>')
    assert main(["info", str(bad)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert f"{bad}:{line('<mass value=')}: error: link 'arm': " in told.err


def test_written_robots_pass_the_check(tmp_path, capsys):
    path = tmp_path / "arm.urdf"
    save_urdf(robots.panda_like(), path)
    assert main(["check", str(path)]) == 0
    assert "0 errors, 0 warnings" in capsys.readouterr().out


def test_an_empty_name_and_too_many_configurations_are_refused(robot, capsys):
    assert main(["info", ""]) == 2
    assert "the name of the robot is empty" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["fk", str(robot), "--random", "1000000000000"])
    assert "argument --random: must be at most 100000, got 1000000000000" in capsys.readouterr().err


def test_codegen(robot, tmp_path, capsys):
    given = ["codegen", str(robot), "--function", "link_pose", "--set", "link=tip", "--output", str(tmp_path / "c")]
    assert main([*given, "--dtype", "float32", "--name", "tip"]) == 0
    out = capsys.readouterr().out
    assert "CFunction(tip(q (1,)) -> result (4, 4), float32" in out
    assert out.split()[-2:] == [str(tmp_path / "c" / f"tip.{end}") for end in ("h", "c")]
    assert "void tip(const float q[1], float result[16]);" in (tmp_path / "c" / "tip.h").read_text()
    assert main(["codegen", str(robot), "--function", "link_pose"]) == 2
    assert "link_pose needs link: --set link=...\n" in capsys.readouterr().err
    assert main(["codegen", str(robot), "--function", "link_poses"]) == 2
    assert "did you mean 'link_pose'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["codegen", str(robot), "--function", "link_pose", "--set", "tip"])
    assert "must be NAME=VALUE, got 'tip'" in capsys.readouterr().err
