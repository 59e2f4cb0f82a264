"""Reads URDF as the SDK does: raw axes, `in_model_type`, unknown joint types fixed, the last of two equal names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..._errors import DtypeError
from ..._errors import ParseError as _ParseError
from ...io.findings import Findings
from ...io.urdf import read_bytes
from ...io.urdf_values import Scope
from ...io.xml import XmlElement, parse_xml
from ._algebra import adjoint, inverse
from ._configuration import RobotConfiguration
from ._errors import ParseError
from ._geometry import Collision, GeomCapsule
from ._links import Joint, Link
from ._mobility import MobileBase, MobileBaseType

_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def load_robot_from_urdf(path: str | Path, base_link_name: str) -> RobotConfiguration:
    """Reads a robot from a URDF file, of the RB-Y1 dialect; see `load_robot_from_urdf_data`.

    Args:
        path: The file; the SDK takes a str only.
        base_link_name: The link that becomes the base.

    Raises:
        DtypeError: `path` is not a path.
        ParseError: The file cannot be read, or describes no robot; also a `RuntimeError`, as in the SDK.
    """
    try:
        data = read_bytes(path, hint="; use load_robot_from_urdf_data")
    except _ParseError as error:
        raise ParseError(error.findings) from None
    return _load(data, str(path), base_link_name)


def load_robot_from_urdf_data(model: str | bytes, base_link_name: str) -> RobotConfiguration:
    """Reads a robot from the text of a URDF file.

    As the SDK does it: `in_model_type` goes before `type`; revolute and continuous joints turn, prismatic ones slide,
    all others are fixed; axes keep their length; of two links of one name the last counts, and of two joints that move
    one link; a missing limit is the largest double, that of the acceleration 10; only capsules collide.

    Unlike the SDK: a missing `<inertial>` means no mass (there: memory of something else), a missing `<axis>` the x
    axis, as URDF says (there: an error, even on fixed joints), and a number that is none, or a negative size of a
    capsule, is an error with its line (there: zero, and a negative size).

    Args:
        model: The text.
        base_link_name: The link that becomes the base.

    Raises:
        DtypeError: `model` is not str or bytes.
        ParseError: The text describes no robot; also a `RuntimeError`, as in the SDK. It lists all findings.
    """
    if not isinstance(model, str | bytes):
        raise DtypeError(f"model must be str or bytes, got {type(model).__name__}")
    return _load(model, "<string>", base_link_name)


def _load(data: str | bytes, source: str, base_link_name: str) -> RobotConfiguration:
    try:
        return _read(data, source, base_link_name)
    except _ParseError as error:
        raise ParseError(error.findings) from None


def _read(data: str | bytes, source: str, base_link_name: str) -> RobotConfiguration:
    root = parse_xml(data, source)
    findings = Findings(source)
    if root.tag != "robot":
        findings.add("error", f"the root element is <{root.tag}>, expected <robot>", line=root.line)
        findings.report()
    links: dict[str, Link] = {}
    for xml, name in _named(root, "link", findings):
        links[name] = _link(xml, name, Scope(findings, f"link {name!r}"))
    for xml, name in _named(root, "joint", findings):
        _joint(xml, name, links, Scope(findings, f"joint {name!r}"))
    mobile = root.first("mobile")
    base = MobileBase(MobileBaseType.Unspecified, np.eye(4), (), ())
    if mobile is not None:
        base = _mobile(mobile, Scope(findings, "mobile base"))
    if not isinstance(base_link_name, str) or base_link_name not in links:
        findings.add("error", f"there is no link named {base_link_name!r} to be the base", line=root.line)
    findings.report()
    return RobotConfiguration(root.get("name") or "", links[base_link_name], base)


def _named(root: XmlElement, tag: str, findings: Findings) -> Iterator[tuple[XmlElement, str]]:
    for xml in root.children(tag):
        name = xml.get("name")
        if name is None:
            findings.add("error", f"a <{tag}> has no name", line=xml.line)
        else:
            yield xml, name


def _link(xml: XmlElement, name: str, scope: Scope) -> Link:
    inertial = xml.first("inertial")
    link = Link(name, np.zeros((6, 6)) if inertial is None else _inertia(inertial, scope))
    for element in xml.children("collision"):
        geometry = element.first("geometry")
        capsule = None if geometry is None else geometry.first("capsule")
        if capsule is None:
            continue
        length, radius = (_length(scope, capsule, what) for what in ("length", "radius"))
        masks = (scope.unsigned(capsule, what, "capsule") for what in ("coltype", "colaffinity"))
        collision = Collision(element.get("name") or "")
        collision.set_origin(scope.origin(element, "collision origin"))
        collision.add_geom(GeomCapsule(length, radius, *masks))
        link.add_collision(collision)
    return link


def _length(scope: Scope, capsule: XmlElement, what: str) -> float:
    length = scope.number(capsule, what, f"capsule {what}", 0.0)
    if length < 0.0:
        scope.add("error", capsule.line, f"capsule {what} must not be negative, got {length}")
    return max(length, 0.0)


def _inertia(xml: XmlElement, scope: Scope) -> np.ndarray:
    """The 6x6 inertia in link axes of mass and moments about the centre of mass, in its axes."""
    mass, moments = (xml.first(tag) for tag in ("mass", "inertia"))
    m = 0.0 if mass is None else scope.number(mass, "value", "mass", 0.0)
    xx, xy, xz, yy, yz, zz = (0.0 if moments is None else scope.number(moments, k, k, 0.0) for k in _MOMENTS)
    central = np.zeros((6, 6))
    central[:3, :3] = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    central[3:, 3:] = m * np.eye(3)
    Ad = adjoint(inverse(scope.origin(xml, "inertial origin")))
    inertia = Ad.T @ central @ Ad
    return 0.5 * (inertia + inertia.T)


def _joint(xml: XmlElement, name: str, links: dict[str, Link], scope: Scope) -> None:
    kind = xml.get("in_model_type") or xml.get("type")
    if kind is None:
        scope.add("error", xml.line, "has no type")
    ends = []
    for tag in ("parent", "child"):
        element = xml.first(tag)
        link = None if element is None else element.get("link")
        if link is None:
            scope.add("error", xml.line, f"has no <{tag} link=...>")
        elif link not in links:
            scope.add("error", xml.line, f"its {tag} {link!r} is no link")
        ends.append(links.get(link or ""))
    axis = [1.0, 0.0, 0.0]
    element = xml.first("axis")
    if element is not None:  # without xyz it is a joint that does nothing, as in the SDK
        axis = scope.vector(element, "xyz", "axis", 3, [0.0, 0.0, 0.0]) or axis
    if kind in ("revolute", "continuous"):
        joint = Joint.make_revolute(name, axis=np.array(axis))
    elif kind == "prismatic":
        joint = Joint.make_prismatic(name, axis=np.array(axis))
    else:
        joint = Joint.make_fixed(name)
    limit = xml.first("limit")
    if limit is not None:
        _limits(limit, joint, scope)
    parent, child = ends
    if parent is not None and child is not None:
        joint.connect_links(parent, child, scope.origin(xml, "origin"))


def _limits(xml: XmlElement, joint: Joint, scope: Scope) -> None:
    def value(attribute: str) -> float | None:
        if xml.get(attribute) is None:
            return None
        number = scope.number(xml, attribute, f"limit {attribute}", infinite=True)
        return float(np.clip(number, -_LARGEST, _LARGEST))

    setters = (
        ("lower", joint.set_limit_q_lower),
        ("upper", joint.set_limit_q_upper),
        ("velocity", joint.set_limit_qdot_upper),
        ("velocity", lambda x: joint.set_limit_qdot_lower(-x)),
        ("acceleration", joint.set_limit_qddot_upper),
        ("acceleration", lambda x: joint.set_limit_qddot_lower(-x)),
        ("effort", joint.set_limit_torque),
    )
    for attribute, set_limit in setters:
        if (number := value(attribute)) is not None:
            set_limit(number)


def _mobile(xml: XmlElement, scope: Scope) -> MobileBase:
    kinds = {"differential": MobileBaseType.Differential, "mecanum": MobileBaseType.Mecanum}
    if (kind := xml.get("type")) is None:
        scope.add("error", xml.line, "has no type")
    texts = {}
    for attribute in ("joints", "params"):
        if (text := xml.get(attribute)) is None:
            scope.add("error", xml.line, f"has no {attribute}")
        texts[attribute] = text or ""
    count = len(texts["params"].split())
    params = (scope.vector(xml, "params", "params", count) if count else None) or ()
    pose = scope.pose(xml, "origin")
    return MobileBase(kinds.get(kind or "", MobileBaseType.Unspecified), pose, texts["joints"].split(), params)


_LARGEST = float(np.finfo(np.float64).max)
