"""The Rainbow Robotics RB-Y1 in its three forms: A (two wheels), M (four mecanum wheels) and UB (upper body).

Lengths, limits and collision capsules are here, mass properties in `rby1_figures`; all are the manufacturer's published
figures of the latest versions. Angles of limits are those of the maker, rounded to nine decimals. The fingers of the
grippers are welded, as in the maker's own model.
"""

from __future__ import annotations

from ..io.builder import RobotBuilder
from ..io.description import RobotDescription
from . import rby1_figures as figures

PI = 3.141592654  # as in the published limits
QUARTER = 1.5708  # a right angle, as in the published orientations of the capsules

# Joint: height of the origin [m], axis, lower and upper limit [rad], velocity [rad/s], effort [N m].
_TORSO = (
    (0.0, (1, 0, 0), -0.261799388, 0.261799388, 2.0943951, 270.0),
    (0.0, (0, 1, 0), -0.523598776, 1.570796327, 2.0943951, 270.0),
    (0.35, (0, 1, 0), -2.617993878, 1.570796327, 2.0943951, 270.0),
    (0.35, (0, 1, 0), -0.785398163, 1.570796327, PI, 120.0),
    (0.0, (1, 0, 0), -0.523598776, 0.523598776, PI, 120.0),
    (0.309426548461, (0, 0, 1), -2.35619449, 2.35619449, PI, 120.0),
)
# Capsule of a torso link: length, radius, middle [m], orientation [rad]. Its group is the bit of the link's number.
_TORSO_CAPSULES = {
    0: (0.23, 0.105, (-0.115, 0, 0), (0, QUARTER, 0)),
    1: (0.22, 0.115, (0.01, 0, 0.24), (0, 0, 0)),
    2: (0.16, 0.095, (0.025, 0, 0.23), (0, 0, 0)),
    4: (0.2, 0.105, (-0.07, 0, 0.0385), (0, QUARTER, 0)),
    5: (0.135, 0.155, (0, 0, 0.0075), (0, 0, 0)),
}
# The right arm, before the wrist: origin [m], axis, limits [rad], velocity [rad/s], effort [N m]. The left is its
# mirror image in y, the rolling joint 1 included.
_ARM = (
    ((0.0, -0.22, 0.080073451539), (0.0, 0.93969262, -0.34202014), -PI, PI, PI, 70.0),
    ((0.0, 0.0, 0.0), (1, 0, 0), -PI, 0.017453293, PI, 70.0),
    ((0.0, 0.0, 0.0), (0, 0, 1), -PI, PI, PI, 70.0),
    ((0.031, 0.0, -0.276), (0, 1, 0), -2.617993878, 0.017453293, PI, 40.0),
)
_WRIST = (
    ((-0.031, 0.0, -0.256), (0, 0, 1), -PI, PI, 6.283185308, 10.0),
    ((0.0, 0.0, 0.0), (0, 1, 0), -1.570796327, 1.919862177, 6.283185308, 10.0),
    ((0.0, 0.0, 0.0), (0, 0, 1), -2.70526034, 2.70526034, 2.094395102, 8.0),
)
_WRIST_M = (
    ((-0.031, 0.0, -0.3095), (0, 0, 1), -PI, PI, 6.283185308, 10.0),
    ((0.0, 0.0, 0.0), (0, 1, 0), -0.872664626, 0.872664626, 6.283185308, 10.0),
    ((0.0, 0.0, 0.0), (1, 0, 0), -1.5707963268, 1.5707963268, 2.094395102, 8.0),
)
# Capsules of the right arm's links 0 to 4, and what each link of the right and of the left arm is tested against.
_ARM_CAPSULES = (
    (0.07, 0.075, (-0.015, 0.018, -0.008), (0, QUARTER, 0)),
    (0.2, 0.05, (0, 0, -0.1), (0, 0, 0)),
    (0.08, 0.05, (0.026, 0, -0.276), (QUARTER, 0, 0)),
    (0.115, 0.04, (-0.031, 0, -0.1075), (0, 0, 0)),
    (0.095, 0.035, (0, -0.038, 0.0175), (0, 0, 0)),
)
_HAND_CAPSULE_A = (0.2213, 0.075, (0, 0, -0.08565), (0, 0, 0))
_HAND_CAPSULE = (0.25, 0.075, (0, 0, -0.1), (0, 0, 0))
_AFFINITY = {"right": (0, 0, 0, 30, 30, 31), "left": (0, 768, 768, 926, 1022, 1023)}


