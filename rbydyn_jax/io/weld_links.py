"""What links bring to a welded robot: inertial parameters and collision shapes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ..shapes import CollisionGeometry, Shape, collision_geometries
from ..shapes.capsule import Capsule
from ..shapes.convex_hull import of_one_size
from .description import CollisionDescription, LinkDescription
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


def collision_shapes(index: int, link: LinkDescription) -> list[tuple[int, Shape, CollisionDescription]]:
    """Returns the shapes of a link of which distances are computed, with its index."""
    return [
        (index, collision.geometry.on_link(np.asarray(collision.origin, float)), collision)
        for collision in link.collisions
        if isinstance(collision.geometry, CollisionGeometry)
    ]


def shape_rows(shapes: list[Shape]) -> dict[str, Shape]:
    """Returns the parameters of all shapes of each kind; there are always capsules, possibly none."""
    of_kind: dict[str, list[Any]] = {}
    for shape in shapes:
        of_kind.setdefault(shape.kind, []).append(shape)
    rows = {kind: type(all_[0])(*map(np.stack, zip(*of_one_size(all_), strict=True))) for kind, all_ in of_kind.items()}
    return {Capsule.kind: Capsule(np.zeros((0, 2, 3)), np.zeros(0)), **rows}


def note_unused_shapes(name: str, links: list[LinkDescription], findings: Findings) -> None:
    """Notes how many collision shapes are of a kind of which no distances are computed."""
    kinds = Counter(
        collision.geometry.tag
        for link in links
        for collision in link.collisions
        if not isinstance(collision.geometry, CollisionGeometry)
    )
    if kinds:
        shown = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        used = ", ".join(collision_geometries())
        message = f"{shown} among the collision shapes not used; used are: {used}"
        findings.add("note", message, f"robot {name!r}", findings.lines.get(("robot", 0), 0))
