"""Robots written in Python, in a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._errors import DtypeError, ModelError, ShapeError
from ..shapes import CapsuleGeometry, Geometry, SphereGeometry
from .check import check_description
from .description import (
    CollisionDescription,
    Inertial,
    JointDescription,
    JointKind,
    LinkDescription,
    Mimic,
    MobileBaseDescription,
    RobotDescription,
)
from .findings import Findings, did_you_mean
from .placement import Vector, placement, rotation_from_rpy

_ORIGIN = (0.0, 0.0, 0.0)
_LIMITS = ("lower", "upper", "velocity", "acceleration", "effort", "damping", "friction", "armature")
_OPTIONS = ("xyz", "rpy", "axis", "mimic", *_LIMITS)


class RobotBuilder:
    """Collects links and joints; each method returns the builder, so that calls can be chained.

    Args:
        name: Name of the robot.

    Example:
        >>> builder = RobotBuilder("arm").link("base").link("lower", 1.0, com=(0, 0, 0.2), inertia=(0.02, 0.02, 1e-3))
        >>> builder = builder.revolute("elbow", "base", "lower", xyz=(0, 0, 0.1), axis=(0, 1, 0), lower=-2, upper=2)
        >>> [joint.name for joint in builder.build_description().joints]
        ['elbow']
    """

    def __init__(self, name: str = "robot") -> None:
        self.name = name
        self._links: dict[str, LinkDescription] = {}
        self._joints: list[JointDescription] = []
        self._mobile: MobileBaseDescription | None = None

    def link(
        self, name: str, mass: float = 0.0, com: Vector = _ORIGIN, inertia: float | Vector | np.ndarray = 0.0
    ) -> RobotBuilder:
        """Adds a link.

        Args:
            name: Its name.
            mass: Mass [kg].
            com: Centre of mass in link axes (3,) [m].
            inertia: Moment of inertia about the centre of mass in link axes [kg m^2]: one number for a sphere, three
                for the diagonal, six for ixx, ixy, ixz, iyy, iyz, izz as in URDF, or a matrix (3, 3).

        Raises:
            DtypeError: The mass, `com` or the inertia are no numbers.
            ModelError: There is a link of that name, or the inertia has another shape.
            ShapeError: `com` is not of shape (3,).
        """
        if name in self._links:
            raise ModelError(f"link {name!r} is added twice")
        element = f"link {name!r}"
        mass, center = _number(mass, element, "mass"), _vector(com, element, "com")
        moments = _moments(name, _array(inertia, element, "inertia"))
        massless = mass == 0.0 and not moments.any()
        inertial = None if massless else Inertial(mass, center, moments)
        self._links[name] = LinkDescription(name, inertial)
        return self

    def joint(
        self,
        kind: JointKind,
        name: str,
        parent: str,
        child: str,
        *,
        xyz: Vector = _ORIGIN,
        rpy: Vector = _ORIGIN,
        axis: Vector = (1.0, 0.0, 0.0),
        mimic: Mimic | None = None,
        **limits: float,
    ) -> RobotBuilder:
        """Adds a joint; `revolute`, `fixed` and the like are this method with the kind filled in.

        Args:
            kind: One of `JOINT_KINDS`: `"revolute"`, `"prismatic"` and so on.
            name: Its name.
            parent: The link that carries it.
            child: The link that it moves; the frame of the joint is the frame of this link.
            xyz: Position in the parent's axes (3,) [m].
            rpy: Orientation in the parent's axes, roll, pitch and yaw (3,) [rad].
            axis: Direction of the axis in the joint frame (3,), of any length; normal of the plane of a planar joint.
            mimic: The joint that this one follows.
            **limits: `lower`, `upper`, `velocity`, `acceleration`, `effort`, `damping`, `friction`, `armature`.

        Raises:
            DtypeError: There is no such limit, or something is no number.
            ModelError: The axis has no length.
            ShapeError: `xyz`, `rpy` or `axis` is not of shape (3,).
        """
        element = f"joint {name!r}"
        for what in limits:
            if what not in _LIMITS:
                hint = did_you_mean(what, _OPTIONS) or f"; there are {', '.join(_OPTIONS)}"
                raise DtypeError(f"{element}: no option {what!r}{hint}")
        if mimic is not None and not isinstance(mimic, Mimic):
            raise DtypeError(f"{element}: mimic must be a Mimic(joint, multiplier, offset), got {mimic!r}")
        direction = _vector(axis, element, "axis")
        length = float(np.linalg.norm(direction))
        if not length > 0.0:
            raise ModelError(f"joint {name!r}: axis {tuple(direction.tolist())} has no direction")
        if length != 1.0:
            direction = direction / length
        pose = _pose(xyz, rpy, element)
        numbers: dict[str, Any] = {what: _number(value, element, what) for what, value in limits.items()}
        self._joints.append(JointDescription(name, kind, parent, child, pose, direction, mimic=mimic, **numbers))
        return self

    def revolute(self, name: str, parent: str, child: str, **options: Any) -> RobotBuilder:
        """Adds a hinge; `options` are those of `joint`."""
        return self.joint("revolute", name, parent, child, **options)

    def continuous(self, name: str, parent: str, child: str, **options: Any) -> RobotBuilder:
        """Adds a hinge without limits of position; `options` are those of `joint`."""
        return self.joint("continuous", name, parent, child, **options)

    def prismatic(self, name: str, parent: str, child: str, **options: Any) -> RobotBuilder:
        """Adds a slide; `options` are those of `joint`."""
        return self.joint("prismatic", name, parent, child, **options)

    def fixed(self, name: str, parent: str, child: str, **options: Any) -> RobotBuilder:
        """Welds a link to another one; `options` are `xyz` and `rpy`."""
        return self.joint("fixed", name, parent, child, **options)

    def planar(self, name: str, parent: str, child: str, **options: Any) -> RobotBuilder:
        """Adds a joint that moves in a plane; `options` are those of `joint`, `axis` is the plane's normal."""
        return self.joint("planar", name, parent, child, **options)

    def spherical(self, name: str, parent: str, child: str, **options: Any) -> RobotBuilder:
        """Adds a ball joint; `options` are those of `joint`."""
        return self.joint("spherical", name, parent, child, **options)

    def floating(self, name: str, parent: str, child: str, **options: Any) -> RobotBuilder:
        """Adds a joint of six degrees of freedom; `options` are those of `joint`."""
        return self.joint("floating", name, parent, child, **options)

    def sin_cos_revolute(self, name: str, parent: str, child: str, **options: Any) -> RobotBuilder:
        """Adds a hinge whose position is [sine, cosine]; `options` are those of `joint`."""
        return self.joint("sin_cos_revolute", name, parent, child, **options)

    def mrp_floating(self, name: str, parent: str, child: str, **options: Any) -> RobotBuilder:
        """Adds six degrees of freedom, by modified Rodrigues parameters; `options` are those of `joint`."""
        return self.joint("mrp_floating", name, parent, child, **options)

    def helical(self, name: str, parent: str, child: str, *, pitch: float, **options: Any) -> RobotBuilder:
        """Adds a screw: a hinge, and along its axis the slide ``<name>_slide`` that mimics it.

        Between them is the massless link ``<name>_nut``. The pitch is the slide's multiplier, a number of the model
        like any other (`model.mimic_multipliers`).

        Args:
            name: Name of the hinge, whose angle is the coordinate of the joint.
            parent: The link that carries it.
            child: The link that it moves.
            pitch: Translation per angle [m/rad].
            **options: Those of `joint`.

        Raises:
            DtypeError: There is no such option, or something is no number.
            ModelError: The axis has no length, or there is a link named ``<name>_nut``.
            ShapeError: `xyz`, `rpy` or `axis` is not of shape (3,).

        Example:
            >>> robot = RobotBuilder("press").link("frame").link("ram", 2.0, inertia=0.1)
            >>> robot = robot.helical("screw", "frame", "ram", pitch=0.01, axis=(0, 0, 1))
            >>> [(joint.kind, joint.name) for joint in robot.build_description().joints]
            [('revolute', 'screw'), ('prismatic', 'screw_slide')]
        """
        nut = f"{name}_nut"
        self.link(nut).revolute(name, parent, nut, **options)
        axis = options.get("axis", (1.0, 0.0, 0.0))
        return self.prismatic(f"{name}_slide", nut, child, axis=axis, mimic=Mimic(name, pitch))

    def universal(self, name: str, parent: str, child: str, *, axes: Sequence[Vector], **options: Any) -> RobotBuilder:
        """Adds two hinges ``<name>_1`` and ``<name>_2`` in one point, with the massless link ``<name>_cross`` between.

        Args:
            name: First part of their names.
            parent: The link that carries the joint.
            child: The link that it moves.
            axes: Directions of the first and the second axis in the joint frame, of any length.
            **options: Those of `joint` but for the axis; limits and losses are those of both.

        Raises:
            DtypeError: There is no such option, or something is no number.
            ModelError: An axis has no length, or there is a link named ``<name>_cross``.
            ShapeError: `xyz`, `rpy` or an axis is not of shape (3,).
        """
        first, second = axes
        cross = f"{name}_cross"
        self.link(cross).revolute(f"{name}_1", parent, cross, axis=first, **options)
        own = {what: value for what, value in options.items() if what in _LIMITS}
        return self.revolute(f"{name}_2", cross, child, axis=second, **own)

    def capsule(
        self,
        link: str,
        length: float,
        radius: float,
        *,
        xyz: Vector = _ORIGIN,
        rpy: Vector = _ORIGIN,
        coltype: int = 0,
        colaffinity: int = 0,
    ) -> RobotBuilder:
        """Adds a collision capsule along its own z axis; of no length it is a sphere.

        Args:
            link: The link, which must have been added.
            length: Length of the segment [m].
            radius: Radius [m].
            xyz: Middle of the segment in link axes (3,) [m].
            rpy: Orientation in link axes (3,) [rad].
            coltype: Bit mask of what it is.
            colaffinity: Bit mask of what it is tested against.

        Raises:
            ModelError: There is no such link yet.
        """
        element = f"capsule of link {link!r}"
        length, radius = _number(length, element, "length"), _number(radius, element, "radius")
        geometry = CapsuleGeometry(length, radius) if length else SphereGeometry(radius)
        return self.collision(link, geometry, xyz=xyz, rpy=rpy, coltype=coltype, colaffinity=colaffinity)

    def collision(
        self,
        link: str,
        geometry: Geometry,
        *,
        xyz: Vector = _ORIGIN,
        rpy: Vector = _ORIGIN,
        coltype: int = 0,
        colaffinity: int = 0,
    ) -> RobotBuilder:
        """Adds a collision shape of any kind.

        Args:
            link: The link, which must have been added.
            geometry: The shape in its own axes.
            xyz: Its origin in link axes (3,) [m].
            rpy: Its orientation in link axes (3,) [rad].
            coltype: Bit mask of what it is.
            colaffinity: Bit mask of what it is tested against.

        Raises:
            ModelError: There is no such link yet.
        """
        if link not in self._links:
            raise ModelError(f"{geometry.tag} on the unknown link {link!r}{did_you_mean(link, self._links)}")
        pose = _pose(xyz, rpy, f"{geometry.tag} of link {link!r}")
        old = self._links[link]
        shapes = (*old.collisions, CollisionDescription(geometry, pose, "", coltype, colaffinity))
        self._links[link] = LinkDescription(link, old.inertial, shapes)
        return self

    def mobile_base(
        self, kind: str, joints: Sequence[str], params: Sequence[float], *, xyz: Vector = _ORIGIN, rpy: Vector = _ORIGIN
    ) -> RobotBuilder:
        """Says which joints are the wheels of a mobile base; see `MobileBaseDescription`."""
        origin = _pose(xyz, rpy, "mobile base")
        self._mobile = MobileBaseDescription(kind, origin, tuple(joints), tuple(float(p) for p in params))
        return self

    def build_description(self) -> RobotDescription:
        """Returns the robot as plain data.

        Raises:
            ModelError: Something makes no sense; the message names every element concerned.
        """
        description = RobotDescription(self.name, tuple(self._links.values()), tuple(self._joints), self._mobile)
        findings = Findings()
        check_description(description, findings)
        findings.report()
        return description


