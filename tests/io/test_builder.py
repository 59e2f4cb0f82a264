"""The builder, and what `build_model` says of robots written in Python."""

from __future__ import annotations

import numpy as np
import pytest

from rbydyn_jax import ModelError, NameNotFoundError, ParseError
from rbydyn_jax.io import RobotBuilder, build_model, load_urdf, load_urdf_string
from rbydyn_jax.io.description import CapsuleGeometry, SphereGeometry

from .crane import CRANE, spoil


def test_inertia_in_its_four_forms():
    b = RobotBuilder().link("a", 1.0, inertia=2.0).link("b", 1.0, inertia=(1, 2, 3))
    b.link("c", 1.0, inertia=(1, 2, 3, 4, 5, 6)).link("d", 1.0, inertia=np.diag([4.0, 5, 6])).link("e")
    moments = {link.name: link.inertial and link.inertial.inertia for link in b._links.values()}
    np.testing.assert_array_equal(moments["a"], np.diag([2.0, 2, 2]))
    np.testing.assert_array_equal(moments["b"], np.diag([1.0, 2, 3]))
    np.testing.assert_array_equal(moments["c"], [[1, 2, 3], [2, 4, 5], [3, 5, 6]])
    np.testing.assert_array_equal(moments["d"], np.diag([4.0, 5, 6]))
    assert moments["e"] is None
    with pytest.raises(ModelError, match=r"link 'f': inertia has shape \(2,\)"):
        b.link("f", 1.0, inertia=(1, 2))


def test_joints_of_every_kind_have_their_coordinates():
    sizes = {"revolute": 1, "continuous": 1, "prismatic": 1, "planar": 3, "spherical": 4, "floating": 7, "fixed": 0}
    for kind, nq in sizes.items():
        b = RobotBuilder().link("a").link("b", 1.0, inertia=0.1)
        assert build_model(getattr(b, kind)("j", "a", "b").build_description()).nq == nq


def test_axis_is_normalised():
    b = RobotBuilder().link("a").link("b", 1.0, inertia=0.1).revolute("j", "a", "b", axis=(0, 3, 4))
    np.testing.assert_allclose(b.build_description().joints[0].axis, [0, 0.6, 0.8], rtol=1e-15)
    with pytest.raises(ModelError, match="joint 'k': axis"):
        b.revolute("k", "a", "b", axis=(0, 0, 0))


def test_capsules_and_spheres():
    b = RobotBuilder().link("a").capsule("a", 0.2, 0.1, coltype=3, colaffinity=4).capsule("a", 0, 0.3)
    capsule, sphere = b.build_description().links[0].collisions
    assert isinstance(capsule.geometry, CapsuleGeometry)
    assert isinstance(sphere.geometry, SphereGeometry)
    assert (capsule.coltype, capsule.colaffinity, sphere.geometry.radius) == (3, 4, 0.3)
    with pytest.raises(ModelError, match="unknown link 'arm'"):
        b.capsule("arm", 1, 1)


def test_mistakes_are_named():
    b = RobotBuilder("r").link("a").link("b", 1.0)
    with pytest.raises(ModelError, match="link 'a' is added twice"):
        b.link("a")
    b.revolute("j", "a", "c", lower=2, upper=1).link("d", 1.0, inertia=-1.0)
    with pytest.raises(ModelError) as error:
        b.build_description()
    text = str(error.value)
    assert not isinstance(error.value, ParseError)
    for phrase in (
        "child link 'c' is not defined",
        "limit lower 2 > upper 1",
        "link 'd': inertia is not positive definite",
    ):
        assert phrase in text


def test_unknown_limit_is_a_type_error():
    with pytest.raises(TypeError, match="lowr"):
        RobotBuilder().link("a").link("b").revolute("j", "a", "b", lowr=1)


def test_a_body_that_no_matter_has_is_refused():
    b = RobotBuilder().link("a").link("b", 0.0, inertia=1.0).revolute("j", "a", "b")
    with pytest.raises(ModelError, match="link 'b': moves with zero mass but non-zero inertia"):
        build_model(b.build_description())


def test_report_and_strictness():
    b = RobotBuilder().link("a").link("b").revolute("j", "a", "b", lower=-1, upper=1)
    model = build_model(b.build_description())
    assert ["mass matrix is singular" in finding.message for finding in model.report] == [True]
    with pytest.raises(ModelError, match="singular"):
        build_model(b.build_description(), strict=True)


def test_gravity_and_options_reach_the_model():
    b = RobotBuilder().link("a").link("b", 1.0, inertia=0.1).revolute("j", "a", "b")
    model = build_model(b.build_description(), gravity=(0, 0, -1.62), floating_base=True)
    np.testing.assert_allclose(model.gravity, [0, 0, -1.62], rtol=1e-6)
    assert model.joint_names == ("floating_base", "j")
    assert build_model(b.build_description(), dtype=np.float32).inertias.dtype == np.float32


def test_loading_text_and_files(tmp_path):
    path = tmp_path / "crane.urdf"
    path.write_text(CRANE)
    assert load_urdf(path).tree == load_urdf_string(CRANE).tree == load_urdf(str(path)).tree
    assert load_urdf_string(CRANE.encode("utf-16"), base_link="boom").joint_names == ("hoist",)
    path.write_text(spoil(('mass value="1"', 'mass value="x"'), (' name="crane"', "")))
    with pytest.raises(ParseError) as error:
        load_urdf(path)
    assert str(error.value).splitlines()[1].startswith(f"{path}:10: error: link 'hook': mass 'x'")
    with pytest.raises(ParseError, match="error: robot: has no name"):
        load_urdf_string(spoil((' name="crane"', "")), strict=True)
    with pytest.raises(NameNotFoundError, match="did you mean 'boom'"):
        load_urdf_string(CRANE, base_link="bom")
    with pytest.raises(ParseError, match="no such file"):
        load_urdf(tmp_path / "none.urdf")
    assert load_urdf_string(spoil((' name="crane"', ""))).report[0].line == 2


def test_two_loads_are_one_tree():
    assert hash(load_urdf_string(CRANE).tree) == hash(load_urdf_string(CRANE).tree)


def test_two_roots_can_be_chosen_from():
    text = spoil(("</robot>", '<link name="spare"/></robot>'))
    with pytest.raises(ParseError, match="pick one with base_link="):
        load_urdf_string(text)
    model = load_urdf_string(text, base_link="mast")
    assert model.link_names == ("mast", "boom", "hook")
    assert "more than one root" in model.report[0].message
