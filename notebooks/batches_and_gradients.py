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
# # Batches and gradients
#
# Every algorithm of the library is written for one robot in one configuration. `jax.vmap` turns it into a batch over
# configurations, over robots, or over both, and `jax.grad` differentiates it with respect to any number that goes in:
# the configuration, but also every mass, length and limit of the robot.

# %%
# %matplotlib inline
import time

import jax

jax.config.update("jax_enable_x64", True)

import equinox as eqx
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax import collision, robots

model = robots.rby1a()

# %% [markdown]
# ## Many configurations
#
# Where can the right hand go, and what does the shoulder carry there? `in_axes=(None, 0)` says: one robot, many
# configurations. A batch of 4096 takes milliseconds once it is compiled.


# %%
@jax.jit
def survey(model, q):
    hand = jax.vmap(lambda q: rb.link_pose(model, q, "ee_right")[:3, 3])(q)
    torque = jax.vmap(rb.gravity_forces, in_axes=(None, 0))(model, q)
    clearance = jax.vmap(collision.min_distance, in_axes=(None, 0))(model, q)
    return hand, torque, clearance


keys = jax.random.split(jax.random.key(0), 4096)
q = jax.vmap(rb.random_configuration, in_axes=(None, 0))(model, keys)
hand, torque, clearance = jax.block_until_ready(survey(model, q))
started = time.perf_counter()
jax.block_until_ready(survey(model, q))
print(f"{1e3 * (time.perf_counter() - started):.1f} ms for {len(q)} configurations")
print(f"{100 * float((clearance > 0).mean()):.0f} % of them are free of self-collision")
print("the hand reaches from", hand.min(axis=0).round(2), "to", hand.max(axis=0).round(2), "m")

# %%
columns = [model.tree.v_slices[model.joint_index(name)].start for name in model.joint_names if "right_arm" in name]
load = jnp.abs(torque[:, columns]).max(axis=1)
free = clearance > 0
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
shown = left.scatter(hand[free, 0], hand[free, 2], c=load[free], s=5, cmap="viridis")
figure.colorbar(shown, ax=left, label="largest torque in the arm [N m]")
left.set(xlabel="x [m]", ylabel="z [m]", aspect="equal", title="where the right hand can be, from the side")
right.hist(1e3 * clearance, bins=60, color="tab:blue")
right.axvline(0, color="tab:red", linewidth=1)
right.set(xlabel="distance of the nearest pair [mm]", ylabel="configurations", title="below 0 the robot touches itself")
plt.show()

# %% [markdown]
# ## Many robots
#
# The masses and lengths of a model are inputs like any other, so a batch can run over robots as well. Here the right
# hand carries payloads of 0 to 5 kg; the program is compiled once for all of them. Torque is linear in the mass, which
# the result confirms.

# %%
columns = jnp.array(columns)


def holding(mass):
    return rb.gravity_forces(rb.attach_payload(model, "ee_right", mass), q[0])[columns]


masses = jnp.linspace(0.0, 5.0, 101)
holding_torques = jax.vmap(holding)(masses)
print("torques with 0 kg [N m]:", holding_torques[0].round(2))
print("torques with 5 kg [N m]:", holding_torques[-1].round(2))

# %% [markdown]
# ## Gradients with respect to the configuration
#
# Inverse kinematics for 256 targets at once. Each step solves the damped least-squares problem
# $\Delta q = J^\top (J J^\top + \lambda I)^{-1} e$ with $e$ the error of the position; `jacobian` is the library's
# own, and `lax.scan` keeps the loop inside the compiled program. The targets are poses of the hand that random
# configurations reach, so each has a solution. (Limits of the joints are left out here; the notebook on trajectory
# optimization regards them all.)


# %%
@jax.jit
@jax.vmap
def reach(q, target):
    def step(q, _):
        error = target - rb.link_pose(model, q, "ee_right")[:3, 3]
        J = rb.jacobian(model, q, "ee_right")[3:, columns]
        change = J.T @ jnp.linalg.solve(J @ J.T + 1e-4 * jnp.eye(3), error)
        return q.at[columns].add(jnp.clip(change, -0.3, 0.3)), jnp.linalg.norm(error)

    q, errors = jax.lax.scan(step, q, None, length=60)
    return q, errors


# The targets differ from the start in the joints of the arm only.
start = jnp.zeros((256, model.nq)).at[:, columns[3]].set(-1.0)
goal = start.at[:, columns].set(q[:256][:, columns])
target = jax.vmap(lambda q: rb.link_pose(model, q, "ee_right")[:3, 3])(goal)
solution, errors = reach(start, target)
reached = float((errors[:, -1] < 1e-4).mean())
print(f"reached within 0.1 mm: {100 * reached:.0f} % of the targets")

# %% [markdown]
# ## Gradients with respect to the robot
#
# What is in the hand? We "measure" the torques that hold an unknown payload in eight configurations, and look for the
# mass and centre of mass that explain them, by gradients of the squared error with respect to the payload. In
# $(m, m c)$ the torques are linear, so one Gauss-Newton step from nothing is exact; `jax.jacfwd` gives its matrix.

# %%
true_payload = 1.7 * jnp.array([1.0, 0.03, -0.02, -0.12])  # m and m c [kg, kg m]
poses = q[:8]
# The hand's own m, m c and second moments; the last do not matter at rest.
hand_alone = model.link_inertias[model.link_index("ee_right")]


def predicted(payload):
    loaded = rb.with_inertias(model, {"ee_right": hand_alone.at[:4].add(payload)})
    return jax.vmap(rb.gravity_forces, in_axes=(None, 0))(loaded, poses)[:, columns].ravel()


measured = predicted(true_payload)
A = jax.jacfwd(predicted)(jnp.zeros(4))
estimate = jnp.linalg.lstsq(A, measured - predicted(jnp.zeros(4)))[0]
print("mass [kg]:", float(estimate[0]), " centre [m]:", (estimate[1:] / estimate[0]).round(4))

# %% [markdown]
# Gradients are exact, not approximations. Here is the one of the squared holding torque with respect to *every*
# inertial parameter of the robot at once, against a central difference along a random direction.


# %%
def effort(inertias):
    return jnp.sum(rb.gravity_forces(eqx.tree_at(lambda m: m.inertias, model, inertias), q[0]) ** 2)


gradient = jax.jit(jax.grad(effort))(model.inertias)
direction = jax.random.normal(jax.random.key(3), gradient.shape)
h = 1e-4
difference = (effort(model.inertias + h * direction) - effort(model.inertias - h * direction)) / (2 * h)
slope = jnp.vdot(gradient, direction)
print("gradient of", gradient.size, "parameters; slope", float(slope), "and its finite difference", float(difference))

# %% [markdown]
# ## What must hold

# %%
assert 0.5 < float((clearance > 0).mean()) < 1.0
per_kilogram = holding_torques[-1] - holding_torques[0]
straight = holding_torques[0] + masses[:, None] / 5.0 * per_kilogram
assert np.allclose(holding_torques, straight, rtol=0, atol=1e-11)
assert reached > 0.9
assert np.allclose(estimate, true_payload, rtol=0, atol=1e-9)
# The effort is quadratic in the parameters: the central difference errs by rounding only.
assert abs(float(slope - difference)) < 1e-6 * abs(float(slope))
