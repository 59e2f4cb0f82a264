"""Friction and wrench cones: faces and rays describe one cone, and that is what its definition says."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import nnls

from rbydyn_jax import ShapeError
from rbydyn_jax.spatial import cones

SIZES, FRICTION = (0.11, 0.07), 0.7


@pytest.mark.float32
def test_rays_lie_on_the_faces(dtype):
    sizes = jnp.array(SIZES, dtype)
    for faces, rays in (
        (cones.friction_cone_faces(FRICTION), cones.friction_cone_rays(FRICTION)),
        (cones.wrench_cone_faces(sizes, FRICTION), cones.wrench_cone_rays(sizes, FRICTION)),
    ):
        products = np.asarray(faces, float) @ np.asarray(rays, float)
        eps = 8 * float(jnp.finfo(dtype).eps)
        assert products.max() <= eps
        on = np.abs(products) <= eps
        assert on.any(axis=1).all() and (on.sum(axis=0) >= len(faces[0]) - 1).all()  # a ray is an edge


def test_forces_within_the_pyramid_keep_to_the_law_of_friction():
    """|tangential| <= mu normal on its edges, which bound it."""
    rays = np.asarray(cones.friction_cone_rays(FRICTION), float)
    assert np.allclose(np.linalg.norm(rays[:2], axis=0), FRICTION * rays[2], rtol=1e-6)


def test_a_wrench_is_in_the_cone_if_forces_at_the_corners_make_it():
    """Non-negative least squares of forces in the corners' pyramids, built here, against the faces."""
    mu, rng = FRICTION / np.sqrt(2), np.random.default_rng(0)
    columns = []
    for x, y in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        for fx, fy in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            f = np.array([mu * fx, mu * fy, 1.0])
            columns.append(np.concatenate([np.cross([x * SIZES[0], y * SIZES[1], 0.0], f), f]))
    rays = np.array(columns).T
    F = np.asarray(cones.wrench_cone_faces(jnp.array(SIZES), FRICTION), float)
    inside = 0
    for _ in range(300):
        weights = rng.exponential(size=16) - rng.choice([0.0, 0.35])
        wrench = rays @ weights
        is_made = nnls(rays, wrench)[1] < 1e-6
        assert is_made == bool((F @ wrench <= 1e-6).all())
        inside += is_made
    assert 60 < inside < 290


def test_wrong_arguments():
    with pytest.raises(ShapeError, match="half_sizes"):
        cones.wrench_cone_faces(jnp.zeros(3), 0.5)
    with pytest.raises(ShapeError, match="friction"):
        cones.friction_cone_faces(jnp.zeros(2))


@pytest.mark.parametrize("kind", [jnp.float32, jnp.float16])
def test_the_dtype_is_that_of_the_arguments(kind):
    sizes, friction = jnp.array(SIZES, kind), jnp.array(FRICTION, kind)
    for cone in (cones.friction_cone_faces, cones.friction_cone_rays):
        assert cone(friction).dtype == kind
    for cone in (cones.wrench_cone_faces, cones.wrench_cone_rays):
        assert cone(sizes, friction).dtype == kind