def describe_rby1a() -> RobotDescription:
    """Returns the description of the RB-Y1 A, version 1.2."""
    b = RobotBuilder("RBY1_A_v1.2")
    mass = figures.SHARED | figures.A
    _links(b, mass, "base", "wheel_r", "wheel_l")
    for name, child, y in (("right_wheel", "wheel_r", -0.265), ("left_wheel", "wheel_l", 0.265)):
        rates = {"velocity": 15.707963268, "acceleration": 3.141592}
        b.continuous(name, "base", child, xyz=(0.228, y, 0.1), axis=(0, -1, 0), **rates)
    b.mobile_base("differential", ("right_wheel", "left_wheel"), (0.53, 0.1), xyz=(0.228, 0, 0))
    _torso(b, mass, height=0.2805)
    for side in ("right", "left"):
        _arm(b, mass, side, _WRIST, _HAND_CAPSULE_A)
    for side in ("right", "left"):
        b.link(f"ee_{side}", *mass[f"ee_{side}"])
        b.fixed(f"tool_{side}", f"link_{side}_arm_6", f"ee_{side}", xyz=(0, 0, -0.1261))
        _fingers(b, side, height=-0.075)
    _head(b, mass, height=0.08, yaw=(-1.57, 1.57), pitch=(-1.57, 1.57))
    return b.build_description()


def describe_rby1m() -> RobotDescription:
    """Returns the description of the RB-Y1 M, version 1.3."""
    b = RobotBuilder("RBY1_M_v1.3")
    mass = figures.SHARED | figures.M
    wheels = {"fr": (0.243, -0.245), "fl": (0.243, 0.245), "rr": (-0.247, -0.245), "rl": (-0.247, 0.245)}
    _links(b, mass, "base", *(f"wheel_{corner}_link" for corner in wheels))
    for corner, (x, y) in wheels.items():
        b.continuous(f"wheel_{corner}", "base", f"wheel_{corner}_link", xyz=(x, y, 0.076), axis=(0, 1, 0))
    b.mobile_base("mecanum", [f"wheel_{corner}" for corner in wheels], (0.245, 0.245, 0.076))
    _torso(b, mass, height=0.2965)
    for side in ("right", "left"):
        _arm(b, mass, side, _WRIST_M, _HAND_CAPSULE)
    for side in ("right", "left"):
        b.link(f"ee_{side}", *mass[f"ee_{side}"])
        b.fixed(f"END_{side}", f"link_{side}_arm_6", f"ee_{side}", xyz=(0, 0, -0.125))
        for number, yaw in ((1, 1.5707963268), (2, -1.5707963268)):
            _finger(b, side, number, (0, 0, 0), yaw)
    _head(b, mass, height=0.08, yaw=(-1.57, 1.57), pitch=(-1.57, 1.57))
    return b.build_description()


def describe_rby1ub() -> RobotDescription:
    """Returns the description of the RB-Y1 UB, the upper body on a pitching hip."""
    b = RobotBuilder("RBY1_UB")
    mass = figures.SHARED | figures.UB
    _links(b, mass, "base", "link_torso_hp", "link_torso_5")
    limits = {"lower": -1.570796327, "upper": 1.570796327, "velocity": 2.0943951, "acceleration": 5.0, "effort": 250.0}
    b.revolute("torso_hp", "base", "link_torso_hp", xyz=(0, 0, 0.153), axis=(0, 1, 0), **limits)
    _, axis, lower, upper, velocity, effort = _TORSO[5]
    limits = {"lower": lower, "upper": upper, "velocity": velocity, "acceleration": 5.0, "effort": effort}
    b.revolute("torso_5", "link_torso_hp", "link_torso_5", xyz=(0, 0, 0.332326548), axis=axis, **limits)
    for link, number in (("link_torso_hp", 4), ("link_torso_5", 5)):
        _capsule(b, link, _TORSO_CAPSULES[number], coltype=1 << (number - 1))
    for side in ("right", "left"):
        _arm(b, mass, side, _WRIST, _HAND_CAPSULE)
    for side in ("right", "left"):
        sensor = f"FT_sensor_{side[0].upper()}"
        _links(b, mass, sensor, f"ee_{side}")
        b.fixed(f"tool_{side}", f"link_{side}_arm_6", sensor, xyz=(0, 0, -0.1087))
        b.fixed(f"FT_Sensor_END_{side}", sensor, f"ee_{side}", xyz=(0, 0, -0.0461))
        _fingers(b, side, height=-0.073)
    _head(b, mass, height=0.02, yaw=(-0.523, 0.523), pitch=(-0.35, 1.57))
    return b.build_description()


