"""Self-collision of a robot: all capsule pairs that the bit masks let through, in one pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from ._algebra import inverse
from ._errors import ModelError
from ._geometry import CollisionResult, GeomCapsule
from ._segments import nearest_points
from ._state import State
from ._structure import Structure


@dataclass(frozen=True, eq=False)
class CollisionTable:
    """The capsules of the links of a state and the pairs to test.

    Args:
        revisions: What the collision objects were like when the table was made.
        bodies: Body of each capsule (c,).
        ends: Both ends of each capsule in its body (c, 4, 2), homogeneous.
        radii: Sum of the radii of each pair (p,).
        pairs: The two capsules of each pair (2, p).
        names: Names of the two links of each pair.
    """

    revisions: tuple[object, ...]
    bodies: Int[np.ndarray, "c"]
    ends: Float[np.ndarray, "c 4 2"]
    radii: Float[np.ndarray, "p"]
    pairs: Int[np.ndarray, "2 p"]
    names: tuple[tuple[str, str], ...]


def revisions(model: Structure) -> tuple[object, ...]:
    """What tells whether a collision object was added or changed."""
    return tuple(collision._revision for link in model.links for collision in link._collisions)


def make_table(model: Structure, links: tuple[int, ...]) -> CollisionTable:
    """Lists the capsules in the order of the links, and the pairs on different places of that list.

    Raises:
        ModelError: A shape to be tested is a plain `Geom`.
    """
    capsules = []
    for place, link in enumerate(links):
        for collision in model.links[link]._collisions:
            pose = model.link_placements[link] @ collision._origin
            capsules += [(place, link, pose, geom) for geom in collision._geoms]
    pairs = [
        (i, j)
        for i, (place, _, _, geom) in enumerate(capsules)
        for j, (other_place, _, _, other) in enumerate(capsules)
        if place < other_place and geom.filter(other)
    ]
    used = sorted({i for pair in pairs for i in pair})
    ends, radii = np.ones((len(capsules), 4, 2)), np.zeros(len(capsules))
    for i in used:
        _, link, pose, geom = capsules[i]
        if not isinstance(geom, GeomCapsule):
            raise ModelError(f"link {model.links[link].name!r} has a plain Geom, which has no form; use GeomCapsule")
        ends[i, :3] = pose[:3, :3] @ np.stack([geom._start, geom._end], 1) + pose[:3, 3:]
        radii[i] = geom._radius
    first, second = np.array(pairs, np.intp).reshape(-1, 2).T
    names = [model.links[link].name for _, link, _, _ in capsules]
    return CollisionTable(
        revisions(model),
        np.array([model.topology.link_bodies[link] for _, link, _, _ in capsules], np.intp),
        ends,
        radii[first] + radii[second],
        np.stack([first, second]),
        tuple((names[i], names[j]) for i, j in pairs),
    )


def detect(table: CollisionTable, model: Structure, state: State, count: int) -> list[CollisionResult]:
    """All overlapping pairs, or the `count` nearest ones where these are more; nearest first, equal ones in order."""
    if not table.names:
        return []
    reference = state._T[model.topology.link_bodies[state._links[0]]] @ model.link_placements[state._links[0]]
    poses = (inverse(reference) @ state._T).take(table.bodies, axis=0)
    ends = (poses[:, :3] @ table.ends).transpose(2, 0, 1).take(table.pairs, axis=1).swapaxes(0, 1)
    gaps, first, second = nearest_points(ends[0, 0], ends[0, 1], ends[1, 0], ends[1, 1])
    distances = gaps - table.radii
    order = np.argsort(distances, kind="stable")[: max(count, int((distances <= 0.0).sum()))]
    nearest = zip(order.tolist(), first[order], second[order], distances[order].tolist(), strict=True)
    names = table.names
    return [CollisionResult(names[i][0], names[i][1], p1, p2, distance) for i, p1, p2, distance in nearest]
