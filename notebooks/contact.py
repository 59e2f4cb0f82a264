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
# # Contact
#
# A box is pushed over the ground and slides to rest. Contacts are compliant: points of links that may touch a
# half-space, with the normal force of Hunt and Crossley and friction by bristles. They are functions of the state, so
# that the simulation is batched and differentiated like everything else.

# %%
# %matplotlib inline
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax import constraints

# %% [markdown]
# ## A box with four points of contact
#
# The box has 2 kg and a floating base: `q` is a quaternion (wxyz) and the position, `v` the twist in its own axes. To
# keep the tutorial short, the points are the corners of its lower face.

# %%
mass, size = 2.0, np.array([0.4, 0.3, 0.1])
inertia = mass / 12.0 * (np.sum(size**2) - size**2)
description = rb.RobotBuilder("box").link("box", mass, (0, 0, 0), tuple(inertia)).build_description()
box = rb.build_model(description, floating_base=True)
corners = [size / 2 * np.array([x, y, -1.0]) for x in (-1, 1) for y in (-1, 1)]


def ground(friction):
    return [constraints.Contact("box", corner, friction=friction, dissipation=2.0) for corner in corners]


q = jnp.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.05])  # it just touches the ground
v = jnp.zeros(6).at[3].set(1.0)  # 1 m/s forward


@jax.jit
def pushed(friction):
    return constraints.simulate(box, q, v, 0.6, 1e-3, contacts=ground(friction), method="semi_implicit_euler")


motion = pushed(0.4)
print("at rest after", round(float(motion.qs[-1, 4]), 4), "m")

# %% [markdown]
# ## The forces
#
# They are computed from the states, all instants in one `vmap`: the sum of the vertical ones settles at the weight, and
# while the box slides the horizontal ones are $\mu$ times that.


# %%
@jax.jit
@jax.vmap
def bearing(q, v, bristles):
    return constraints.contact_forces(box, q, v, ground(0.4), bristles).forces.sum(axis=0)


forces = bearing(motion.qs, motion.vs, motion.bristles)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.plot(motion.ts, motion.qs[:, 4], label="forward")
left.plot(motion.ts, motion.qs[:, 6], label="height")
left.set(xlabel="time [s]", ylabel="position [m]", title="the box")
right.plot(motion.ts, forces[:, 2], label="vertical")
right.plot(motion.ts, -forces[:, 0], label="against the motion")
right.axhline(9.81 * mass, color="0.5", linewidth=0.8, linestyle="--", label="weight")
right.set(xlabel="time [s]", ylabel="force [N]", title="what the ground gives", ylim=(-1, 40))
for axes in (left, right):
    axes.legend(frameon=False)
plt.show()

# %% [markdown]
# ## Many grounds, and the slope of the answer
#
# How far does it slide on ice and on rubber? `vmap` over the coefficient of friction runs all of them at once, and
# `jvp` brings the derivative along. A block that friction alone stops slides $v^2 / (2 \mu g)$; the box comes close to
# it, for its load shifts forward a little while it brakes.


# %%
@jax.jit
@jax.vmap
def distance(friction):
    return jax.jvp(lambda mu: pushed(mu).qs[-1, 4], (friction,), (jnp.ones(()),))


mus = jnp.linspace(0.2, 0.6, 5)
slid, slope = distance(mus)
print("friction     ", mus.round(2))
print("slides [m]   ", slid.round(3))
print("v^2/2 mu g   ", (1 / (2 * mus * 9.81)).round(3))
print("derivative   ", slope.round(3))
print("-v^2/2 mu^2 g", (-1 / (2 * mus**2 * 9.81)).round(3))

# %% [markdown]
# ## What must hold

# %%
resting = forces[-1]
assert abs(float(resting[2]) - 9.81 * mass) < 0.05
assert float(jnp.abs(motion.vs[-1]).max()) < 1e-2
sliding = (motion.ts > 0.1) & (motion.ts < 0.2)
ratio = np.asarray(-forces[:, 0] / forces[:, 2])[np.asarray(sliding)]
assert abs(ratio.mean() - 0.4) < 0.01
around = (distance(mus + 1e-4)[0] - distance(mus - 1e-4)[0]) / 2e-4
assert np.allclose(slope, around, rtol=1e-3, atol=0)
assert np.allclose(slid, 1 / (2 * mus * 9.81), rtol=0.1, atol=0)
