"""Reads URDF, the RB-Y1 dialect included, into a `RobotDescription`."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from .._errors import DtypeError
from .check import check_description
from .description import JointDescription, LinkDescription, MobileBaseDescription, RobotDescription
from .findings import Findings, fail
from .urdf_joints import read_joint, read_mobile
from .urdf_links import read_link
from .urdf_values import Scope
from .xml import MAX_BYTES, XmlElement, parse_xml

_NOT_USED = ("gazebo", "transmission", "ros2_control", "sensor", "mujoco", "material")
_NOT_USED_IN_JOINTS = ("safety_controller", "calibration")
_OTHER_FORMATS = {
    "mujoco": "this is MJCF; use load_mjcf",
    "sdf": "this is SDF; convert it to URDF first",
    "robots": "put each <robot> in a file of its own",
}


@contextmanager
def _paused_collector() -> Iterator[None]:
    """Stops the cyclic garbage collector, which would traverse the growing document many times; it has no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_paused_collector()
@np.errstate(over="ignore", invalid="ignore")  # overflows become findings
def read_urdf(
    data: bytes | str, source: str = "<string>", *, base_link: str | None = None, max_bytes: int = MAX_BYTES
) -> tuple[RobotDescription, Findings]:
    """Reads a URDF document and checks the robot that it describes; mesh files are never opened.

    Besides plain URDF this reads what the RB-Y1 files use: `<capsule>` with `coltype` and `colaffinity`, the
    `acceleration` limit, `in_model_type`, which goes before `type`, and `<mobile>`; and `armature` of `<dynamics>`.

    Args:
        data: The document.
        source: Its name for messages.
        base_link: The link from which on the robot will be used; with it the file may hold several trees.
        max_bytes: Largest size that is accepted [bytes].

    Returns:
        The robot, as far as it could be read, and all findings. `findings.report()` raises if there is an error.

    Raises:
        ParseError: The document is no XML or no URDF.
    """
    root = parse_xml(data, source, max_bytes=max_bytes)
    if root.tag != "robot":
        hint = _OTHER_FORMATS.get(root.tag.lower(), "this is no URDF")
        raise fail(f"the root element is <{root.tag}>, expected <robot>; {hint}", source, root.line)
    findings = Findings(source)
    name = root.get("name") or ""
    scope = Scope(findings, f"robot {name!r}" if name else "robot")
    scope.known(root, ("name", "version"), ("link", "joint", "mobile", *_NOT_USED))
    if not name.strip():
        scope.add("warning", root.line, "has no name")
    findings.lines["robot", 0] = root.line
    unused = {tag: root.count(tag) for tag in _NOT_USED if tag != "material"}
    unused |= {tag: sum(joint.count(tag) for joint in root.children("joint")) for tag in _NOT_USED_IN_JOINTS}
    if unused := {tag: count for tag, count in unused.items() if count}:
        shown = ", ".join(f"{count} <{tag}>" for tag, count in unused.items())
        scope.add("note", root.line, f"{shown} not used")
    if root.get("xmlns:xacro") and not root.count("link"):
        scope.add("note", root.line, "looks like the leftover of an xacro file that holds macros only")
    links = _read_links(root, findings)
    joints, complete = _read_joints(root, findings)
    description = RobotDescription(name, links, joints, _read_mobile(root, scope))
    check_description(description, findings, base_link, complete=complete)
    _warn_of_point_masses(description, findings)
    return description, findings


def _warn_of_point_masses(description: RobotDescription, findings: Findings) -> None:
    """A robot written in Python may mean a point mass; in a file, a moving link without inertia is mostly a slip."""
    moving = {joint.child for joint in description.joints if joint.kind != "fixed"}
    for index, link in enumerate(description.links):
        if link.name in moving and link.inertial and link.inertial.mass > 0.0 and not link.inertial.inertia.any():
            findings.on("warning", "link", index, link.name, "moves as a point mass (zero inertia)")


def read_bytes(path: str | Path, max_bytes: int = MAX_BYTES, *, hint: str = "") -> bytes:
    """Reads a file of bounded size; `hint` is added to the error for callers who pass the text itself.

    Raises:
        DtypeError: `path` is not a path.
        ParseError: There is no such file, it cannot be read, or it is too large.
    """
    if not isinstance(path, str | os.PathLike):
        raise DtypeError(f"path must be a str or a Path, got {type(path).__name__}")
    if isinstance(path, str) and path.lstrip("\ufeff \t\r\n").startswith("<"):
        raise fail(f"this is XML text and no path{hint}", "<path>")
    if "\0" in str(path):
        raise fail("a path cannot have a NUL character", repr(str(path)))
    path = Path(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(max_bytes + 1)
    except FileNotFoundError:
        raise fail("no such file", str(path)) from None
    except OSError as error:
        raise fail(f"cannot be read: {error.strerror or error}", str(path)) from None
    if len(data) > max_bytes:
        raise fail(f"the file exceeds the size limit of {max_bytes} bytes", str(path))
    return data


def _read_links(root: XmlElement, findings: Findings) -> tuple[LinkDescription, ...]:
    links = []
    for xml in root.children("link"):
        name = Scope(findings, "link").name(xml, "name", "a link")
        if name is None:
            continue
        findings.lines["link", len(links)] = xml.line
        links.append(read_link(xml, name, Scope(findings, f"link {name!r}")))
    return tuple(links)


def _read_joints(root: XmlElement, findings: Findings) -> tuple[tuple[JointDescription, ...], bool]:
    """Returns the joints, and whether all of them could be read well enough to judge the tree."""
    joints, complete = [], True
    for xml in root.children("joint"):
        ends = [xml.first(tag) for tag in ("parent", "child")]
        between = ", ".join(f"{e.tag} {e.get('link')!r}" for e in ends if e is not None)
        name = Scope(findings, "joint").name(xml, "name", f"a joint ({between})")
        joint = read_joint(xml, name or "", Scope(findings, f"joint {name!r}" if name else f"joint ({between})"))
        if joint is None or name is None:
            complete = False
            continue
        findings.lines["joint", len(joints)] = xml.line
        joints.append(joint)
    return _with_prefixed_mimics(joints, findings), complete


def _with_prefixed_mimics(joints: list[JointDescription], findings: Findings) -> tuple[JointDescription, ...]:
    """Puts right a mimic that lacks the prefix of its own joint, as macros for two hands leave behind.

    If `Left_index_q2` mimics `index_q1`, which does not exist, but `Left_index_q1` does, then that is meant.
    """
    names = {joint.name for joint in joints}
    corrected = []
    for index, joint in enumerate(joints):
        if joint.mimic is not None and joint.mimic.joint not in names:
            cuts = (i + 1 for i, c in enumerate(joint.name) if c in "_/-.")
            found = next((n for cut in cuts if (n := joint.name[:cut] + joint.mimic.joint) in names), None)
            if found is not None and found != joint.name:
                message = f"mimics unknown joint {joint.mimic.joint!r}; taken as {found!r}, by this joint's own prefix"
                findings.on("warning", "joint", index, joint.name, message)
                joint = replace(joint, mimic=replace(joint.mimic, joint=found))
        corrected.append(joint)
    return tuple(corrected)


def _read_mobile(root: XmlElement, scope: Scope) -> MobileBaseDescription | None:
    xml = scope.only(root, "mobile")
    if xml is None:
        return None
    scope.findings.lines["mobile", 0] = xml.line
    return read_mobile(xml, Scope(scope.findings, "mobile base"))
