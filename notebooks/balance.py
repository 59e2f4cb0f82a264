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
# # Balance
#
# A humanoid stands on two feet and is pushed. `whole_body.inverse_dynamics` chooses torques and contact forces
# together, as a quadratic program: tasks say what is wanted, friction cones and motors what is possible. It is a
# function of the state, so that a loop of control and simulation is one `lax.scan`, and many pushes are one `vmap`.

# %%
# %matplotlib inline
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax import constraints
from rbydyn_jax.whole_body import Com, Momentum, PatchContact, Posture, WholeBodyStatus, inverse_dynamics

# %% [markdown]
# ## A small humanoid
#
# A trunk of 20 kg and two legs of six hinges: three in the hip, the knee, two in the ankle. The trunk floats; it has no
# motor. Any URDF with `floating_base=True` would do as well.

# %%
builder = rb.RobotBuilder("humanoid").link("world").link("trunk", 20.0, (0.0, 0.0, 0.25), (0.9, 0.8, 0.3))
builder = builder.floating("base", "world", "trunk")
hinges = (("hip_z", (0, 0, 1), 0.0), ("hip_x", (1, 0, 0), 0.0), ("hip_y", (0, 1, 0), 0.0), ("knee", (0, 1, 0), -0.4))
hinges += (("ankle_y", (0, 1, 0), -0.4), ("ankle_x", (1, 0, 0), 0.0))
for side, y in (("left", 0.1), ("right", -0.1)):
    above = "trunk"
    for name, axis, down in hinges:
        part, place = f"{side}_{name}_link", (0.0, y if above == "trunk" else 0.0, down)
        below = -0.2 if name in ("hip_y", "knee") else 0.0
        builder = builder.link(part, 1.6, (0.0, 0.0, below), 0.01)
        limits = {"lower": -2.2, "upper": 2.2, "velocity": 12.0, "effort": 150.0}
        builder = builder.revolute(f"{side}_{name}", above, part, xyz=place, axis=axis, **limits)
        above = part
    builder = builder.link(f"{side}_sole").fixed(f"{side}_foot", above, f"{side}_sole", xyz=(0.03, 0.0, -0.08))
humanoid = rb.build_model(builder)
feet, half, friction = ("left_sole", "right_sole"), (0.1, 0.05), 0.7

crouch = dict.fromkeys(("left_hip_y", "right_hip_y"), -0.4) | dict.fromkeys(("left_knee", "right_knee"), 0.8)
crouch |= dict.fromkeys(("left_ankle_y", "right_ankle_y"), -0.4)
q0 = np.array(rb.neutral(humanoid))
for name, angle in crouch.items():
    q0[humanoid.tree.q_slices[humanoid.joint_index(name)]] = angle
q0[6] -= float(rb.link_pose(humanoid, jnp.asarray(q0), feet[0])[2, 3])  # the soles are on the ground
q0 = jnp.asarray(q0)
com = rb.center_of_mass(humanoid, q0)
soles = [rb.link_pose(humanoid, q0, foot) for foot in feet]
print(f"{float(rb.total_mass(humanoid)):.0f} kg, {humanoid.nv} velocities, 12 motors")

# %% [markdown]
# ## What is wanted, what is possible
#
# The centre of mass stays where it is, the joints near the posture, and the trunk does not spin. Each sole bears a
# wrench within its friction cone, with the centre of pressure inside.

# %%
contacts = [PatchContact(foot, None, half, friction) for foot in feet]
spin = jnp.array([1e-2] * 3 + [0.0] * 3)  # the angular momentum alone


def control(q, v):
    tasks = [Com(com, 10.0, stiffness=40.0), Posture(q0, 0.1), Momentum(weight=spin)]
    return inverse_dynamics(humanoid, q, v, tasks, contacts, damping=1e-2)


# %% [markdown]
# ## A push
#
# For a tenth of a second a force pushes the trunk forward, of which the controller does not know. The ground holds the
# soles: two fixed joints with the world, which `constraints.forward_dynamics` solves with the motion. Eight forces are
# one batch.

# %%
dt, steps, start, end = 5e-3, 300, 0.2, 0.3
ground = [constraints.LoopJoint("fixed", None, foot, predecessor_pose=at) for foot, at in zip(feet, soles, strict=True)]


@jax.jit
@jax.vmap
def pushed(force):
    def tick(state, t):
        q, v = state
        result = control(q, v)
        push = jnp.where((t >= start) & (t < end), force, 0.0)
        outside = rb.external_wrenches(humanoid, q, {"trunk": jnp.zeros(6).at[3].set(push)})
        v = v + dt * constraints.forward_dynamics(humanoid, q, v, result.tau, ground, outside).a
        q = rb.integrate(humanoid, q, dt * v)
        share = jnp.abs(result.tau / jnp.where(jnp.isfinite(humanoid.effort_limit), humanoid.effort_limit, 1.0)).max()
        told = (rb.center_of_mass(humanoid, q), jnp.stack(result.forces), result.status, share)
        return (q, v), told

    return jax.lax.scan(tick, (q0, jnp.zeros(humanoid.nv)), dt * jnp.arange(steps))


forces = jnp.linspace(0.0, 280.0, 8)
(q_end, v_end), (coms, wrenches, statuses, shares) = pushed(forces)
stands = (statuses == WholeBodyStatus.OPTIMAL).all(axis=1) & (jnp.linalg.norm(coms[:, -1] - com, axis=1) < 0.05)
weight = 9.81 * float(rb.total_mass(humanoid))
print("left foot, standing still:", round(float(wrenches[0, 0, 0, 5]) / weight, 2), "of the weight")
for force, stand, path in zip(forces, stands, coms, strict=True):
    moved = f"moved by {float(jnp.abs(path[:, 0] - com[0]).max()) * 100:4.1f} cm" if stand else "falls"
    print(f"{float(force):4.0f} N: {moved}")

# %%
t = dt * np.arange(steps)
pressure = -wrenches[..., 1] / wrenches[..., 5]  # of each foot, forward from the middle of its sole
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for force, stand, path, points in zip(forces, stands, coms, pressure, strict=True):
    if stand:
        color = plt.cm.viridis(float(force) / 300.0)
        left.plot(t, 100 * (path[:, 0] - com[0]), color=color, label=f"{float(force):.0f} N")
        right.plot(t, 100 * points[:, 0], color=color)
left.axvspan(start, end, color="0.9")
right.axhline(100 * half[0], linestyle=":", color="0.5")
right.axhline(-100 * half[0], linestyle=":", color="0.5")
left.set(xlabel="time [s]", ylabel="centre of mass, forward [cm]")
right.set(xlabel="time [s]", ylabel="centre of pressure, left sole [cm]")
left.legend(frameon=False)
plt.show()

# %% [markdown]
# The centre of pressure runs to the toes and stays there while the centre of mass is caught: a foot cannot push beyond
# its end. What is beyond this is a step, or a fall.
#
# ## What must hold

# %%
assert abs(float(wrenches[0, -1, :, 5].sum()) / weight - 1.0) < 1e-3
assert bool(stands[:4].all())
assert float(jnp.abs(pressure[stands]).max()) < half[0] + 1e-6
assert float(jnp.abs(coms[:4, -1, :2] - com[:2]).max()) < 0.01
assert float(shares[stands].max()) <= 1.0 + 1e-9
