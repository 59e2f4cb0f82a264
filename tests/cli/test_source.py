"""How the commands find robots: files of every format, names, and what each command makes of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

from rbydyn_jax import NameNotFoundError, robots, save_urdf
from rbydyn_jax.cli import main
from rbydyn_jax.cli.source import find
from tests.cli.test_commands import ROBOT
from tests.helpers import assert_close

MJCF = """<mujoco model="swing"><worldbody><body name="bob"><joint name="hinge"/>
  <geom type="sphere" size="0.1" pos="0 0 -1"/></body></worldbody></mujoco>"""
XACRO = """<robot name="swing" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:property name="m" value="2"/>
  <link name="world"/><link name="bob"><inertial><mass value="${m}"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous"><parent link="world"/><child link="bob"/><axis xyz="0 1 0"/></joint></robot>"""


def test_a_robot_is_a_file_or_a_name(tmp_path, monkeypatch):
    path = tmp_path / "arm.urdf"
    save_urdf(robots.two_link_arm(), path)
    found = find(str(path))
    assert (found.load().name, found.path, found.format) == ("two_link_arm", path, "urdf")
    assert find("two_link_arm").load().nq == 2 and find("two_link_arm").path is None
    description = ModuleType("robot_descriptions.arm_description")
    description.URDF_PATH, description.PACKAGE_PATH = str(path), str(tmp_path)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "robot_descriptions", ModuleType("robot_descriptions"))
    monkeypatch.setitem(sys.modules, "robot_descriptions.arm_description", description)
    found = find("arm_description")
    assert (found.load().name, found.packages) == ("two_link_arm", (tmp_path, tmp_path.parent))


def test_a_wrong_name_is_told_the_nearest_ones(tmp_path, monkeypatch):
    package = tmp_path / "robot_descriptions"
    package.mkdir()
    for name in ("__init__", "arm_description", "arm_mj_description", "_cache"):
        (package / f"{name}.py").write_text("")
    monkeypatch.delitem(sys.modules, "robot_descriptions", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(NameNotFoundError, match=r"did you mean 'arm_description' or 'arm_mj_description'\?$"):
        find("arm_descriptio")
    with pytest.raises(NameNotFoundError, match="did you mean 'two_link_arm'"):
        find("two_link_arn")
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    with pytest.raises(NameNotFoundError, match=r"the robots are: .* \(for others: pip install robot_descriptions\)"):
        find("arm_descriptio")


@pytest.mark.parametrize(("package", "name", "text"), [("mujoco", "a.xml", MJCF), ("xacrodoc", "a.urdf.xacro", XACRO)])
def test_commands_take_mjcf_and_xacro(package, name, text, tmp_path, capsys, monkeypatch):
    pytest.importorskip(package)
    path = tmp_path / name
    path.write_text(text)
    assert main(["check", str(path)]) == 0
    assert main(["convert", str(path), "--output", str(tmp_path / "out.urdf")]) == 0
    assert find(str(tmp_path / "out.urdf")).load().joint_names == ("hinge",)
    path.write_text(text.replace("hinge", "hinge<"))
    capsys.readouterr()
    assert main(["check", str(path)]) == 2 and main(["info", str(path)]) == 2
    path.write_text(text)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["convert", str(path)]) == 2 and package in capsys.readouterr().err


