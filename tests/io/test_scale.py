"""Large and deep files: seconds, not minutes, and no recursion."""

from __future__ import annotations

import pytest

from .crane import load

LINK = (
    '<link name="l%d"><inertial><origin xyz="0 0 0.1" rpy="0 0 0.1"/><mass value="1.5"/>'
    '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.04"/></inertial></link>'
)
JOINT = (
    '<joint name="j%d" type="%s"><origin xyz="0 0 0.2" rpy="0.3 0 0"/><parent link="l%d"/><child link="l%d"/>'
    '<axis xyz="0 1 0"/><limit lower="-1.5" upper="1.5" effort="10" velocity="2"/></joint>'
)


def document(count: int, parent, kind: str) -> str:
    links = "".join(LINK % i for i in range(count))
    return f'<robot name="big">{links}{"".join(JOINT % (i, kind, parent(i), i) for i in range(1, count))}</robot>'


@pytest.mark.slow
@pytest.mark.timeout(120)  # three seconds on a quiet machine; what is quadratic takes minutes
def test_ten_thousand_links():
    robot, report = load(document(10_000, lambda i: 0, "revolute"))
    assert len(robot.joint_names) == 9_999
    assert report == ()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["revolute", "fixed"])
def test_chain_of_five_thousand(kind):
    robot, _ = load(document(5_000, lambda i: i - 1, kind))
    assert len(robot.link_names) == 5_000
    assert robot.parents == (tuple(range(-1, 4_998)) if kind == "revolute" else ())
