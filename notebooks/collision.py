# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Distances and contact points
#
# How far is a robot from itself, from a world, and from a terrain; which way leads out; and where does a body rest?
# All distances are signed, negative where shapes overlap, and differentiable.

# %%
# %matplotlib inline
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax import collision, robots
from rbydyn_jax.shapes import CapsuleGeometry

# %% [markdown]
# ## An arm and its world
#
# The arm has two links in a plane, a capsule on each. A world is made of obstacles.

# %%
arm = robots.two_link_arm()
q = jnp.array([0.2, 0.6])
ball = collision.sphere(jnp.array([0.75, 0.1, 0.0]), 0.12)
wall = collision.half_space(jnp.array([0.0, 0.6, 0.0]), jnp.array([0.0, -1.0, 0.0]))
world = collision.World(ball, wall)

found = collision.world_contacts(arm, q, world)
for distance, link, obstacle in zip(found.distance, found.link, found.obstacle, strict=True):
    print(arm.link_names[int(link)], "from", ("the ball", "the wall")[int(obstacle)], round(float(distance), 4), "m")

# %% [markdown]
# ## The field of distances
#
# `sdf` is the distance of points from the robot, here on a grid in the plane: one call for all of them. The nearest
# points of `world_contacts` are the ends of the lines.

# %%
x, y = np.meshgrid(np.linspace(-0.3, 1.3, 161), np.linspace(-0.5, 0.9, 141))
points = jnp.asarray(np.stack([x, y, 0 * x], axis=-1).reshape(-1, 3))
field = collision.sdf(arm, q, points).distance.reshape(x.shape)

figure, axes = plt.subplots(figsize=(6.4, 5), layout="constrained")
drawn = axes.contourf(x, y, field, levels=np.arange(-0.1, 0.9, 0.1), cmap="Blues_r")
axes.contour(x, y, field, levels=[0.0], colors="k")
axes.add_patch(plt.Circle((0.75, 0.1), 0.12, color="C1"))
axes.axhline(0.6, color="C1")
for a, b in zip(np.asarray(found.point_a), np.asarray(found.point_b), strict=True):
    axes.plot([a[0], b[0]], [a[1], b[1]], "C3o-", markersize=4)
figure.colorbar(drawn, label="distance from the arm [m]")
axes.set(xlabel="x [m]", ylabel="y [m]", aspect="equal", title="the arm, a ball and a wall")
plt.show()

# %% [markdown]
# ## The way out
#
# Steps along the gradient of the least distance lead away from both.


# %%
@jax.jit
def step(q):
    distance, slope = jax.value_and_grad(lambda q: collision.world_distances(arm, q, world).min())(q)
    return q + 0.05 * slope / jnp.linalg.norm(slope), distance


clear, distances = q, []
for _ in range(12):
    clear, distance = step(clear)
    distances.append(float(distance))
print("least distance [m]:", np.round(distances[::3], 3))

# %% [markdown]
# ## A ball in a valley
#
# A height map is a surface of triangles. `contact_points` tells where a shape can touch: a ball in a valley has points
# on both sides of it. Hard contact, `simulate(..., method="implicit", world=...)`, has forces at these points.

# %%
radius, slope = 0.2, 0.5
across = np.linspace(-1.0, 1.0, 9)
valley = collision.height_map(
    jnp.asarray(np.tile(slope * np.abs(across)[:, None], (1, 9))), 0.25, jnp.eye(4).at[:2, 3].set(-1.0)
)
builder = rb.RobotBuilder("ball").link("world").link("body", 1.0, (0, 0, 0), (0.016, 0.016, 0.016))
ball = rb.build_model(builder.floating("free", "world", "body").collision("body", CapsuleGeometry(0.0, radius)))
lowest = radius * np.hypot(1.0, slope)  # where it touches both sides
rest = jnp.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, lowest])
touched = collision.contact_points(ball, rest, collision.World(valley))
print("distances [m]:", np.abs(touched.distance).max().round(9))
normals = np.unique(np.asarray(touched.normal).round(6), axis=0)
print("normals:", *(n.round(3) + 0.0 for n in normals))

figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.fill_between(across, slope * np.abs(across), -0.1, color="0.85")
axes.add_patch(plt.Circle((0.0, lowest), radius, fill=False))
at = np.asarray(touched.point)
axes.quiver(at[:, 0], at[:, 2], *np.asarray(touched.normal)[:, [0, 2]].T, color="C3", scale=8)
axes.set(xlabel="x [m]", ylabel="height [m]", aspect="equal", ylim=(-0.1, 0.5), title="contact points and normals")
plt.show()

# %% [markdown]
# ## What must hold

# %%
gaps = jnp.linalg.norm(found.point_a - found.point_b, axis=1)
assert np.allclose(gaps, np.abs(found.distance), atol=1e-9)
assert distances[-1] > distances[0]
want = np.array([[-slope, 0.0, 1.0], [slope, 0.0, 1.0]]) / np.hypot(1.0, slope)
assert np.allclose(normals, want, atol=1e-5)
assert np.abs(touched.distance).max() < 1e-6
