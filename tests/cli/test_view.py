"""``rbydyn view``: how robots are found, and what is printed."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from rbydyn_jax import NameNotFoundError, robots, save_urdf
from rbydyn_jax.cli import main
from rbydyn_jax.cli.view import find, view
from tests.cli.test_commands import ROBOT

pytest.importorskip("viser")


def test_a_robot_is_a_file_or_a_name(tmp_path, monkeypatch):
    path = tmp_path / "arm.urdf"
    save_urdf(robots.two_link_arm(), path)
    found = find(str(path))
    assert (found.model.name, found.urdf) == ("two_link_arm", path)
    assert find("two_link_arm").model.nq == 2 and find("two_link_arm").urdf is None
    description = ModuleType("robot_descriptions.arm_description")
    description.URDF_PATH, description.PACKAGE_PATH = str(path), str(tmp_path)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "robot_descriptions", ModuleType("robot_descriptions"))
    monkeypatch.setitem(sys.modules, "robot_descriptions.arm_description", description)
    found = find("arm_description")
    assert (found.model.name, found.packages) == ("two_link_arm", (tmp_path, tmp_path.parent))
    with pytest.raises(NameNotFoundError, match="did you mean 'two_link_arm'"):
        find("two_link_arn")
    with pytest.raises(NameNotFoundError, match="the robots are: "):
        find("zzz")


def test_an_mjcf_file_is_known_by_its_content(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "swing.xml"
    path.write_text("""<mujoco model="swing"><worldbody><body name="bob"><joint name="hinge"/>
      <geom type="sphere" size="0.1" pos="0 0 -1"/></body></worldbody></mujoco>""")
    assert find(str(path)).model.joint_names == ("hinge",)


def test_the_address_and_what_is_missing_are_printed(tmp_path, capsys):
    path = tmp_path / "crank.urdf"
    path.write_text(ROBOT.replace('<link name="tip"/>', '<link name="tip"><visual><geometry><mesh filename="tip.stl"/>'
                                  "</geometry></visual></link>"))  # fmt: skip
    assert view(str(path), [0.2], port=0, block=False) == 0
    told = capsys.readouterr().out
    assert told.startswith("viewer: http://localhost:") and "not shown: tip.stl (see --packages)" in told


def test_wrong_arguments_end_with_2(tmp_path, capsys):
    for arguments in (["none.urdf"], ["two_link_arm", "--q", "1,2,3"], ["two_link_arm", "--drag", "nose"], ["nobody"]):
        assert main(["view", *arguments]) == 2
        told = capsys.readouterr()
        assert told.err and "Traceback" not in told.err
