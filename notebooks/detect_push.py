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
# # Detect a push
#
# An arm that measures its joint torques feels what touches it. Here an arm moves under control and is pushed; from
# noisy velocities and torques, and a model that is a little wrong, we find when it was pushed, on which link, and how
# hard. No accelerations are needed: the momentum observer integrates what is known.

# %%
# %matplotlib inline
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax import estimation, robots
from rbydyn_jax import identification as idn

arm = robots.panda_like()
period, duration = 2e-3, 1.5
t = jnp.arange(0.0, duration, period)

# %% [markdown]
# ## What happens
#
# The arm follows sines with a computed torque; the real one differs by 1 % from its model in each inertial parameter.
# Half a second after the start something pushes one of two links, 10 cm beside the axis of its joint, for 0.4 s, with
# 10 to 30 N. The simulation is a `lax.scan`, and sixty pushes are one `vmap`.

# %%
middle = 0.5 * (arm.position_lower + arm.position_upper)
rates, phases = jnp.linspace(1.5, 3.0, 7), jnp.arange(7.0)
wanted = lambda t: middle + 0.4 * jnp.sin(rates * t + phases)  # noqa: E731
slope = jax.jacfwd(wanted)
pushed_links, point = ("link4", "link6"), jnp.array([0.1, 0.0, 0.0])
begin, end = 0.5, 0.9


def trial(key, link, size):
    keys = jax.random.split(key, 5)
    numbers = idn.parameters(arm, ("inertia",))
    real = idn.with_parameters(arm, numbers * (1.0 + 0.01 * jax.random.normal(keys[0], numbers.shape)), ("inertia",))
    direction = jnp.array([0.0, 1.0, 0.0]) + 0.3 * jax.random.normal(keys[1], (3,))
    force = size * direction / jnp.linalg.norm(direction)  # in the axes of the link

    def tick(state, t):
        q, v = state
        rate = jax.jacfwd(slope)(t) + 400.0 * (wanted(t) - q) + 40.0 * (slope(t) - v)
        tau = idn.motor_torques(arm, q, v, rate)
        arms = [rb.point_jacobian(real, q, x, point).T @ rb.link_pose(real, q, x)[:3, :3] for x in pushed_links]
        touch = jnp.stack(arms)[link] @ force
        outside = jnp.where((t >= begin) & (t < end), touch, 0.0)
        told = (q, v, tau, outside)
        lost = rb.damping_forces(real, v) + rb.friction_forces(real, v)
        v = v + period * rb.aba(real, q, v, tau + lost + outside)
        return (q + period * v, v), told

    start = (wanted(0.0), slope(0.0))
    q, v, tau, outside = jax.lax.scan(tick, start, t)[1]
    noisy = v + 0.001 * jax.random.normal(keys[2], v.shape), tau + 0.05 * jax.random.normal(keys[3], tau.shape)
    return q, outside, force, estimation.external_torques(arm, q, *noisy, period, gain=30.0)


count = 60
which = jnp.arange(count) % 2
sizes = jnp.linspace(10.0, 30.0, count)
keys = jax.random.split(jax.random.key(0), count)
q, outside, force, residual = jax.jit(jax.vmap(trial))(keys, which, sizes)
print(residual.shape[0], "pushes,", residual.shape[1], "samples each")

# %% [markdown]
# ## One push
#
# The observer returns the external torque of each joint through a low pass of 30 rad/s. What is left before the push
# is what the model does not know.

# %%
shown = count - 1
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
for joint, color in ((0, "tab:blue"), (1, "tab:orange"), (3, "tab:green")):
    axes.plot(t, outside[shown, :, joint], color=color, linestyle=":")
    axes.plot(t, residual[shown, :, joint], color=color, label=arm.joint_names[joint])
axes.set(xlabel="time [s]", ylabel="external torque [N m]", title="dotted: what it is; solid: what is observed")
axes.legend(frameon=False)
plt.show()

# %% [markdown]
# ## When
#
# Thresholds come from motions without a push: half as much again as the largest residual of twenty trials before it.
# The other forty tell how good they are.

# %%
free = jnp.abs(residual[:, (t > 0.15) & (t < begin)])
threshold = 1.5 * free[:20].max((0, 1))
alarms = (jnp.abs(residual[20:]) > threshold).any(2)
before, during = alarms[:, (t > 0.15) & (t < begin)], alarms[:, (t >= begin) & (t < end)]
found = during.any(1)
delays = np.asarray(jnp.argmax(during, 1) * period)[np.asarray(found)]
print(f"false alarms: {int(before.any(1).sum())} of 40; found: {int(found.sum())} of 40")
print(f"delay: half within {1e3 * np.median(delays):.0f} ms, all within {1e3 * delays.max():.0f} ms")

# %% [markdown]
# ## Where, and how hard
#
# The joints beyond the touched link feel nothing: the last one that does tells the body. With the link and the point
# known, the force is the one nearest to the torques. Four joints before the elbow hardly tell a force there, and an
# error of the model counts; the six before the wrist do. Both are read 0.3 s after the beginning, when the low pass has
# settled.

# %%
at = int((begin + 0.3) / period)
bodies = jax.vmap(lambda r: estimation.touched_body(arm, r, threshold))(residual[:, at])
told = [arm.link_names[arm.tree.principal_links[int(b)]] if int(b) >= 0 else "none" for b in bodies]
truth = [pushed_links[k] for k in which]
hits = {link: sum(a == b == link for a, b in zip(told, truth, strict=True)) for link in pushed_links}
print("the right link, of 30 pushes each:", hits)


@jax.jit
@jax.vmap
def felt(q, residual):
    return jnp.stack([estimation.contact_force(arm, q, residual, x, point).force for x in pushed_links])


found_force = felt(q[:, at], residual[:, at])[jnp.arange(count), which]
in_world = jnp.stack([jax.vmap(lambda q, x=x: rb.link_pose(arm, q, x)[:3, :3])(q[:, at]) for x in pushed_links])
true_force = jnp.einsum("tij,tj->ti", in_world[which, jnp.arange(count)], force)
ratio = jnp.linalg.norm(found_force - true_force, axis=1) / sizes
for k, link in enumerate(pushed_links):
    print(f"{link}: error of the force, median {100 * float(jnp.median(ratio[which == k])):.0f} %")

# %% [markdown]
# ## What must hold

# %%
assert not before.any() and found.all()
assert delays.max() < 0.03
assert min(hits.values()) >= 28
assert float(jnp.median(ratio[which == 1])) < 0.1
