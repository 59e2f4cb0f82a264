"""Every real robot at hand loads, and has the joints and the mass that pinocchio sees."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rbydyn_jax._errors import ParseError
from rbydyn_jax.io.urdf import read_bytes
from tests.helpers import RBY1_DIRECTORY, assert_close, example_robot_directory, oracle

from .crane import load

_EXAMPLES = example_robot_directory()
EXAMPLES = sorted(_EXAMPLES.rglob("*.urdf")) if _EXAMPLES else []
VENDOR = sorted(RBY1_DIRECTORY.glob("*.urdf")) if RBY1_DIRECTORY.is_dir() else []


def test_there_are_robots_to_load():
    assert len(EXAMPLES) > 60 or not EXAMPLES
    assert len(VENDOR) >= 9 or not VENDOR


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.parent.name + "-" + path.stem)
def test_example_robot(path):
    if not re.search(rb"<link[\s>]", path.read_bytes()):  # ur3.urdf: what xacro leaves of a file of macros
        with pytest.raises(ParseError, match="has no links"):
            load(path.read_bytes())
        return
    robot, report = load(path.read_bytes())
    assert np.isfinite(robot.body_inertias).all()
    assert all(finding.line > 0 and finding.level != "error" for finding in report)
    pin = oracle("pinocchio")
    theirs = pin.buildModelFromXML(path.read_text(encoding="utf-8"))
    assert set(robot.joint_names) == set(theirs.names[1:])
    bodies = [theirs.getJointId(name) for name in robot.joint_names]
    # pinocchio sorts siblings by name; placements, axes and inertias are compared joint by joint.
    assert_close(robot.body_inertias[:, 0], np.array([theirs.inertias[i].mass for i in bodies]))
    dynamic = np.array([theirs.inertias[i].toDynamicParameters() for i in bodies]).reshape(-1, 10)
    assert_close(robot.body_inertias, dynamic)
    placements = np.array([theirs.jointPlacements[i].homogeneous for i in bodies]).reshape(-1, 4, 4)
    carriers = [theirs.names[theirs.parents[i]] for i in bodies]
    same_parent = [p < 0 or name == robot.joint_names[p] for name, p in zip(carriers, robot.parents, strict=True)]
    assert all(same_parent)
    assert_close(robot.joint_placements, placements)


@pytest.mark.parametrize("path", VENDOR, ids=lambda path: path.stem)
def test_vendor_robot(path):
    robot, report = load(read_bytes(path))
    assert [finding for finding in report if finding.level != "note"] == []
    moving = {"rby1a": 24, "rby1m": 26, "rby1ub": 18, "leader_arm": 14}
    assert len(robot.joint_names) == moving[path.stem.split("_model")[0]]
    assert (robot.mobile_base is not None) == path.stem.startswith(("rby1a", "rby1m"))
    assert all("finger" not in name for name in robot.joint_names)
    if path.stem.startswith("rby1"):
        assert len(robot.shape_links) == (14 if "ub" in path.stem else 17)
        assert np.isfinite(robot.acceleration).sum() >= 14
