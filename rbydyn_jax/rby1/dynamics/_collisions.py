"""Self-collision of a robot: all capsule pairs that the bit masks admit, at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

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
        axes: One end of each capsule and the way to the other, in its body, homogeneous (c, 4, 2).
        radii: Sum of the radii of each pair (p,).
        pairs: The two capsules of each pair (2, p).
        names: Names of the two links of each pair.
    """

    revisions: tuple[object, ...]
    bodies: Int[np.ndarray, "c"]
    axes: Float[np.ndarray, "c 4 2"]
    radii: Float[np.ndarray, "p"]
    pairs: Int[np.ndarray, "2 p"]
    names: tuple[tuple[str, str], ...]


def revisions(model: Structure) -> tuple[object, ...]:
    """A key that changes when a collision object is added or changed."""
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
    axes, radii = np.zeros((len(capsules), 4, 2)), np.zeros(len(capsules))
    for i in used:
        _, link, pose, geom = capsules[i]
        if not isinstance(geom, GeomCapsule):
            raise ModelError(f"link {model.links[link].name!r} has a plain Geom, which has no form; use GeomCapsule")
        axes[i] = pose @ np.stack([np.append(geom._start, 1.0), np.append(geom._end - geom._start, 0.0)], axis=1)
        radii[i] = geom._radius
    first, second = np.array(pairs, np.intp).reshape(-1, 2).T
    names = [model.links[link].name for _, link, _, _ in capsules]
    return CollisionTable(
        revisions(model),
        np.array([model.topology.link_bodies[link] for _, link, _, _ in capsules], np.intp),
        axes,
        radii[first] + radii[second],
        np.stack([first, second]),
        tuple((names[i], names[j]) for i, j in pairs),
    )


def detect(table: CollisionTable, model: Structure, state: State, count: int) -> list[CollisionResult]:
    """All overlapping pairs, or the `count` nearest ones where these are more; nearest first, equal ones in order."""
    if not table.names:
        return []
    axes = (state._T.take(table.bodies, axis=0) @ table.axes)[:, :3].transpose(1, 2, 0)
    pairs = axes.take(table.pairs, axis=2)  # coordinate, end or way, capsule of the pair, pair
    gaps, first, second = nearest_points(pairs[:, 0, 0], pairs[:, 1, 0], pairs[:, 0, 1], pairs[:, 1, 1])
    distances = gaps - table.radii
    order = distances.argsort(kind="stable")[: max(count, int(np.count_nonzero(distances <= 0.0)))]
    frame = state._T[model.topology.link_bodies[state._links[0]]] @ model.link_placements[state._links[0]]
    points = (np.stack([first[:, order].T, second[:, order].T]) - frame[:3, 3]) @ frame[:3, :3]
    nearest = zip(order.tolist(), points[0], points[1], distances[order].tolist(), strict=True)
    names = table.names
    return [CollisionResult(names[i][0], names[i][1], p1, p2, distance) for i, p1, p2, distance in nearest]
