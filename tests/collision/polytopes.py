"""Random shapes, placed as pair functions are given them, and the same for coal."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from rbydyn_jax.io import BoxGeometry, CapsuleGeometry, ConvexHullGeometry, CylinderGeometry
from rbydyn_jax.shapes.convex_hull import of_one_size


def geometries(kind: str, count: int, rng: np.random.Generator) -> list[Any]:
    """Capsules (a fifth of them spheres), boxes, cylinders, or hulls of 5 to 16 points."""
    sizes = rng.uniform(0.05, 0.4, (count, 3))
    if kind == "convex_hull":
        points = [rng.normal(size=(n, 3)) for n in rng.integers(5, 17, count)]
        return [
            ConvexHullGeometry(s * x / np.linalg.norm(x, axis=1, keepdims=True))
            for s, x in zip(sizes, points, strict=True)
        ]
    if kind == "box":
        return [BoxGeometry(2 * s) for s in sizes]
    if kind == "capsule":
        return [CapsuleGeometry(2 * s[2] * (k % 5 > 0), s[0]) for k, s in enumerate(sizes)]
    return [CylinderGeometry(2 * s[2], s[0]) for s in sizes]


def poses(count: int, rng: np.random.Generator, spread: float = 0.6) -> np.ndarray:
    """Poses (count, 4, 4), a quarter of them turned by right angles, so that edges and faces are parallel."""
    turned = Rotation.random(count, rng=rng).as_matrix()
    right = np.round(Rotation.from_euler("xyz", 90 * rng.integers(0, 4, (count, 3)), degrees=True).as_matrix())
    T = np.tile(np.eye(4), (count, 1, 1))
    T[:, :3, :3] = np.where((np.arange(count) % 4 == 0)[:, None, None], right, turned)
    T[:, :3, 3] = rng.uniform(-spread, spread, (count, 3))
    return T


def placed(shapes: list[Any], T: np.ndarray) -> Any:
    """The shapes in world coordinates."""
    count, is_hull = len(shapes), isinstance(shapes[0], ConvexHullGeometry)
    hulls = {id(g): g.on_link(np.eye(4)) for g in {id(g): g for g in shapes}.values()} if is_hull else {}
    singles = of_one_size([hulls[id(g)] if is_hull else g.on_link(t) for g, t in zip(shapes, T, strict=True)])
    rows = jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *singles)
    if is_hull:
        moved = [*T[:, :3, 3].T, *(T[:, i, k] for k in range(3) for i in range(3))]
    else:
        leaves = jax.tree.leaves(rows)[: 1 if isinstance(shapes[0], CapsuleGeometry) else 2]
        moved = list(np.concatenate([x.reshape(count, -1) for x in leaves], axis=1).T)
    return rows.gathered(np.arange(count), [jnp.asarray(x) for x in moved])


def coal_shape(coal: Any, shape: Any) -> Any:
    """The same shape for coal."""
    if isinstance(shape, ConvexHullGeometry):
        points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
        points.extend(list(shape.vertices))
        triangles.extend([coal.Triangle(*map(int, face)) for face in ConvexHull(shape.vertices).simplices])
        return coal.Convex(points, triangles)
    if isinstance(shape, BoxGeometry):
        return coal.Box(*shape.size)
    return getattr(coal, type(shape).__name__.removesuffix("Geometry"))(shape.radius, shape.length)


def coal_pairs(coal: Any, a: list[Any], T_a: np.ndarray, b: list[Any], T_b: np.ndarray) -> list[tuple[Any, ...]]:
    """The arguments of `coal.distance` but the last two."""
    made = {id(g): coal_shape(coal, g) for g in {id(g): g for g in (*a, *b)}.values()}
    sides = [
        [(made[id(g)], coal.Transform3s(t[:3, :3], t[:3, 3])) for g, t in zip(shapes, T, strict=True)]
        for shapes, T in ((a, T_a), (b, T_b))
    ]
    return [(*x, *y) for x, y in zip(*sides, strict=True)]


def coal_distances(coal: Any, pairs: list[tuple[Any, ...]]) -> np.ndarray:
    """Signed distances, with tolerances near rounding."""
    request = coal.DistanceRequest()
    request.enable_signed_distance, request.gjk_tolerance, request.epa_tolerance = True, 1e-14, 1e-12
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    return np.array([coal.distance(*pair, request, coal.DistanceResult()) for pair in pairs])