def test_fk_prints_poses(capsys):
    q = [np.pi / 2, -np.pi / 2]  # the forearm is along x again
    assert main(["fk", "two_link_arm", "--link", "tool", "--q", ",".join(map(str, q)), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["configurations"]
    tool = found["links"]["tool"]
    assert_close(np.array(tool["quaternion_wxyz"]), np.array([1.0, 0, 0, 0]), 1e-12)
    assert_close(np.array(tool["position"]), np.array(tool["T"])[:3, 3], 1e-15)
    assert main(["fk", "two_link_arm", "--q", "-0.5,0.25"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "q = -0.5,0.25" and [line.split()[0] for line in lines[2:]] == ["base", "upper", "lower", "tool"]
    assert lines[-1].split()[4:] == [f"{x:.6f}" for x in (np.cos(0.125), 0, 0, -np.sin(0.125))]
    assert main(["fk", "two_link_arm", "--q", "1"]) == 2
    assert "q must have shape (2,)" in capsys.readouterr().err


@pytest.mark.ci
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "raise RuntimeError('no network\\nin git')",
            "robot_descriptions.arm_description cannot be fetched: no network",
        ),
        ("raise ValueError", "robot_descriptions.arm_description cannot be fetched: ValueError"),
        ("PACKAGE_PATH = '.'", "no robot named 'arm_description'"),
        ("URDF_PATH = 'arm.urdf'", "no robot named 'arm_description'"),
    ],
)
def test_a_description_that_gives_no_robot_ends_with_2(text, message, tmp_path, monkeypatch, capsys):
    package = tmp_path / "robot_descriptions"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "arm_description.py").write_text(text)
    for name in ("robot_descriptions", "robot_descriptions.arm_description"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["info", "arm_description"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"rbydyn: error: {message}") and told.count("\n") == 1


@pytest.mark.ci
def test_ik_tells_machines_where_a_mimic_joint_is(tmp_path, capsys):
    path = tmp_path / "crank.urdf"
    path.write_text(ROBOT)
    assert main(["ik", str(path), "--link", "tip", "--position", "0.4,0.1,0", "--json"]) == 0
    joints = json.loads(capsys.readouterr().out)["joints"]
    assert_close(np.array(joints["rail"]), 0.25 * np.array(joints["hinge"]) + 0.1, 1e-12)


@pytest.mark.ci
def test_ik_finds_what_fk_gave(capsys):
    reach = ["ik", "two_link_arm", "--link", "tool", "--position"]
    assert main([*reach, "0.3,0.6,0", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["status"] == "SOLVED" and facts["position_error"] < 1e-6
    assert main(["fk", "two_link_arm", "--link", "tool", "--q", ",".join(map(str, facts["q"])), "--json"]) == 0
    at = json.loads(capsys.readouterr().out)["configurations"][0]["links"]["tool"]["position"]
    assert_close(np.array(at), np.array([0.3, 0.6, 0.0]), 1e-6)
    assert main([*reach, "-7,0,0"]) == 1
    assert capsys.readouterr().out.startswith("IkResult: not solved\n")
    with pytest.raises(SystemExit):
        main([*reach, "1,2"])
    assert "must be 3 numbers, got 2" in capsys.readouterr().err


def test_doctor_finds_the_packages(capsys):
    assert main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["works"] and facts["packages"]["numpy"] == np.__version__ and "xacro" in facts["extras"]
    assert main(["doctor"]) == 0
    assert f"numpy {np.__version__}" in capsys.readouterr().out


def test_version_help_and_wrong_arguments_import_no_jax(tmp_path):
    code = """import sys, rbydyn_jax.cli
for arguments in (["--version"], ["--help"], ["check"], ["fk", "a", "--q", "x"]):
    try:
        rbydyn_jax.cli.main(arguments)
    except SystemExit:
        pass
print([name for name in ("jax", "numpy") if name in sys.modules])"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0].startswith("rbydyn_jax ") and done.stdout.splitlines()[-1] == "[]"
    assert "Exit code: 0 if all is well" in done.stdout


def test_robots_are_read_checked_and_converted_without_jax(tmp_path):
    """These commands answer at once, since importing JAX takes longer than they do."""
    pytest.importorskip("mujoco")
    pytest.importorskip("xacrodoc")
    names = ["panda_like"]
    for name, text in (("a.urdf", ROBOT), ("a.xml", MJCF), ("a.urdf.xacro", XACRO)):
        (tmp_path / name).write_text(text)
        names.append(str(tmp_path / name))
    code = f"""import sys, rbydyn_jax.cli
for name in {names}:
    for arguments in (["check", name], ["info", name], ["info", "--json", name], ["convert", name]):
        assert rbydyn_jax.cli.main(arguments) == 0, arguments
print([name for name in ("jax", "jaxlib", "equinox") if name in sys.modules])"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_convert_writes_what_the_file_has(tmp_path, capsys):
    path = tmp_path / "a.urdf"
    path.write_text(ROBOT)
    assert main(["convert", str(path)]) == 0
    text = capsys.readouterr().out
    assert '<joint name="mount" type="fixed">' in text and 'effort="4.0"' in text
    out = tmp_path / "no" / "such" / "a.urdf"
    assert main(["convert", str(path), "--output", str(out)]) == 0
    assert out.read_text() == text
    assert main(["convert", "two_link_arm", "--capsules", "cylinder"]) == 0
    text = capsys.readouterr().out
    assert (text.count("<cylinder"), text.count("<sphere"), text.count("<capsule")) == (2, 4, 0)
    (tmp_path / "a.sdf").write_text('<sdf version="1.9"><model name="a"/></sdf>')
    assert main(["check", str(tmp_path / "a.sdf")]) == 2
    assert "this is SDF; convert it to URDF first" in capsys.readouterr().out


def run(arguments, **environment):
    """The command in a process of its own."""
    command = [sys.executable, "-m", "rbydyn_jax.cli", *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, check=False)


def test_names_that_the_terminal_does_not_have(tmp_path):
    """A converted file is UTF-8 whatever the encoding of the terminal is; there, such names are written in ASCII."""
    path = tmp_path / "a.urdf"
    path.write_text(ROBOT.replace('"tip"', '"Spitze \u00fc\u2192"'), encoding="utf-8")
    for encoding in ("ascii", "latin-1"):
        done = run(["convert", str(path)], PYTHONIOENCODING=encoding)
        assert done.returncode == 0 and not done.stderr
        (tmp_path / "b.urdf").write_bytes(done.stdout)
        assert find(str(tmp_path / "b.urdf")).load().link_names[-1] == "Spitze \u00fc\u2192"
    for arguments, message in ((["info", str(path)], b""), (["fk", str(path), "--link", "Spitze"], b"did you mean")):
        done = run(arguments, PYTHONIOENCODING="ascii")
        assert rb"Spitze \xfc\u2192" in done.stdout + done.stderr
        assert b"Traceback" not in done.stderr and message in done.stderr


def test_a_reader_that_goes_is_no_error():
    read, write = os.pipe()
    os.close(read)
    for arguments in (["info", "two_link_arm"], ["--help"], ["convert", "two_link_arm"]):
        done = subprocess.run(
            [sys.executable, "-m", "rbydyn_jax.cli", *arguments], stdout=write, stderr=subprocess.PIPE, check=False
        )
        codes = (0, 141) if arguments == ["--help"] else (141,)  # argparse itself overlooks it
        assert done.returncode in codes and not done.stderr
    os.close(write)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_an_error():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "rbydyn_jax.cli", "info", "two_link_arm"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2 and done.stderr.startswith(b"rbydyn: error: ") and done.stderr.count(b"\n") == 1


def test_completion_without_its_package_is_said(monkeypatch, capsys):
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    assert main(["info", "two_link_arm"]) == 2
    assert "pip install 'rbydyn_jax[completion]'" in capsys.readouterr().err


def test_the_shell_completes_commands(tmp_path):
    pytest.importorskip("argcomplete")
    out = tmp_path / "found"
    line = {"_ARGCOMPLETE": "1", "COMP_LINE": "rbydyn co", "COMP_POINT": "9", "_ARGCOMPLETE_STDOUT_FILENAME": str(out)}
    code = "import sys; sys.argv[0] = 'rbydyn'; import rbydyn_jax.cli; rbydyn_jax.cli.main()"
    environment = os.environ | line | {"_ARGCOMPLETE_IFS": " "}
    subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert out.read_text().split() == ["compare", "convert", "codegen"]
