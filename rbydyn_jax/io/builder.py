"""Robots written in Python, in a few lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._check import check_sequence, real_numbers
from .._errors import ArgumentError, DtypeError, ModelError, ShapeError
from ..joints import JOINT_TYPES
from ..shapes import CapsuleGeometry, Geometry, SphereGeometry
from .check import check_description
from .description import (
    CollisionDescription,
    Inertial,
    JointDescription,
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

    There is a method for each type of joint, of its name; see `joint` for its arguments.

    Args:
        name: Name of the robot.

    Example:
        >>> builder = RobotBuilder("arm").link("base").link("lower", 1.0, com=(0, 0, 0.2), inertia=(0.02, 0.02, 1e-3))
        >>> builder = builder.revolute("elbow", "base", "lower", xyz=(0, 0, 0.1), axis=(0, 1, 0), lower=-2, upper=2)
        >>> [joint.name for joint in builder.build_description().joints]
        ['elbow']
    """

    def __init__(self, name: str = "robot") -> None:
        if not isinstance(name, str):
            raise DtypeError(f"name must be a str, got {type(name).__name__}")
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
        _names(f"link {name!r}", name=name)
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
        kind: str,
        name: str,
        parent: str,
        child: str,
        *,
        xyz: Vector = _ORIGIN,
        rpy: Vector = _ORIGIN,
        axis: Vector = (1.0, 0.0, 0.0),
        mimic: Mimic | None = None,
        **numbers: float,
    ) -> RobotBuilder:
        """Adds a joint; each type of joint has a method of its name, which is this one with the kind filled in.

        Args:
            kind: A key of `joints.JOINT_TYPES`: `"revolute"`, `"prismatic"` and so on.
            name: Its name.
            parent: The link that carries it.
            child: The link that it moves; the frame of the joint is the frame of this link.
            xyz: Position in the parent's axes (3,) [m].
            rpy: Orientation in the parent's axes, roll, pitch and yaw (3,) [rad].
            axis: Direction of the axis in the joint frame (3,), of any length; normal of the plane of a planar joint.
            mimic: The joint that this one follows.
            **numbers: `lower`, `upper`, `velocity`, `acceleration`, `effort`, `damping`, `friction`, `armature`, and
                the parameters of this type of joint, which are required: `pitch` [m/rad] of a screw.

        Raises:
            DtypeError: There is no such option, or something is no number.
            ModelError: There is no such kind of joint, the axis has no length, or a parameter is missing.
            ShapeError: `xyz`, `rpy` or `axis` is not of shape (3,).

        Example:
            >>> robot = RobotBuilder("press").link("frame").link("ram", 2.0, inertia=0.1)
            >>> robot = robot.screw("spindle", "frame", "ram", pitch=0.01, axis=(0, 0, 1))
            >>> [(joint.kind, joint.name) for joint in robot.build_description().joints]
            [('screw', 'spindle')]
        """
        element = f"joint {name!r}"
        _names(element, kind=kind, name=name, parent=parent, child=child)
        if kind not in JOINT_TYPES:
            raise ModelError(f"{element}: unknown type {kind!r}{did_you_mean(kind, JOINT_TYPES)}")
        parameters = JOINT_TYPES[kind].parameters
        options = (*_OPTIONS, *parameters)
        for what in numbers:
            if what not in (*_LIMITS, *parameters):
                hint = did_you_mean(what, options) or f"; there are {', '.join(options)}"
                raise DtypeError(f"{element}: no option {what!r}{hint}")
        for what in parameters:
            if what not in numbers:
                raise ModelError(f"{element}: a {kind} joint needs {what}=")
        if mimic is not None and not isinstance(mimic, Mimic):
            raise DtypeError(f"{element}: mimic must be a Mimic(joint, multiplier, offset), got {mimic!r}")
        direction = _vector(axis, element, "axis")
        length = float(np.linalg.norm(direction))
        if not length > 0.0:
            raise ModelError(f"joint {name!r}: axis {tuple(direction.tolist())} has no direction")
        if length != 1.0:
            direction = direction / length
        pose = _pose(xyz, rpy, element)
        given: dict[str, Any] = {what: _number(value, element, what) for what, value in numbers.items()}
        own = {what: given.pop(what) for what in parameters}
        self._joints.append(
            JointDescription(name, kind, parent, child, pose, direction, mimic=mimic, parameters=own, **given)
        )
        return self

    def __getattr__(self, kind: str) -> Callable[..., RobotBuilder]:
        """`joint` with a kind filled in: `builder.revolute(name, parent, child, **options)`."""
        if kind not in JOINT_TYPES:
            hint = "" if kind.startswith("_") else did_you_mean(kind, JOINT_TYPES)
            raise AttributeError(f"RobotBuilder has no {kind!r}{hint}", name=kind, obj=self)

        def add(name: str, parent: str, child: str, **options: Any) -> RobotBuilder:
            return self.joint(kind, name, parent, child, **options)

        add.__name__ = kind
        add.__doc__ = f"Adds {JOINT_TYPES[kind].summary}; `options` are those of `joint`."
        return add

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *JOINT_TYPES]

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
            ShapeError: `xyz`, `rpy` or an axis is not of shape (3,), or there are not two axes.
        """
        _names(f"joint {name!r}", name=name)
        if len(check_sequence(axes, "axes", "two directions (3,)")) != 2:
            raise ShapeError(f"joint {name!r}: axes must be two directions, got {len(axes)}")
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
            DtypeError: Something is no number, or a mask no integer.
            ModelError: There is no such link yet.
            ShapeError: `xyz` or `rpy` is not of shape (3,).
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
            ArgumentError: A mask has not 32 bits, or a position is not finite.
            DtypeError: `geometry` is no shape, something is no number, or a mask no integer.
            ModelError: There is no such link yet.
            ShapeError: `xyz` or `rpy` is not of shape (3,).
        """
        if not isinstance(geometry, Geometry):
            raise DtypeError(f"geometry must be a shape, such as a SphereGeometry, got {type(geometry).__name__}")
        _names(f"{geometry.tag} of a link", link=link)
        coltype, colaffinity = _mask(coltype, "coltype"), _mask(colaffinity, "colaffinity")
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
        """Says which joints are the wheels of a mobile base; see `MobileBaseDescription`.

        Args:
            kind: ``"differential"`` or ``"mecanum"``.
            joints: The names of the wheels' joints.
            params: Sizes of the base [m].
            xyz: Origin of the base in the axes of the root link (3,) [m].
            rpy: Its orientation there (3,) [rad].

        Raises:
            DtypeError: The kind or a joint is no name, or something is no number.
            ShapeError: `xyz` or `rpy` is not of shape (3,), or `params` no list of numbers.
        """
        element = "mobile base"
        origin = _pose(xyz, rpy, element)
        _names(element, kind=kind)
        names = tuple(check_sequence(joints, "joints", "names of joints"))
        for name in names:
            _names(element, joint=name)
        sizes = _array(params, element, "params")
        if sizes.ndim != 1:
            raise ShapeError(f"{element}: params must be a list of numbers, got shape {sizes.shape}")
        self._mobile = MobileBaseDescription(kind, origin, names, tuple(sizes.tolist()))
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