def _links(b: RobotBuilder, mass: dict[str, figures.MassFigures], *names: str) -> None:
    for name in names:
        b.link(name, *mass[name])


def _capsule(
    b: RobotBuilder, link: str, shape: tuple, mirror: float = 1.0, coltype: int = 0, affinity: int = 0
) -> None:
    length, radius, (x, y, z), rpy = shape
    b.capsule(link, length, radius, xyz=(x, mirror * y, z), rpy=rpy, coltype=coltype, colaffinity=affinity)


def _torso(b: RobotBuilder, mass: dict[str, figures.MassFigures], height: float) -> None:
    parent = "base"
    for i, (z, axis, lower, upper, velocity, effort) in enumerate(_TORSO):
        link = f"link_torso_{i}"
        b.link(link, *mass[link])
        limits = {"lower": lower, "upper": upper, "velocity": velocity, "acceleration": 5.0, "effort": effort}
        b.revolute(f"torso_{i}", parent, link, xyz=(0, 0, z if i else height), axis=axis, **limits)
        parent = link
    for bit, (i, shape) in enumerate(_TORSO_CAPSULES.items()):
        _capsule(b, f"link_torso_{i}", shape, coltype=1 << bit)


def _arm(b: RobotBuilder, mass: dict[str, figures.MassFigures], side: str, wrist: tuple, hand: tuple) -> None:
    left = side == "left"
    mirror = -1.0 if left else 1.0
    parent = "link_torso_5"
    for i, (xyz, axis, lower, upper, velocity, effort) in enumerate(_ARM + wrist):
        link = f"link_{side}_arm_{i}"
        b.link(link, *mass[link])
        if left and i == 0:
            xyz, axis = (0.0, 0.22, 0.080073452), (0.0, 0.93969262, 0.34202014)
        if left and i == 1:
            lower, upper = -upper, -lower
        limits = {"lower": lower, "upper": upper, "velocity": velocity, "acceleration": 10.0, "effort": effort}
        b.revolute(f"{side}_arm_{i}", parent, link, xyz=xyz, axis=axis, **limits)
        parent = link
    for i, shape in enumerate((*_ARM_CAPSULES, hand)):
        coltype = 0 if left or i == 0 else 16 << i
        _capsule(b, f"link_{side}_arm_{i}", shape, mirror, coltype, _AFFINITY[side][i])


def _fingers(b: RobotBuilder, side: str, height: float) -> None:
    _finger(b, side, 1, (0.003, 0, height), 0.0)
    _finger(b, side, 2, (-0.003, 0, height), 3.1415926535)


def _finger(b: RobotBuilder, side: str, number: int, xyz: tuple[float, float, float], yaw: float) -> None:
    link = f"ee_finger_{side[0]}{number}"
    b.link(link, *figures.FINGER)
    b.fixed(f"gripper_finger_{side[0]}{number}", f"ee_{side}", link, xyz=xyz, rpy=(0, 0, yaw))


def _head(b: RobotBuilder, mass: dict[str, figures.MassFigures], height: float, yaw: tuple, pitch: tuple) -> None:
    _links(b, mass, "link_head_0", "link_head_1", "link_head_2")
    b.fixed("head_base", "link_torso_5", "link_head_0", xyz=(0.022, 0, 0.120073451525))
    rates = {"velocity": 3.14, "effort": 1000.0}
    b.revolute(
        "head_0", "link_head_0", "link_head_1", xyz=(0, 0, height), axis=(0, 0, 1), lower=yaw[0], upper=yaw[1], **rates
    )
    b.revolute("head_1", "link_head_1", "link_head_2", axis=(0, 1, 0), lower=pitch[0], upper=pitch[1], **rates)