def _array(x: Any, element: str, what: str) -> np.ndarray:
    try:
        return np.array(x, float)
    except (TypeError, ValueError):
        raise DtypeError(f"{element}: {what} must be numbers, got {x!r}") from None


def _number(x: Any, element: str, what: str) -> float:
    try:
        return float(x)
    except (TypeError, ValueError):
        raise DtypeError(f"{element}: {what} must be a number, got {x!r}") from None


def _vector(x: Any, element: str, what: str) -> np.ndarray:
    vector = _array(x, element, what)
    if vector.shape != (3,):
        raise ShapeError(f"{element}: {what} must have shape (3,), got {vector.shape}")
    return vector


def _pose(xyz: Any, rpy: Any, element: str) -> np.ndarray:
    angles = _vector(rpy, element, "rpy")
    return placement(_vector(xyz, element, "xyz"), rotation_from_rpy(angles) if angles.any() else None)


def _moments(name: str, inertia: np.ndarray) -> np.ndarray:
    if inertia.ndim == 0:
        return float(inertia) * np.eye(3)
    if inertia.shape == (3,):
        return np.diag(inertia)
    if inertia.shape == (6,):
        xx, xy, xz, yy, yz, zz = inertia
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if inertia.shape == (3, 3):
        return inertia.copy()
    raise ModelError(f"link {name!r}: inertia has shape {inertia.shape}, expected a number, (3,), (6,) or (3, 3)")
