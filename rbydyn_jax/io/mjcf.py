"""Robots from MuJoCo: the compiled model is read, so that defaults, degrees and geometric inertias are resolved.

Each body is a link of the same name. Several joints of one body become a chain of massless links; a joint whose anchor
is not the body's origin gets a link of its own, to which the body is welded. The order of q and v is MuJoCo's. The
coordinates of hinges and slides are MuJoCo's, too; those of ball and free joints are this library's (see `Model`), so
that a free joint has q = [w, x, y, z, position] and its velocity, angular part first, in body axes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from .._extras import require
from ..joints import JOINT_TYPES
from ..shapes import CollisionGeometry, collision_geometries
from .check import check_description
from .description import (
    CollisionDescription,
    Inertial,
    JointDescription,
    LinkDescription,
    RobotDescription,
    free_name,
)
from .findings import Findings, fail
from .mjcf_unused import is_disabled, note_unused
from .placement import compose, placement, rotation_from_wxyz
from .urdf import read_bytes

_FREE_NV = 6  # degrees of freedom of a free joint
# What may stand before the root element, which MuJoCo takes for URDF if it is a robot.
_URDF = re.compile(rb"(?>\xef\xbb\xbf|\s+|<\?.*?\?>|<!--.*?-->|<!(?!--)[^>]*>)*+<(robot)(?![\w:.-])", re.DOTALL | re.I)
_Shapes = dict[int, type[CollisionGeometry]]  # by MuJoCo's number


def compile_mjcf(path: str | Path) -> Any:
    """The `mujoco.MjModel` of an MJCF file.

    Raises:
        DtypeError: `path` is not a path.
        MissingExtraError: `mujoco` is not installed.
        ParseError: The file cannot be read, or is URDF, or MuJoCo refuses it.
    """
    mujoco = require("mujoco", "mjcf", "load_mjcf")
    data = read_bytes(path)
    if urdf := _URDF.match(data):
        message = "the root element is <robot>, expected <mujoco>; this is URDF; use load_urdf"
        raise fail(message, str(path), data.count(b"\n", 0, urdf.start(1)) + 1)
    try:
        return mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        raise fail(f"MuJoCo refuses it: {error}", str(path)) from None


@np.errstate(over="ignore", invalid="ignore")  # overflows become findings
def read_mujoco(
    mj_model: Any, source: str, *, base_link: str | None = None
) -> tuple[RobotDescription, Findings, list[float]]:
    """Reads a compiled model, and checks the robot that it describes.

    Args:
        mj_model: A `mujoco.MjModel`.
        source: Its name for messages.
        base_link: The body from which on the robot will be used.

    Returns:
        The robot, all findings (notes on what a description cannot hold, too), and gravity (3,) [m/s^2].

    Raises:
        MissingExtraError: `mujoco` is not installed.
        ParseError: A name is not UTF-8, or a reference position is not finite.
    """
    findings = Findings(source)
    description = _describe(mj_model, findings)
    check_description(description, findings, base_link)
    gravity = [0.0, 0.0, 0.0] if is_disabled(mj_model, "GRAVITY") else mj_model.opt.gravity.tolist()
    return description, findings, gravity


def _describe(mj_model: Any, findings: Findings) -> RobotDescription:
    mujoco = require("mujoco", "mjcf", "from_mujoco")

    names = {kind: object_names(mujoco, mj_model, kind, findings.source) for kind in ("body", "joint")}
    taken = {kind: set(found) for kind, found in names.items()}

    def name(kind: str, index: int) -> str:
        return (
            names[kind][index]
            if kind in names
            else _given_name(mujoco, mj_model, kind, index, findings.source) or _default_name(kind, index)
        )

    kinds = _kinds(mujoco)
    shapes = {
        int(getattr(mujoco.mjtGeom, f"mjGEOM_{shape.mujoco.upper()}")): shape
        for shape in collision_geometries().values()
        if shape.mujoco is not None
    }
    links: list[LinkDescription] = []
    joints: list[JointDescription] = []
    for body in range(mj_model.nbody):
        link = LinkDescription(name("body", body), _inertial(mj_model, body), _collisions(mj_model, body, shapes))
        links.append(link)
        if body == 0:
            continue
        carrier = name("body", int(mj_model.body_parentid[body]))
        pose = placement(mj_model.body_pos[body], rotation_from_wxyz(mj_model.body_quat[body]))
        first, count = int(mj_model.body_jntadr[body]), int(mj_model.body_jntnum[body])
        for number in range(first, first + count):
            anchor = mj_model.jnt_pos[number]
            last = number == first + count - 1
            between = not last or anchor.any()
            child = _free(f"{link.name}:{name('joint', number)}", taken["body"]) if between else link.name
            if not np.isfinite(mj_model.qpos0[mj_model.jnt_qposadr[number]]):
                raise fail(f"joint {name('joint', number)!r}: its reference position is not finite", findings.source)
            joints.append(_joint(mj_model, kinds, number, name("joint", number), carrier, child, pose, findings))
            if child != link.name:
                links.append(LinkDescription(child))
            carrier, pose = child, placement(-anchor)
        if carrier != link.name:
            welded = _free(f"{link.name}_fixed", taken["joint"])
            joints.append(JointDescription(welded, "fixed", carrier, link.name, pose))
    note_unused(mj_model, mujoco, name, shapes, findings)
    model_name = mj_model.names.partition(b"\0")[0].decode(errors="replace")
    return RobotDescription(model_name or "mujoco", tuple(links), tuple(joints))


def object_names(mujoco: Any, mj_model: Any, kind: str, source: str) -> list[str]:
    """The names of all bodies or joints; one without a name gets one that no other has.

    Raises:
        ParseError: A name is not UTF-8.
    """
    count = mj_model.nbody if kind == "body" else mj_model.njnt
    given = [_given_name(mujoco, mj_model, kind, index, source) for index in range(count)]
    taken = {name for name in given if name}
    return [name or _free(_default_name(kind, index), taken) for index, name in enumerate(given)]


def _free(name: str, taken: set[str]) -> str:
    """The name, if need be with underscores, to which it belongs afterwards."""
    found = free_name(name, taken)
    taken.add(found)
    return found


def _given_name(mujoco: Any, mj_model: Any, kind: str, index: int, source: str) -> str | None:
    try:
        return mujoco.mj_id2name(mj_model, getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), index)
    except UnicodeDecodeError as error:
        raise fail(f"the name of {kind} {index} is not UTF-8: {error}", source) from None


def _default_name(kind: str, index: int) -> str:
    return "world" if kind == "body" and index == 0 else f"{kind}{index}"


def _kinds(mujoco: Any) -> dict[int, str]:
    """The joint type of each of MuJoCo's numbers; where several have one name there, the first."""
    by_name: dict[str, str] = {}
    for joint in JOINT_TYPES.values():
        if joint.mjcf:
            by_name.setdefault(joint.mjcf, joint.name)
    return {int(getattr(mujoco.mjtJoint, f"mjJNT_{name.upper()}")): kind for name, kind in by_name.items()}


