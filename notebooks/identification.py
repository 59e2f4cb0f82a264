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
# # Identification
#
# What CAD says of a robot's masses is rarely what its torques show. Here an arm carries something that its model does
# not know, and has friction. We look for a motion that shows it, "measure" the torques with noise, fit the parameters,
# and see whether the new model predicts another motion.

# %%
# %matplotlib inline
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax import identification as idn
from rbydyn_jax import planning, robots

arm = robots.panda_like()
payload = (1.3, jnp.array([0.02, 0.0, 0.12]))  # mass [kg] and centre [m]: what we are not told
real = rb.attach_payload(rb.with_friction(arm, 0.6), "link7", *payload)

# %% [markdown]
# ## What torques can tell at all
#
# A body has ten inertial parameters, and the torques of an arm do not depend on all of them. `base_parameters` finds
# the combinations that can be told apart: for an arm of this arrangement, 43 of 70.

# %%
found = idn.base_parameters(arm)
print(
    found.rank, "of", len(found.names), "parameters; without any influence:", ", ".join(found.unobservable[:4]), "..."
)

# %% [markdown]
# ## A motion that shows them
#
# The better the condition number of the regressor along the motion, the less the noise matters. The search keeps the
# limits of position, velocity, acceleration and torque.

# %%
exciting = idn.exciting_trajectory(arm, 4.0, terms=("inertia", "friction"), iterations=4, population=16)
at = planning.sample_trajectory(exciting.trajectory, 400)
print("feasible:", bool(exciting.feasible))

# %% [markdown]
# ## Measure and fit
#
# Torques of the real arm, with noise of 0.1 N m. `payload="link7"` says that the last link alone carries something
# unknown; friction is fitted with it.

# %%
motor = jax.jit(jax.vmap(idn.motor_torques, (None, 0, 0, 0)))
measured = motor(real, at.q, at.v, at.a) + 0.1 * jax.random.normal(jax.random.key(0), (400, 7))
data = idn.TrajectoryData(at.q, at.v, at.a, measured)
fitted = idn.fit(arm, data, terms=("inertia", "friction"), payload="link7")
m, mx, my, mz = (float(x) for x in fitted.payload[:4])
print(f"payload: {m:.2f} kg at ({mx / m:.2f}, {abs(my / m):.2f}, {mz / m:.2f}) m")
print("friction [N m]:", fitted.model.friction.round(1))

# %% [markdown]
# ## Does it predict?
#
# Another motion, which the fit has not seen: before the fit the model is wrong by the payload and the friction, after
# it by the noise.

# %%
t = jnp.linspace(0.0, 3.0, 300)
middle = 0.5 * (arm.position_lower + arm.position_upper)
phase = jnp.arange(7.0)
swing = lambda t: middle + 0.4 * jnp.sin(2.0 * t + phase)  # noqa: E731
q, v, a = jax.vmap(swing)(t), jax.vmap(jax.jacfwd(swing))(t), jax.vmap(jax.jacfwd(jax.jacfwd(swing)))(t)
truth, before, after = (motor(robot, q, v, a) for robot in (real, arm, fitted.model))
error = {name: float(jnp.sqrt(jnp.mean((x - truth) ** 2))) for name, x in (("before", before), ("after", after))}
print(f"error before the fit {error['before']:.2f} N m, after it less than 0.05: {error['after'] < 0.05}")

figure, all_axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
for axes, joint in zip(all_axes, (1, 3, 5), strict=True):
    axes.plot(t, truth[:, joint], color="0.6", linewidth=4, label="real")
    axes.plot(t, before[:, joint], "--", color="tab:orange", label="before the fit")
    axes.plot(t, after[:, joint], color="tab:blue", label="after")
    axes.set(title=arm.joint_names[joint], xlabel="time [s]")
all_axes[0].set_ylabel("torque [N m]")
all_axes[0].legend(frameon=False)
plt.show()

# %% [markdown]
# ## What must hold

# %%
assert found.rank == 43
assert bool(exciting.feasible) and all(fitted.consistent.values())
assert abs(m - payload[0]) < 0.05
assert np.allclose(np.array([mx, my, mz]) / m, payload[1], rtol=0, atol=0.01)
assert np.allclose(fitted.model.friction, 0.6, rtol=0, atol=0.05)
assert error["after"] < 0.05 < 0.1 * error["before"]
