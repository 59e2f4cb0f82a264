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
# # Quickstart
#
# A robot, its kinematics, its dynamics and its distances to itself, in ten cells. Everything is a pure function of the
# model and the state: there is no object that remembers the last configuration.
#
# JAX computes in float32 unless told otherwise. For the comparisons below we ask for float64, which has to happen
# before anything else; the library itself never changes a setting of JAX.

# %%
# %matplotlib inline
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax import collision, robots, viz

# %% [markdown]
# ## A robot
#
# The RB-Y1 A is built in. `rb.load_urdf("robot.urdf")` gives the same kind of object from a file; what the reader
# corrected or did not use is in `model.report`.

# %%
model = robots.rby1a()
print(model)
print("joints:", ", ".join(model.joint_names))
print("mass:  ", float(rb.total_mass(model)), "kg")

# %% [markdown]
# A configuration `q` has one number per joint here, in the order of `model.joint_names`. (Joints with quaternions have
# more coordinates than velocities; `rb.integrate` and `rb.difference` know the way between the two.)

# %%
q = rb.random_configuration(model, jax.random.key(0))  # inside the limits
v = 0.5 * jax.random.normal(jax.random.key(1), (model.nv,))
a = 2.0 * jax.random.normal(jax.random.key(2), (model.nv,))

# %% [markdown]
# `viz.draw_robot` draws a configuration by its collision shapes: all joints at zero, and `q`. `viz.show(model, q)`
# opens the robot in a browser, with sliders.

# %%
figure = plt.figure(figsize=(8, 4.4), layout="constrained")
for k, (name, at) in enumerate({"all joints at 0": jnp.zeros(model.nq), "q": q}.items()):
    axes = figure.add_subplot(1, 2, k + 1, projection="3d")
    viz.draw_robot(axes, model, at, color="tab:blue", alpha=0.35)
    axes.set(title=name, xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
plt.show()

# %% [markdown]
# ## Kinematics
#
# `link_pose` is $T_{\text{world},\text{link}}$, which takes coordinates in the link to coordinates in the world; `fk`
# gives all links at once. Twists and Jacobians are angular first, $[\omega; v]$, and by default measured at the link's
# origin in world axes (`frame="world_aligned"`).

# %%
T = rb.link_pose(model, q, "ee_right")
J = rb.jacobian(model, q, "ee_right")
twist = rb.link_velocity(model, q, v, "ee_right")
print("position of the right hand [m]:", T[:3, 3].round(3))
print("its twist [rad/s, m/s]:        ", twist.round(3))

# %% [markdown]
# The twist is $J v$, and its linear half is the rate of the position. JAX differentiates the pose directly, which
# makes an independent check: `jvp` is the derivative along $v$.

# %%
_, rate = jax.jvp(lambda q: rb.link_pose(model, q, "ee_right")[:3, 3], (q,), (v,))
print("J v - twist:       ", float(jnp.abs(J @ v - twist).max()))
print("dp/dt - its linear:", float(jnp.abs(rate - twist[3:]).max()))

# %% [markdown]
# ## Dynamics
#
# The equations of motion $M(q)\,a + h(q, v) = \tau$ in both directions: `rnea` gives the torques $\tau$ for an
# acceleration, `aba` the acceleration for torques, both in time proportional to the number of joints.

# %%
tau = rb.rnea(model, q, v, a)
M, h = rb.crba(model, q), rb.bias_forces(model, q, v)
print("largest torque [N m]:", float(jnp.abs(tau).max()))
print("|M a + h - tau|:     ", float(jnp.abs(M @ a + h - tau).max()))
print("|aba(tau) - a|:      ", float(jnp.abs(rb.aba(model, q, v, tau) - a).max()))

# %% [markdown]
# ## Distances
#
# The collision bodies of the RB-Y1 are capsules. `collision.pairs` tells which of them are to be kept apart, and
# `signed_distances` how far they are; negative means that they overlap.

# %%
ready = jnp.zeros(model.nq)
names = collision.pairs(model).links
found = collision.nearest(model, ready, 3)
for distance, pair in zip(found.distance, found.pair, strict=True):
    print(f"{' and '.join(names[pair])}: {1e3 * float(distance):.1f} mm")

# %% [markdown]
# ## A robot of your own
#
# Robots can be built in Python too. A 2 kg point mass on a bar of half a metre, held level, weighs
# $m g l = 2 \cdot 9.81 \cdot 0.5$ N m on its hinge.

# %%
builder = rb.RobotBuilder("pendulum").link("base").link("bob", 2.0, (0, 0, -0.5))
builder.continuous("hinge", "base", "bob", axis=(0, 1, 0))
pendulum = rb.build_model(builder.build_description())
moment = float(jnp.abs(rb.gravity_forces(pendulum, jnp.array([jnp.pi / 2]))[0]))
print(moment, "N m")

# %% [markdown]
# ## Mistakes
#
# Wrong names and shapes are refused before anything is computed, and the message says what to do.

# %%
for mistake in (lambda: rb.link_pose(model, q, "ee_rigth"), lambda: rb.gravity_forces(model, jnp.zeros((10, 24)))):
    try:
        mistake()
    except rb.RbydynError as error:
        print(f"{type(error).__name__}: {error}")

# %% [markdown]
# ## What must hold

# %%
assert np.allclose(J @ v, twist, rtol=0, atol=1e-12 * float(jnp.abs(twist).max()))
assert np.allclose(rate, twist[3:], rtol=0, atol=1e-12)
assert np.allclose(M @ a + h, tau, rtol=0, atol=1e-12 * float(jnp.abs(tau).max()))
assert np.allclose(rb.aba(model, q, v, tau), a, rtol=0, atol=1e-9 * float(jnp.abs(a).max()))
assert float(found.distance[0]) > 0.0 and bool((jnp.diff(found.distance) >= 0).all())
assert abs(moment - 9.81) < 1e-12
