"""Small robots to learn and to test with. Their figures are our own; lengths in m, masses in kg."""

from __future__ import annotations

import math

from .._check import check_number, check_real
from ..io.builder import RobotBuilder
from ..io.description import RobotDescription


def rod(mass: float, length: float) -> tuple[float, tuple[float, float, float], tuple[float, float, float]]:
    """Returns mass, centre and moments of a thin rod that hangs from its end along -z."""
    across = mass * length**2 / 12.0
    return mass, (0.0, 0.0, -0.5 * length), (across, across, 0.0)


def describe_pendulum(mass: float = 1.0, length: float = 1.0) -> RobotDescription:
    """Returns a point mass on a massless bar that swings about y; at q = 0 it hangs down."""
    b = RobotBuilder("pendulum").link("base").link("bob", mass, (0, 0, -check_number(length, "length")))
    b.continuous("hinge", "base", "bob", axis=(0, 1, 0))
    return b.build_description()


def describe_double_pendulum(
    masses: tuple[float, float] = (1.0, 1.0), lengths: tuple[float, float] = (1.0, 1.0)
) -> RobotDescription:
    """Returns two thin rods that swing about y, the second at the end of the first; at q = 0 both hang down."""
    masses, lengths = check_real(masses, "masses", (2,)).tolist(), check_real(lengths, "lengths", (2,)).tolist()
    b = RobotBuilder("double_pendulum").link("base")
    b.link("upper", *rod(masses[0], lengths[0])).link("lower", *rod(masses[1], lengths[1]))
    b.continuous("shoulder", "base", "upper", axis=(0, 1, 0))
    b.continuous("elbow", "upper", "lower", xyz=(0, 0, -lengths[0]), axis=(0, 1, 0))
    return b.build_description()


def describe_two_link_arm() -> RobotDescription:
    """Returns an arm of two links in the horizontal plane, along x at q = 0, with limits and a tool frame."""
    b = RobotBuilder("two_link_arm").link("base")
    b.link("upper", 2.0, (0.25, 0, 0), (0.002, 0.05, 0.05)).link("lower", 1.0, (0.2, 0, 0), (0.001, 0.015, 0.015))
    limits = {"lower": -2.8, "upper": 2.8, "velocity": 3.0, "acceleration": 15.0, "effort": 40.0}
    b.revolute("shoulder", "base", "upper", axis=(0, 0, 1), **limits)
    b.revolute("elbow", "upper", "lower", xyz=(0.5, 0, 0), axis=(0, 0, 1), **limits)
    b.link("tool").fixed("tool_mount", "lower", "tool", xyz=(0.4, 0, 0))
    lying = (0, math.pi / 2, 0)
    b.capsule("upper", 0.4, 0.05, xyz=(0.25, 0, 0), rpy=lying, coltype=1)
    b.capsule("lower", 0.3, 0.04, xyz=(0.2, 0, 0), rpy=lying, colaffinity=1)
    return b.build_description()


# Link of the 7-dof arm: joint origin [m], roll of the joint frame [quarter turns], lower and upper limit [rad], effort
# [N m], mass [kg], centre of mass [m], moments about it [kg m^2], capsule (length, radius, middle).
_SEVEN = (
    ((0, 0, 0.34), 0, -2.9, 2.9, 90.0, 3.6, (0, -0.03, -0.06), (0.022, 0.020, 0.010), (0.12, 0.07, (0, 0, -0.08))),
    ((0, 0, 0), -1, -1.8, 1.8, 90.0, 3.5, (0, -0.09, 0.03), (0.026, 0.010, 0.024), (0.10, 0.07, (0, 0, 0))),
    ((0, -0.32, 0), 1, -2.9, 2.9, 80.0, 3.0, (0.03, 0.02, -0.06), (0.018, 0.016, 0.009), (0.12, 0.06, (0, 0, -0.10))),
    ((0.08, 0, 0), 1, -3.0, 0.0, 80.0, 3.0, (-0.04, 0.06, 0.01), (0.016, 0.012, 0.018), (0.10, 0.06, (0, 0, 0))),
    ((-0.08, 0.38, 0), -1, -2.9, 2.9, 15.0, 2.8, (0, 0.03, -0.12), (0.030, 0.028, 0.008), (0.20, 0.055, (0, 0, -0.16))),
    ((0, 0, 0), 1, -0.1, 3.7, 15.0, 1.5, (0.05, 0.01, 0.0), (0.003, 0.005, 0.006), (0.08, 0.05, (0, 0, 0))),
    ((0.09, 0, 0), 1, -2.9, 2.9, 12.0, 0.9, (0.01, 0.005, 0.08), (0.002, 0.002, 0.001), (0.08, 0.05, (0, 0, 0.05))),
)


def describe_panda_like() -> RobotDescription:
    """Returns an arm of seven joints in the common arrangement, with a tool frame; the figures are made up."""
    b = RobotBuilder("panda_like").link("link0", 2.8, (-0.04, 0, 0.06), (0.016, 0.020, 0.018))
    b.capsule("link0", 0.1, 0.08, xyz=(0, 0, 0.06), coltype=1)
    for i, (xyz, turns, lower, upper, effort, mass, com, inertia, shape) in enumerate(_SEVEN, start=1):
        length, radius, middle = shape
        b.link(f"link{i}", mass, com, inertia)
        limits = {"lower": lower, "upper": upper, "velocity": 2.2, "acceleration": 10.0, "effort": effort}
        losses = {"damping": 0.5, "friction": 0.2, "armature": 0.1}
        rpy = (turns * math.pi / 2, 0, 0)
        b.revolute(f"joint{i}", f"link{i - 1}", f"link{i}", xyz=xyz, rpy=rpy, axis=(0, 0, 1), **limits, **losses)
        # A link always touches its neighbours; it is tested against those three and more joints away.
        b.capsule(f"link{i}", length, radius, xyz=middle, coltype=1 << i, colaffinity=(1 << max(i - 2, 0)) - 1)
    b.link("tool").fixed("tool_mount", "link7", "tool", xyz=(0, 0, 0.2))
    return b.build_description()
