"""Every name of pymanoid's page *Forward kinematics* is here with its arguments, or missing for a stated reason."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from rbydyn_jax.compat import pymanoid

GRAPHICS = "there is no window"
GRAPHICAL = ("color", "visible", "size")

# The page's functions, classes and members with their arguments; None is a property.
TRANSFORMATIONS = {
    "apply_transform": "T p",
    "crossmat": "x",
    "integrate_angular_acceleration": "R omega omegad dt",
    "integrate_body_acceleration": "T v a dt",
    "magnus_expansion": "omega omegad dt",
    "pose_from_transform": "T",
    "quat_from_rotation_matrix": "R",
    "quat_from_rpy": "rpy",
    "rotation_matrix_from_quat": "quat",
    "rotation_matrix_from_rpy": "rpy",
    "rpy_from_quat": "quat",
    "rpy_from_rotation_matrix": "R",
    "transform_from_pose": "pose",
    "transform_inverse": "T",
}
BODY = {
    **dict.fromkeys(
        "R T adjoint_matrix b index n name normal p pitch pos pose quat roll rotation_matrix rpy t transform".split()
    ),
    **dict.fromkeys("x y yaw z".split()),
    "apply_twist": "v omega dt",
    "dist": "point",
    "hide": "",
    "remove": "",
    "set_color": "color",
    "set_name": "name",
    "set_pitch": "pitch",
    "set_pos": "pos",
    "set_pose": "pose",
    "set_quat": "quat",
    "set_roll": "roll",
    "set_rotation_matrix": "R",
    "set_rpy": "rpy",
    "set_transform": "T",
    "set_transparency": "transparency",
    "set_x": "x",
    "set_y": "y",
    "set_yaw": "yaw",
    "set_z": "z",
    "show": "",
    "translate": "translation",
}
POINT = (
    BODY
    | dict.fromkeys("pd pdd xd xdd yd ydd zd zdd".split())
    | {
        "copy": "color visible",
        "integrate_constant_accel": "pdd dt",
        "integrate_constant_jerk": "pddd dt",
        "set_accel": "pdd",
        "set_vel": "pd",
    }
)
ROBOT = dict.fromkeys("q qd".split()) | {
    "compute_contact_hessian": "contacts",
    "compute_contact_jacobian": "contacts",
    "compute_inertia_matrix": "",
    "compute_inverse_dynamics": "qdd external_torque",
    "compute_link_hessian": "link p",
    "compute_link_jacobian": "link p",
    "compute_link_pos_hessian": "link p",
    "compute_link_pos_jacobian": "link p",
    "compute_link_pose_jacobian": "link",
    "compute_static_gravity_torques": "external_torque",
    "get_dof_limits": "dof_indices",
    "get_dof_values": "dof_indices",
    "get_dof_velocities": "dof_indices",
    "get_link": "name",
    "hide": "",
    "set_color": "color",
    "set_dof_limits": "q_min q_max dof_indices",
    "set_dof_values": "q dof_indices clamp",
    "set_dof_velocities": "qd dof_indices",
    "set_transparency": "transparency",
    "show": "",
}
HUMANOID = (
    ROBOT
    | dict.fromkeys("R T b cam com comd n p pose quat rpy t".split())
    | {
        "compute_angular_momentum": "p",
        "compute_angular_momentum_hessian": "p",
        "compute_angular_momentum_jacobian": "p",
        "compute_cam": "",
        "compute_cam_hessian": "q",
        "compute_cam_jacobian": "",
        "compute_cam_rate": "qdd",
        "compute_com_acceleration": "qdd",
        "compute_com_hessian": "",
        "compute_com_jacobian": "",
        "compute_gravito_inertial_wrench": "qdd p",
        "compute_net_contact_wrench": "qdd p",
        "compute_zmp": "qdd origin normal",
        "get_com_point_mass": "",
        "get_dof_name_from_index": "index",
        "hide_com": "",
        "set_pos": "pos",
        "set_pose": "pose",
        "set_quat": "quat",
        "set_rpy": "rpy",
        "show_com": "",
    }
)
CLASSES = {
    "Body": ("rave_body pos rpy pose color visible", BODY),
    "Box": ("X Y Z pos rpy pose color visible dZ", BODY),
    "Cube": ("size pos rpy pose color visible", BODY),
    "Manipulator": (
        "manipulator pos rpy pose color visible shape friction",
        BODY | {"force": None, "moment": None, "get_contact": "pos shape"},
    ),
    "Point": ("pos vel accel size color visible", POINT),
    "PointMass": ("pos mass vel color visible size", POINT | {"momentum": None}),
    "Robot": ("path xml", ROBOT),
    "Humanoid": ("path root_body", HUMANOID),
}
# Why a name is missing: members, and arguments of constructors.
MISSING = {
    **dict.fromkeys(("hide", "show", "set_color", "set_transparency", "hide_com", "show_com"), GRAPHICS),
    "remove": "there is no OpenRAVE environment to remove a body from",
}
MISSING_ARGUMENTS = {
    "rave_body": "there is no OpenRAVE",
    "manipulator": "there is no OpenRAVE; `link` says which link it is",
    "xml": "describes an OpenRAVE environment",
}
MEMBERS = [(cls, name, args) for cls, (_, members) in CLASSES.items() for name, args in members.items()]


def names(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_transformations(name: str):
    wanted = TRANSFORMATIONS[name].split()
    assert names(getattr(pymanoid.transformations, name))[: len(wanted)] == wanted


@pytest.mark.parametrize("name", CLASSES)
def test_constructors(name: str):
    given, taken = CLASSES[name][0].split(), names(getattr(pymanoid, name))
    graphical = GRAPHICAL if name != "Cube" else GRAPHICAL[:2]  # the size of a cube is not that of a picture
    wanted = [a for a in given if a not in MISSING_ARGUMENTS and a not in graphical]
    assert [a for a in taken if a in wanted] == wanted
    assert not set(taken) & set(MISSING_ARGUMENTS)


@pytest.mark.parametrize("cls, name, arguments", MEMBERS)
def test_members(cls: str, name: str, arguments: str | None):
    owner = getattr(pymanoid, cls)
    if name in MISSING:
        assert not hasattr(owner, name)  # the table tells the truth
        return
    member = inspect.getattr_static(owner, name)
    if arguments is None:
        assert isinstance(member, property)
    else:
        wanted = [a for a in arguments.split() if a not in GRAPHICAL]
        assert names(member)[: len(wanted)] == wanted
