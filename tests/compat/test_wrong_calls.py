"""Every public function and method of `compat` answers wrong arguments with a typed error, or with a result."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from rbydyn_jax import planning, robots
from rbydyn_jax.compat import mujoco, pinocchio, pymanoid, pyrobot, ros
from tests import wrong_calls

ARM = robots.two_link_arm()
FLOATING = pymanoid.with_rpy_base(ARM)
CONTACT = pymanoid.Contact([0.1, 0.1], static_friction=0.5, link="tool")
POINT = [0.1, 0.2, 0.3]
RIGHT = {
    "T": np.eye(4), "R": np.eye(3), "quat": [1, 0, 0, 0], "pose": [1, 0, 0, 0, 0, 0, 0], "dt": 0.1, "shape": [0.1, 0.1],
    "link": "tool", "name": "tool", "index": 0, "contacts": [CONTACT], "wrench": [0, 0, 1, 0, 0, 0], "mass": 1,
    "size": 1, "X": 1, "Y": 1, "Z": 1, "path": FLOATING, "roll": 0, "pitch": 0, "yaw": 0, "joint_pos": [0, 0],
    "joint_vel": [0, 0], "target_frame": "tool", "orientation": [0, 0, 0], "position": [0.9, 0, 0],
    "base_frame": "base", "ee_frame": "tool", "model": ARM,
} | dict.fromkeys(("qdd", "qd", "q_min", "q_max"), [0] * 8)  # fmt: skip
OBJECTS: dict[str, Callable[[], Any]] = {
    "Body": pymanoid.Body,
    "Box": lambda: pymanoid.Box(1, 1, 1),
    "Cube": lambda: pymanoid.Cube(1),
    "Point": lambda: pymanoid.Point(POINT),
    "PointMass": lambda: pymanoid.PointMass(POINT, 1),
    "Contact": lambda: pymanoid.Contact([0.1, 0.1], static_friction=0.5),
    "ContactSet": lambda: pymanoid.ContactSet([CONTACT]),
    "Manipulator": lambda: pymanoid.Manipulator(shape=[0.1, 0.1]),
    "Link": lambda: pymanoid.Robot(FLOATING).get_link("tool"),
    "Robot": lambda: pymanoid.Robot(FLOATING),
    "Humanoid": lambda: pymanoid.Humanoid(FLOATING),
    "Kinematics": lambda: pyrobot.Kinematics(ARM, "base", "tool"),
}
SLOW = ("Robot", "Humanoid", "Kinematics", "ContactSet")  # compile what a right argument meets


def functions(module: Any) -> list[str]:
    own = inspect.getmembers(module, inspect.isfunction)
    return [name for name, f in own if f.__module__ == module.__name__ and name[0] != "_"]


def check(f: Callable[..., Any], **right: Any) -> None:
    """As everywhere, with the table above, and a point for what it does not name."""
    needed = [name for name, p in inspect.signature(f).parameters.items() if p.default is p.empty]
    wrong_calls.check(f, dict.fromkeys(needed, POINT) | RIGHT | right, run=False)


@pytest.mark.parametrize("name", functions(pymanoid.transformations))
def test_transformations(name: str):
    twist = {"v": [0] * 6, "a": [0] * 6} if name == "integrate_body_acceleration" else {}
    check(getattr(pymanoid.transformations, name), **twist)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in OBJECTS])
def test_objects(name: str):
    if name != "Link":
        check(getattr(pyrobot if name == "Kinematics" else pymanoid, name))
    thing = OBJECTS[name]()
    assert thing is not None
    for method, _ in inspect.getmembers(type(thing), inspect.isfunction):
        if method[0] != "_":
            q = {"q": [0] * 8} if name in ("Robot", "Humanoid") else {}
            check(getattr(OBJECTS[name](), method), **q)


@pytest.mark.slow
@pytest.mark.parametrize("module, name", [(m, n) for m in (pinocchio, mujoco) for n in functions(m)])
def test_layouts(module: Any, name: str):
    model = pymanoid.with_rpy_base(ARM)
    check(getattr(module, name), model=model, **dict.fromkeys(("q", "v", "a", "x"), jnp.zeros(8)))


ROS = {
    "from_joint_state": {"message": ros.to_joint_state(ARM, np.zeros(2)), "base": None, "q0": np.zeros(2)},
    "to_joint_state": {"q": np.zeros(2), "v": np.zeros(2), "tau": np.zeros(2), "message": None},
    "from_joint_trajectory": {"message": {"joint_names": [], "points": []}},
    "to_joint_trajectory": {"motion": planning.TrajectorySamples(*(jnp.zeros(n) for n in (2, (2, 2), (2, 2), (2, 2))))},
    "from_pose": {"message": ros.to_pose([1, 0, 0, 0, 0, 0, 0])},
    "to_pose": {"pose": [1, 0, 0, 0, 0, 0, 0]},
    "from_odometry": {"message": ros.to_odometry([1, 0, 0, 0, 0, 0, 0], np.zeros(6))},
    "to_odometry": {"pose": [1, 0, 0, 0, 0, 0, 0], "twist": np.zeros(6)},
}


def test_every_converter_of_messages_is_in_the_table():
    assert set(ROS) == {name for name in dir(ros) if name.startswith(("from_", "to_"))}


@pytest.mark.parametrize("name", ROS)
def test_messages(name: str):
    check(getattr(ros, name), **ROS[name])
