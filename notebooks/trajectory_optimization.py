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
# # Trajectory optimization on the RB-Y1
#
# The right hand is to go from below the left forearm to a pose above it, in 0.6 s, with the torso helping. The
# shortest way there leads through the forearm and asks more of the joints than they can give. We look for a motion
# that does neither, by gradients through kinematics, dynamics and distances. This is the second half of `rbydyn demo`.

# %%
# %matplotlib inline
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax import collision, planning, robots, viz
from rbydyn_jax.spatial import rpy, se3

# %% [markdown]
# ## The task
#
# At rest the knees are bent, and the left forearm is across the chest. The target is a full pose of the right hand,
# position and orientation.

# %%
model = robots.rby1a()
torso = [f"torso_{i}" for i in range(6)]
right_arm = [f"right_arm_{i}" for i in range(7)]
left_arm = [f"left_arm_{i}" for i in range(7)]
angles = dict(zip(torso, (0, 30, -60, 30, 0, 0), strict=True))
angles |= dict(zip(right_arm, (10, -10, 10, -70, 0, 0, 0), strict=True))
angles |= dict(zip(left_arm, (-30, 20, -60, -80, 0, 0, 0), strict=True))

q_start = np.zeros(model.nq)
for joint, angle in angles.items():
    q_start[model.tree.q_slices[model.joint_index(joint)]] = np.deg2rad(angle)
q_start = jnp.asarray(q_start)

R = rpy.to_matrix(jnp.deg2rad(jnp.array([0.0, -70.0, 35.0])))
target = se3.from_R_p(R, jnp.array([0.38, 0.16, 1.2]))
print("from", rb.link_pose(model, q_start, "ee_right")[:3, 3].round(3), "to", target[:3, 3], "m")

# %% [markdown]
# ## The motion
#
# Each joint follows a spline of degree 5 that starts and ends at rest. Its coefficients $z$ count displacements in a
# basis that is orthonormal under the integral of squared jerk, so that $|z|^2$ *is* the smoothness of the motion. The
# clamped ends need no constraint: every $z$ starts at `q_start` with velocity and acceleration zero.
#
# `optimize_trajectory` searches end configurations that reach the target, starts from the smoothest motion to the
# nearest one, and minimizes $|z|^2$ under the limits of position, velocity, acceleration and torque, and of the
# distances of the collision shapes: an augmented Lagrangian with Gauss-Newton steps. First without these limits,
# which gives the smoothest way to the target, then with them.

# %%
task = {"duration": 0.6, "joints": torso + right_arm}
unlimited = dict.fromkeys(("velocity_limit", "acceleration_limit", "effort_limit"), jnp.full(model.nv, jnp.inf))
heedless = planning.optimize_trajectory(
    rb.with_limits(model, **unlimited), q_start, "ee_right", target, **task, clearance=None
)
careful = planning.optimize_trajectory(model, q_start, "ee_right", target, **task, clearance=0.02)
print("solved:", bool(careful.solved), "in", int(careful.iterations), "steps; cost after each:")
print(careful.costs[: int(careful.iterations)].round(3))

# %% [markdown]
# ## Is it good?
#
# The result is measured anew at 801 instants, by `check_trajectory`, which knows nothing of the optimization.

# %%
before, after = (
    planning.check_trajectory(model, motion, "ee_right", target, points=801)
    for motion in (heedless.trajectory, careful.trajectory)
)
print(f"{'':22}{'before':>10}{'after':>10}")
for name in (
    "position_error",
    "orientation_error",
    "distance",
    "position_ratio",
    "velocity_ratio",
    "acceleration_ratio",
    "torque_ratio",
    "smoothness",
):
    print(f"{name:22}{float(getattr(before, name)):10.4g}{float(getattr(after, name)):10.4g}")

# %% [markdown]
# Distances are in metres, ratios are the largest value over its limit: above 1 means that the robot could not follow.
# The heedless motion goes 6 cm deep into the left forearm; which pair that is, the distances tell:

# %%
worst = int(jnp.argmin(before.distances))
pair = collision.nearest(model, before.samples.q[worst], 1).pair[0]
print("closest at", float(before.samples.times[worst]), "s:", collision.pairs(model).links[pair])

# %% [markdown]
# The careful one goes around, needs more jerk, and stays within every limit.

# %%
limb = [name for name in model.link_names if name.startswith(("link_right_arm", "ee_right"))]
figure = viz.plot_motion(
    model,
    careful.trajectory,
    after,
    "ee_right",
    target,
    before=before,
    moving_links=limb,
    title="RB-Y1 A: the right hand reaches around the left forearm",
)
figure

# %% [markdown]
# ## What must hold
#
# The last lines check the motion against plain `rnea` and the limits of the model, without the planner's own report.

# %%
at = after.samples
torques = jax.vmap(rb.rnea, in_axes=(None, 0, 0, 0))(model, at.q, at.v, at.a)
torques -= jax.vmap(rb.damping_forces, (None, 0))(model, at.v) + jax.vmap(rb.friction_forces, (None, 0))(model, at.v)
clearance = jax.vmap(collision.min_distance, in_axes=(None, 0))(model, at.q)
reached = rb.link_pose(model, at.q[-1], "ee_right")

assert not before.feasible() and before.distance < 0
assert after.feasible()
for x, limit in ((torques, model.effort_limit), (at.v, model.velocity_limit), (at.a, model.acceleration_limit)):
    assert (jnp.abs(x) <= (1.0 + 1e-4) * limit).all()
assert ((at.q >= model.position_lower) & (at.q <= model.position_upper)).all()
assert float(clearance.min()) > 0.0199
assert float(jnp.linalg.norm(reached[:3, 3] - target[:3, 3])) < 1e-3
assert (at.q[0] == q_start).all() and float(jnp.abs(at.v[-1]).max()) < 1e-9
