"""Robots from xacro files."""

from __future__ import annotations

import builtins

import jax.numpy as jnp
import pytest

import rbydyn_jax as rb
from tests.helpers import assert_close

ARM = """<?xml version="1.0"?>
<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="length" default="0.5"/>
  <xacro:property name="length" value="$(arg length)"/>
  <xacro:macro name="segment" params="name parent x mass">
    <link name="${name}">
      <inertial><origin xyz="${length / 2} 0 0"/><mass value="${mass}"/>
        <inertia ixx="0.01" iyy="${mass * length**2 / 12}" izz="${mass * length**2 / 12}" ixy="0" ixz="0" iyz="0"/>
      </inertial>
    </link>
    <joint name="${name}_joint" type="revolute">
      <parent link="${parent}"/><child link="${name}"/><origin xyz="${x} 0 0"/><axis xyz="0 0 1"/>
      <limit lower="-3" upper="3" effort="10" velocity="2"/>
    </joint>
  </xacro:macro>
  <link name="base"/>
  <xacro:segment name="upper" parent="base" x="0" mass="2"/>
  <xacro:segment name="lower" parent="upper" x="${length}" mass="1"/>
</robot>
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "arm.urdf.xacro"
    file.write_text(ARM)
    return file


@pytest.mark.parametrize("kind", [str, float])
@pytest.mark.parametrize("length", [0.5, 0.8])
def test_macros_properties_and_arguments(path, length, kind):
    """The mass matrix of the two rods in closed form."""
    pytest.importorskip("xacrodoc")
    model = rb.load_xacro(path, {"length": kind(length)} if length != 0.5 else None)
    assert model.joint_names == ("upper_joint", "lower_joint")
    straight = jnp.zeros(2)
    m1, m2 = 2.0, 1.0
    far = m2 * length**2 * (1 / 12 + 1.5**2)
    own, cross = m2 * length**2 / 3, m2 * length**2 * (1 / 12 + 0.5 * 1.5)
    assert_close(rb.crba(model, straight), [[m1 * length**2 / 3 + far, cross], [cross, own]])


def test_files_are_included_from_beside_the_file_that_names_them(path, tmp_path, monkeypatch):
    pytest.importorskip("xacrodoc")
    head = '<robot xmlns:xacro="http://www.ros.org/wiki/xacro">'
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "tip.xacro").write_text(f'{head}<link name="tip"/></robot>')
    (tmp_path / "parts" / "tool.xacro").write_text(
        f'{head}<xacro:include filename="tip.xacro"/><joint name="mount" type="fixed"><parent link="lower"/>'
        '<child link="tip"/><origin xyz="0.5 0 0"/></joint></robot>'
    )
    path.write_text(ARM.replace("</robot>", '<xacro:include filename="parts/tool.xacro"/></robot>'))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for where in (path, "../arm.urdf.xacro"):
        model = rb.load_xacro(where)
        assert model.name == "arm"
        assert_close(rb.link_pose(model, jnp.zeros(2), "tip")[:3, 3], [1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (3, "arguments must be a mapping from names to texts or numbers, got int"),
        ([("length", "1")], "arguments must be a mapping from names to texts or numbers, got list"),
        ({"length": None}, r"arguments\['length'\] must be text or a number, got NoneType"),
        ({3: "x"}, "arguments must have names as keys, got 3"),
    ],
)
def test_wrong_arguments_are_not_the_fault_of_the_file(path, arguments, message):
    pytest.importorskip("xacrodoc")
    with pytest.raises(rb.DtypeError, match=message):
        rb.load_xacro(path, arguments)


def test_what_cannot_be_expanded_is_refused(path, tmp_path):
    pytest.importorskip("xacrodoc")
    path.write_text(ARM.replace("$(arg length)", "$(arg width)"))
    with pytest.raises(rb.ParseError, match=r"arm.urdf.xacro.*error.*xacro:.*width"):
        rb.load_xacro(path)
    path.write_text(ARM.replace("${mass}", "${__import__('os').getcwd()}"))
    with pytest.raises(rb.ParseError, match="xacro:"):
        rb.load_xacro(path)
    with pytest.raises(rb.ParseError, match="nowhere"):
        rb.load_xacro(tmp_path / "nowhere.xacro")
    with pytest.raises(rb.DtypeError, match="path must be"):
        rb.load_xacro(None)  # type: ignore[arg-type]


def test_the_extra_is_named_where_it_is_missing(path, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("xacrodoc"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr("importlib.import_module", lambda name: without(name))
    with pytest.raises(rb.MissingExtraError, match=r"rbydyn_jax\[xacro\]"):
        rb.load_xacro(path)
