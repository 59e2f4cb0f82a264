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
# # RB-Y1: from the SDK to JAX to a command
#
# A script for `rby1_sdk` computes one pose at a time. Here it runs as it is with one import changed, then its model
# goes to JAX for what one call at a time cannot do, and the result goes back as a command that is checked, simulated,
# and ready to be sent. Nothing needs a robot or the SDK.

# %%
# %matplotlib inline
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import rbydyn_jax as rb
import rbydyn_jax.rby1.dynamics as rby_dyn  # was: import rby1_sdk.dynamics as rby_dyn
from rbydyn_jax import collision, planning, robots
from rbydyn_jax.rby1 import commands, impedance

# %% [markdown]
# ## As in the SDK
#
# The robot of the SDK comes from a URDF; here it is that of the RB-Y1 A that the library has.

# %%
robot = rby_dyn.Robot_24(rby_dyn.load_robot_from_urdf_data(rb.to_urdf(robots.rby1a()), "base"))
state = robot.make_state(["base", "ee_right"], robot.get_joint_names())
ready = np.zeros(24)
arms = {"right_arm": (0.2, -0.3, 0.0, -1.6, 0.0, 0.6, 0.0), "left_arm": (0.2, 0.3, 0.0, -1.6, 0.0, 0.6, 0.0)}
for arm, angles in arms.items():
    ready[[robot.get_joint_names().index(f"{arm}_{i}") for i in range(7)]] = angles
state.set_q(ready)
robot.compute_forward_kinematics(state)
hand = robot.compute_transformation(state, 0, 1)
print("right hand at", hand[:3, 3].round(3), "m")

# %% [markdown]
# ## To JAX
#
# `robot.model` is the pytree on which the pure functions work. The poses of the hand that we look for are a grid in
# front of the robot: 125 inverse kinematics problems at once, for the joints of the right arm alone. What comes nearer
# than 2 cm to the robot itself is left out.

# %%
model = robot.model
start = jnp.asarray(ready)
print("the same pose:", bool(np.allclose(rb.link_pose(model, start, "ee_right"), hand, atol=1e-12)))

right_arm = tuple(f"right_arm_{i}" for i in range(7))
steps = [jnp.linspace(-0.15, 0.25, 5), jnp.linspace(-0.15, 0.25, 5), jnp.linspace(-0.2, 0.3, 5)]
offsets = jnp.stack(jnp.meshgrid(*steps, indexing="ij"), axis=-1).reshape(-1, 3)
targets = jnp.tile(jnp.asarray(hand), (125, 1, 1)).at[:, :3, 3].add(offsets)
found = planning.solve_ik(model, "ee_right", targets, q0=start, joints=right_arm)
clearance = jax.vmap(collision.min_distance, (None, 0))(model, found.q)
solved = np.asarray(found.solved & (clearance > 0.02))
print(f"about {round(100 * solved.mean(), -1):.0f} % can be reached")

# %% [markdown]
# Which one is best? The least torque in the arm decides: one `vmap` over the solutions.

# %%
columns = np.array([model.tree.v_slices[model.joint_index(name)].start for name in right_arm])
load = jax.vmap(rb.gravity_forces, (None, 0))(model, found.q)[:, columns]
ratio = np.where(solved, np.asarray(jnp.abs(load / model.effort_limit[columns]).max(axis=1)), np.inf)
best = int(np.argmin(ratio))

figure = plt.figure(figsize=(6, 4.4), layout="constrained")
axes = figure.add_subplot(projection="3d")
at = np.asarray(targets[:, :3, 3])
axes.scatter(*at[~solved].T, color="0.8", s=10, label="cannot be reached")
shown = axes.scatter(*at[solved].T, c=100 * ratio[solved], cmap="viridis", s=28, label="can be reached")
axes.scatter(*at[best], color="none", edgecolors="red", s=120, label="least torque")
figure.colorbar(shown, label="largest torque / limit [%]", shrink=0.7, pad=0.12)
axes.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
axes.legend(loc="upper left", frameon=False, fontsize=8)
plt.show()

# %% [markdown]
# ## To a command
#
# The solution becomes a command of joint impedance for the right arm. `validate` checks names, sizes and limits, and
# reports everything that is wrong at once.

# %%
goal = found.q[best][columns]
arm_command = commands.JointImpedanceControlCommand(
    position=goal, stiffness=np.full(7, 80.0), damping_ratio=1.0, torque_limit=np.full(7, 20.0), minimum_time=1.5
)
body = commands.BodyComponentBasedCommand(right_arm_command=arm_command)
command = commands.RobotCommand(commands.ComponentBasedCommand(body_command=body))
command.validate("A")
try:
    arm_command.replace(position=goal.at[3].set(1.0)).validate("A", "right_arm")
except rb.CommandError as error:
    print(str(error).split(", got")[0])

# %% [markdown]
# ## To a simulation, before a robot moves
#
# `impedance.rollout` takes the same object. The joints follow the reference of the controller, and the distances along
# the way say whether the motion is clear.

# %%
motion = impedance.rollout(model, arm_command, start, jnp.zeros(24), 2.5, joints="right_arm")
clear = jax.vmap(collision.min_distance, (None, 0))(model, motion.q[::10])
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.plot(motion.times, motion.q[:, columns])
left.set_prop_cycle(None)
left.plot(motion.times[:-1], np.asarray(motion.q_desired)[:, columns], ":", linewidth=1)
left.set(xlabel="time [s]", ylabel="angle [rad]", title="right arm; dotted: the reference")
right.plot(motion.times[::10], 1e3 * clear, color="tab:green")
right.axhline(20.0, color="tab:red", linestyle="--", linewidth=0.8)
right.set(xlabel="time [s]", ylabel="distance [mm]", title="nearest pair of bodies", ylim=(0, None))
plt.show()
print("largest error at the end:", bool(jnp.abs(motion.q[-1, columns] - goal).max() < 1e-2) and "less than 0.01 rad")

# %% [markdown]
# With a robot, three lines are left (extra `rby1`):
#
# ```python
# robot = rby1_sdk.create_robot("192.168.30.1:50051", "a")
# robot.connect()
# commands.send(robot, command).wait_for(5000)
# ```
#
# ## What must hold

# %%
assert solved.sum() > 20
reached = rb.link_pose(model, motion.q[-1], "ee_right")
assert float(jnp.linalg.norm(reached[:3, 3] - targets[best, :3, 3])) < 5e-3
assert float(clear.min()) > 0.0
assert commands.RobotCommand.from_dict(command.to_dict()) == command