def _joint(
    mj_model: Any,
    kinds: dict[int, str],
    number: int,
    name: str,
    parent: str,
    child: str,
    pose: np.ndarray,
    findings: Findings,
) -> JointDescription:
    kind = JOINT_TYPES[kinds[int(mj_model.jnt_type[number])]]
    at_q, at_v = int(mj_model.jnt_qposadr[number]), int(mj_model.jnt_dofadr[number])
    axis = np.array(mj_model.jnt_axis[number])
    origin = compose(pose, placement(mj_model.jnt_pos[number]))
    lower, upper, effort = -np.inf, np.inf, np.inf
    reference = float(mj_model.qpos0[at_q])
    if kind.nv == _FREE_NV:
        origin = placement()  # the free joint of a body replaces its pose
    if kind.scalar:
        origin = compose(origin, kind.matrix(axis, (), [-reference]) if reference else placement())
        if mj_model.jnt_limited[number]:
            lower, upper = mj_model.jnt_range[number].tolist()
        if mj_model.jnt_actfrclimited[number]:
            effort = _effort(mj_model.jnt_actfrcrange[number], f"joint {name!r}", findings)
    undamped = is_disabled(mj_model, "DAMPER", "PASSIVE")  # PASSIVE: of older MuJoCo
    frictionless = is_disabled(mj_model, "FRICTIONLOSS", "CONSTRAINT")
    return JointDescription(
        name=name,
        kind=kind.name,
        parent=parent,
        child=child,
        origin=origin,
        axis=axis if kind.has_axis else np.array([1.0, 0.0, 0.0]),
        lower=lower,
        upper=upper,
        effort=effort,
        damping=0.0 if undamped else float(mj_model.dof_damping[at_v]),
        friction=0.0 if frictionless else float(mj_model.dof_frictionloss[at_v]),
        armature=0.0 if kind.nv == _FREE_NV else float(mj_model.dof_armature[at_v]),  # a base has no rotor
    )


def _effort(limits: np.ndarray, element: str, findings: Findings) -> float:
    """The effort in both directions; of a joint that is driven in one only, that one, or it could not be driven."""
    smaller, larger = np.sort(np.abs(limits)).tolist()
    effort = smaller or larger
    if smaller != larger:
        lower, upper = limits.tolist()
        message = f"actuatorfrcrange is {lower:g} to {upper:g}: the effort limit is {effort:g} in both directions"
        findings.add("warning", message, element)
    return effort


def _inertial(mj_model: Any, body: int) -> Inertial | None:
    mass, moments = float(mj_model.body_mass[body]), mj_model.body_inertia[body]
    if mass == 0.0 and not moments.any():
        return None
    rotation = rotation_from_wxyz(mj_model.body_iquat[body])
    inertia = rotation @ np.diag(moments) @ rotation.T
    return Inertial(mass, np.array(mj_model.body_ipos[body]), 0.5 * (inertia + inertia.T))


def _collisions(mj_model: Any, body: int, shapes: _Shapes) -> tuple[CollisionDescription, ...]:
    first, count = int(mj_model.body_geomadr[body]), int(mj_model.body_geomnum[body])
    found = []
    for geom in range(first, first + count):
        shape = shapes.get(int(mj_model.geom_type[geom]))
        masks = int(mj_model.geom_contype[geom]), int(mj_model.geom_conaffinity[geom])
        if shape is None or not any(masks):
            continue
        pose = placement(mj_model.geom_pos[geom], rotation_from_wxyz(mj_model.geom_quat[geom]))
        found.append(CollisionDescription(shape.from_mujoco(mj_model.geom_size[geom]), pose, "", *masks))
    return tuple(found)