def _array(x: Any, element: str, what: str, expected: str = "numbers") -> np.ndarray:
    numbers = real_numbers(x)
    if numbers is None:
        raise DtypeError(f"{element}: {what} must be {expected}, got {x!r:.80}")
    return numbers


def _names(element: str, **names: Any) -> None:
    for what, name in names.items():
        if not isinstance(name, str):
            raise DtypeError(f"{element}: {what} must be a str, got {type(name).__name__}")


def _number(x: Any, element: str, what: str) -> float:
    number = _array(x, element, what, "a number")
    if number.shape != ():
        raise DtypeError(f"{element}: {what} must be a number, got {x!r:.80}")
    return float(number)


def _mask(x: Any, what: str) -> int:
    if not isinstance(x, int | np.integer) or isinstance(x, bool):
        raise DtypeError(f"{what} must be an integer, got {x!r:.80}")
    if not 0 <= x < 2**32:
        raise ArgumentError(f"{what} must be an unsigned integer of 32 bits, got {x}")
    return int(x)


def _vector(x: Any, element: str, what: str) -> np.ndarray:
    vector = _array(x, element, what)
    if vector.shape != (3,):
        raise ShapeError(f"{element}: {what} must have shape (3,), got {vector.shape}")
    if not np.isfinite(vector).all():
        raise ArgumentError(f"{element}: {what} must be finite, got {vector.tolist()}")
    return vector


def _pose(xyz: Any, rpy: Any, element: str) -> np.ndarray:
    angles = _vector(rpy, element, "rpy")
    return placement(_vector(xyz, element, "xyz"), rotation_from_rpy(angles) if angles.any() else None)


def _moments(name: str, inertia: np.ndarray) -> np.ndarray:
    if inertia.ndim == 0:
        return np.diag(np.full(3, inertia))
    if inertia.shape == (3,):
        return np.diag(inertia)
    if inertia.shape == (6,):
        xx, xy, xz, yy, yz, zz = inertia
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if inertia.shape == (3, 3):
        return inertia.copy()
    raise ModelError(f"link {name!r}: inertia has shape {inertia.shape}, expected a number, (3,), (6,) or (3, 3)")
