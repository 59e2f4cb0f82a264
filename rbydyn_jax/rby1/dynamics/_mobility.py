"""Mobile bases: wheels, and the linear maps between wheel velocities and the planar twist [w, vx, vy] of the base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ..._check import check_sequence
from .._enumerations import SdkEnum, mirrors
from .._names import listed
from .._wheels import planar_adjoint, wheel_maps
from ._algebra import inverse
from ._errors import ModelError, ShapeError
from ._values import any_vector, checked, pose, unsigned


@mirrors("dynamics.MobileBaseType")
class MobileBaseType(SdkEnum):
    """Kinds of mobile bases; `Unspecified` has no wheels."""

    Unspecified = 0
    Differential = 1
    Mecanum = 2


class MobileBase:
    """A mobile base of a robot description; the SDK has no constructor for it.

    Args:
        type: Its kind.
        T: Pose (4, 4) in the base link of the frame in which the wheels are described.
        joints: Names of the wheel joints: right, left; or front right, front left, rear right, rear left.
        params: Distance and radius of the wheels; or Lx, Ly and the radius of mecanum wheels [m].

    Raises:
        ArgumentError: `T` is no rigid transform.
        DtypeError: `T` is not of shape (4, 4), `type` no `MobileBaseType`, or the joints are no names, or the
            parameters no numbers.
    """

    def __init__(self, type: MobileBaseType, T: ArrayLike, joints: Sequence[str], params: Sequence[float]) -> None:
        self._type = checked(type, "type", MobileBaseType)
        self._T = pose(T, "T")
        names = check_sequence(listed(joints), "joints", "names of joints")
        self._joints = tuple(checked(name, "joints", str) for name in names)
        self._params = tuple(any_vector(params, "params").tolist())

    @property
    def type(self) -> MobileBaseType:
        """Kind of the base."""
        return self._type

    @property
    def T(self) -> Float[np.ndarray, "4 4"]:
        """Pose of the mobile frame in the base link: a copy."""
        return self._T.copy()

    @property
    def joints(self) -> list[str]:
        """Names of the wheel joints."""
        return list(self._joints)

    @property
    def params(self) -> list[float]:
        """Parameters [m]; see the class."""
        return list(self._params)

    def __repr__(self) -> str:
        return (
            f"MobileBase(\n  type={self._type!r},\n  T={self._T},\n  joints={len(self._joints)},\n"
            f"  params={list(self._params)}\n)"
        )

    def __str__(self) -> str:
        return f"MobileBase(type={self._type!r}, joints={len(self._joints)})"


class MobileBaseDifferential(MobileBase):
    """The two wheels of a built robot; see `Robot.mobile_base`. Indices count the robot's own joints."""

    def __init__(self, base: MobileBase, wheels: Sequence[int]) -> None:
        given = checked(base, "base", MobileBase)
        super().__init__(given.type, given.T, given.joints, given.params)
        self._wheels = _indices(wheels, 2)

    @property
    def right_wheel_idx(self) -> int:
        """Index of the right wheel's joint."""
        return self._wheels[0]

    @property
    def left_wheel_idx(self) -> int:
        """Index of the left wheel's joint."""
        return self._wheels[1]

    @property
    def wheel_base(self) -> float:
        """Distance between the wheels [m]."""
        return self._params[0]

    @property
    def wheel_radius(self) -> float:
        """Radius of the wheels [m]."""
        return self._params[1]


class MobileBaseMecanum(MobileBase):
    """The four wheels of a built robot; see `Robot.mobile_base`. The SDK has this class in C++ only."""

    def __init__(self, base: MobileBase, wheels: Sequence[int]) -> None:
        given = checked(base, "base", MobileBase)
        super().__init__(given.type, given.T, given.joints, given.params)
        self._wheels = _indices(wheels, 4)

    @property
    def wheel_idx(self) -> tuple[int, ...]:
        """Indices of the wheels' joints: front right, front left, rear right, rear left."""
        return self._wheels

    @property
    def L_x(self) -> float:
        """Half the distance between the axles [m]."""
        return self._params[0]

    @property
    def L_y(self) -> float:
        """Half the distance between the wheels of an axle [m]."""
        return self._params[1]

    @property
    def wheel_radius(self) -> float:
        """Radius of the wheels [m]."""
        return self._params[2]


@dataclass(frozen=True, eq=False)
class Mobility:
    """The wheels of a robot: `forward @ qdot[wheels]` is [w, vx, vy] of the base link, `backward` its inverse."""

    base: MobileBase
    wheels: tuple[int, ...]
    forward: Float[np.ndarray, "3 k"]
    backward: Float[np.ndarray, "k 3"]


def _indices(wheels: Sequence[int], count: int) -> tuple[int, ...]:
    places = tuple(unsigned(k, "wheels") for k in check_sequence(wheels, "wheels", "indices of joints"))
    if len(places) != count:
        raise ShapeError(f"wheels must be {count} indices, got {len(places)}")
    return places


def resolve(base: MobileBase, joint_names: Sequence[str]) -> Mobility:
    """Finds the wheels among the joints of a robot and computes both maps.

    Raises:
        ModelError: A wheel is not a moving joint of the robot, or there are too few or many joints or parameters.
    """
    if base.type is MobileBaseType.Unspecified:
        return Mobility(base, (), np.zeros((3, 0)), np.zeros((0, 3)))
    differential = base.type is MobileBaseType.Differential
    kind = "differential" if differential else "mecanum"
    wheels = ("right", "left") if differential else ("front-right", "front-left", "rear-right", "rear-left")
    sizes = ("wheel base", "wheel radius") if differential else ("Lx", "Ly", "wheel radius")
    for what, given, wanted in (("joints", base.joints, wheels), ("params", base.params, sizes)):
        if len(given) != len(wanted):
            raise ModelError(
                f"a {kind} mobile base must have {len(wanted)} {what} ({', '.join(wanted)}), got {len(given)}"
            )
    for wheel, name in zip(wheels, base.joints, strict=True):
        if name not in joint_names:
            raise ModelError(f"the {wheel} wheel {name!r} of the mobile base is not a moving joint of the robot")
    indices = [joint_names.index(name) for name in base.joints]
    forward, backward = wheel_maps(kind, base.params)
    resolved = (MobileBaseDifferential if differential else MobileBaseMecanum)(base, indices)
    to_base, to_mobile = planar_adjoint(base.T), planar_adjoint(inverse(base.T))
    return Mobility(resolved, tuple(indices), to_base @ forward, backward @ to_mobile)
