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
# # Timing
#
# A path says where a robot goes, a timing when. The fastest timing uses a limit at every moment; with limits of jerk it
# is a little slower, and gentle to the robot.

# %%
# %matplotlib inline
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax import planning, robots

# %% [markdown]
# ## A path through waypoints
#
# The limits of velocity, acceleration and torque are those of the model.

# %%
arm = robots.two_link_arm()
waypoints = jnp.array([[0.0, 0.0], [0.9, -0.6], [0.4, 0.8], [1.2, 0.3]])
fast = planning.time_parametrize(arm, waypoints)
gentle = planning.time_parametrize(arm, waypoints, jerk_limit=jnp.array([150.0, 150.0]))
print("duration:", round(float(fast.duration), 3), "seconds; with limits of jerk:", round(float(gentle.duration), 3))


# %%
def shares(timed):
    """Times, and the largest share of each limit that is used then."""
    t = jnp.linspace(0.0, timed.duration, 501)
    at = timed.evaluate(t)
    tau = jax.vmap(rb.rnea, (None, 0, 0, 0))(arm, at.q, at.v, at.a)
    pairs = ((at.v, arm.velocity_limit), (at.a, arm.acceleration_limit), (tau, arm.effort_limit))
    return t, [jnp.abs(x / limit[None]).max(axis=1) for x, limit in pairs]


figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharey=True)
for axes, timed, title in zip(panels, (fast, gentle), ("the fastest", "with limits of jerk"), strict=True):
    t, used = shares(timed)
    for share, label in zip(used, ("velocity", "acceleration", "torque"), strict=True):
        axes.plot(t, share, label=label)
    axes.set(xlabel="time [s]", title=title)
panels[0].set(ylabel="share of the limit")
panels[0].legend(frameon=False)
plt.show()

# %% [markdown]
# ## Where should the waypoints be?
#
# The duration has a gradient: a waypoint that may move goes where the path takes less time.

# %%
slope = jax.grad(lambda x: planning.time_parametrize(arm, x).duration)(waypoints)
better = waypoints.at[1:3].add(-0.03 * slope[1:3])
shorter = planning.time_parametrize(arm, better).duration
print("after one step:", round(float(shorter), 3), "seconds")

# %% [markdown]
# ## From one point to another
#
# Without a path, `jerk_limited_profile` moves each joint as fast as its limits allow, all of them ending together.

# %%
one = jnp.ones(3)
profile = planning.jerk_limited_profile(
    jnp.zeros(3), jnp.array([1.0, -0.4, 0.1]), one, 2.0 * one, 8.0 * one, start_velocity=jnp.array([0.0, 0.5, 0.0])
)
t = jnp.linspace(0.0, profile.duration, 301)
at = profile.evaluate(t)
print("duration:", round(float(profile.duration), 3), "seconds")
figure, panels = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
for axes, x, name in zip(
    panels,
    (at.position, at.velocity, at.acceleration),
    ("position [rad]", "velocity [rad/s]", "acceleration [rad/s²]"),
    strict=True,
):
    axes.plot(t, x)
    axes.set(xlabel="time [s]", ylabel=name)
plt.show()

# %% [markdown]
# ## What must hold

# %%
for timed in (fast, gentle):
    assert bool(timed.solved)
    assert max(float(x.max()) for x in shares(timed)[1]) < 1.001
assert jnp.stack(shares(fast)[1]).max(axis=0).mean() > 0.95  # nearly always at a limit
assert fast.duration < gentle.duration and shorter < fast.duration
assert np.allclose(at.position[-1], [1.0, -0.4, 0.1]) and np.allclose(at.velocity[-1], 0.0)
assert np.abs(at.velocity).max() < 1 + 1e-9 and np.abs(at.acceleration).max() < 2 + 1e-9
