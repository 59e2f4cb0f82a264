"""What links bring to a welded robot: inertial parameters and collision capsules."""

from __future__ import annotations

from collections import Counter

import numpy as np

from .description import CapsuleGeometry, CollisionDescription, LinkDescription, SphereGeometry
from .findings import Findings
from .placement import is_identity


def ten_parameters(link: LinkDescription, pose: np.ndarray) -> list[float]:
    """Returns [m, m c, I about the origin] of a link in the axes of the frame in which `pose` places it."""
    if link.inertial is None:
        return [0.0] * 10
    mass, com, inertia = link.inertial.mass, np.asarray(link.inertial.com, float), link.inertial.inertia
    rotation = pose[:3, :3]
    if not is_identity(rotation):
        com, inertia = rotation @ com, rotation @ inertia @ rotation.T
    x, y, z = (com + pose[:3, 3]).tolist()
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = np.asarray(inertia, float).tolist()
    return [
        mass,
        mass * x,
        mass * y,
        mass * z,
        xx + mass * (y * y + z * z),
        xy - mass * x * y,
        yy + mass * (x * x + z * z),
        xz - mass * x * z,
        yz - mass * y * z,
        zz + mass * (x * x + y * y),
    ]


def body_inertias(
    links: list[LinkDescription],
    bodies: list[int],
    poses: list[np.ndarray],
    own: np.ndarray,
    count: int,
) -> np.ndarray:
    """Returns the parameters (count, 10) of each body: the sum over its links; `own` are theirs about their origins."""
    total = np.zeros((count, 10))
    for index, (link, body, pose) in enumerate(zip(links, bodies, poses, strict=True)):
        if body >= 0 and link.inertial is not None:
            at_origin = is_identity(pose[:3, :3]) and not pose[:3, 3].any()
            total[body] += own[index] if at_origin else ten_parameters(link, pose)
    return total


def capsules(index: int, link: LinkDescription) -> list[tuple[int, np.ndarray, float, CollisionDescription]]:
    """Returns the capsules and spheres of a link with their segments, the end at +z first, and radii."""
    found = []
    for collision in link.collisions:
        geometry = collision.geometry
        if isinstance(geometry, CapsuleGeometry | SphereGeometry):
            half = 0.5 * geometry.length if isinstance(geometry, CapsuleGeometry) else 0.0
            origin = np.asarray(collision.origin, float)
            center, reach = origin[:3, 3], half * origin[:3, 2]
            found.append((index, np.array([center + reach, center - reach]), geometry.radius, collision))
    return found


def note_unused_shapes(name: str, links: list[LinkDescription], findings: Findings) -> None:
    """Notes how many collision shapes are neither capsule nor sphere."""
    kinds = Counter(
        type(collision.geometry).__name__.removesuffix("Geometry").lower()
        for link in links
        for collision in link.collisions
        if not isinstance(collision.geometry, CapsuleGeometry | SphereGeometry)
    )
    if kinds:
        shown = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        message = f"{shown} among the collision shapes not used: capsules and spheres are"
        findings.add("note", message, f"robot {name!r}", findings.lines.get(("robot", 0), 0))
