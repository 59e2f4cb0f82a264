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
# # Inverse kinematics
#
# Which configuration brings a hand to a place? An arm with four joints in a plane has infinitely many for a point. We
# choose one of them by a cost, many at once, and differentiate the choice.

# %%
# %matplotlib inline
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax.planning import ConfigurationGoal, PositionGoal, SoftGoal, solve_ik

# %% [markdown]
# ## The arm

# %%
lengths = [0.5, 0.4, 0.3, 0.2]
builder, before, x = rb.RobotBuilder("planar").link("base"), "base", 0.0
for k, length in enumerate(lengths):
    builder.link(f"l{k}", 1.0, (length / 2, 0, 0), (0.001, 0.01, 0.01))
    builder.revolute(f"j{k}", before, f"l{k}", xyz=(x, 0, 0), axis=(0, 0, 1), lower=-2.5, upper=2.5)
    before, x = f"l{k}", length
builder.link("tool").fixed("mount", before, "tool", xyz=(x, 0, 0))
arm = rb.build_model(builder.build_description())

# %% [markdown]
# ## Many points in one call
#
# A leading axis is a batch of problems. The cost is a posture: beside the goal, the joints are to be near it.

# %%
turns = jnp.linspace(-0.6, 1.2, 8)
points = jnp.stack([0.9 * jnp.cos(turns), 0.9 * jnp.sin(turns), 0.0 * turns], axis=1)
posture = jnp.array([0.3, 0.5, 0.5, 0.5])


@jax.jit
def solutions(points, posture, weight):
    cost = SoftGoal(ConfigurationGoal(posture), weight)
    return solve_ik(arm, goals=[PositionGoal("tool", points)], costs=[cost])


even, stiff = jnp.ones(4), jnp.array([1.0, 1.0, 1.0, 100.0])  # the last joint is to stay
found, other = solutions(points, posture, even), solutions(points, posture, stiff)
print("solved:", int(found.solved.sum()), "and", int(other.solved.sum()), "of", len(points))
print("last joint [rad]:", found.q[:, 3].round(3), "or", other.q[:, 3].round(3))

# %%
figure, panels = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
links = [f"l{k}" for k in range(4)] + ["tool"]
for axes, result, title in zip(panels, (found, other), ("equal weights", "the last joint held"), strict=True):
    for q in result.q:
        joints = np.array([rb.link_pose(arm, q, link)[:2, 3] for link in links])
        axes.plot(joints[:, 0], joints[:, 1], "o-", markersize=3)
    axes.plot(points[:, 0], points[:, 1], "k+")
    axes.set(xlabel="x [m]", aspect="equal", title=title)
panels[0].set(ylabel="y [m]")
plt.show()

# %% [markdown]
# ## The slope of the choice
#
# How do the joints change with the posture that is asked for? Derivatives are those of the smallest cost: at the goal
# the hand stays where it is, so that $J\,dq = 0$.


# %%
@jax.jit
def slopes(posture):
    start = jnp.full(4, 0.5)
    place, weights = rb.link_pose(arm, start, "tool")[:3, 3], jnp.array([1.0, 2.0, 0.5, 3.0])

    def chosen(posture):
        cost = SoftGoal(ConfigurationGoal(posture), weights)
        return solve_ik(arm, goals=[PositionGoal("tool", place)], costs=[cost], q0=start).q

    return chosen(posture), jax.jacfwd(chosen)(posture)


q, by_posture = slopes(jnp.array([0.3, 0.3, -0.2, 0.9]))
print(np.round(by_posture, 3) + 0.0)

# %% [markdown]
# ## What must hold

# %%
tips = jax.vmap(lambda q: rb.link_pose(arm, q, "tool")[:3, 3])
for result in (found, other):
    assert bool(result.solved.all())
    assert np.abs(tips(result.q) - points).max() < 1e-5
assert np.abs(other.q[:, 3] - 0.5).max() < np.abs(found.q[:, 3] - 0.5).max()
J = rb.jacobian(arm, q, "tool")[3:5]
assert np.abs(by_posture).max() > 0.5 and np.abs(J @ by_posture).max() < 1e-2
