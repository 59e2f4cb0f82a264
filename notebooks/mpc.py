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
# # Predictive control
#
# The right arm of an RB-Y1 follows a target that jumps. `planning.mpc` solves a problem of optimal control again at
# each tick, from the state that is measured then, and gives the first torques of the solution; `constraints.simulate`
# is the robot.

# %%
# %matplotlib inline
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax import constraints, robots
from rbydyn_jax.planning import ControlProblem, JointEffort, JointLimits, JointVelocity, PositionGoal, SoftGoal, mpc
from rbydyn_jax.rby1 import commands

# %% [markdown]
# ## The problem
#
# All joints but those of the arm are locked. The costs are residuals: the distance of the end effector from the target,
# small weights on speeds and torques, and what is beyond the limits of position and beyond 80 % of the limits of
# velocity. The torques stay within their limits at every step. The horizon is 0.4 s.

# %%
robot = robots.rby1a()
right = [f"right_arm_{i}" for i in range(7)]
arm = rb.lock_joints(robot, {name: 0.0 for name in robot.joint_names if name not in right})
q, v = np.array([0.3, -0.3, 0.1, -1.8, 0.0, 0.5, 0.0]), np.zeros(7)
period = 0.02


def too_fast(model, q, v, tau, t):
    return 30.0 * jnp.maximum(jnp.abs(v) - 0.8 * model.velocity_limit, 0.0)


def reach(target):
    there = SoftGoal(PositionGoal("ee_right", target), 10.0)
    costs = [there, JointVelocity(0.5), JointEffort(1e-5), JointLimits(100.0, 0.05), too_fast]
    return ControlProblem(arm, costs, [there, JointVelocity(0.1)], dt=period, steps=20)


# %% [markdown]
# ## The loop
#
# The plant takes steps of 2 ms of another integrator than the plan's. The target is data: it changes after 1.2 s, and
# nothing is compiled again.


# %%
@jax.jit
def plant(q, v, tau):
    motion = constraints.simulate(arm, q, v, period, 0.002, control=lambda t, q, v: tau)
    return motion.qs[-1], motion.vs[-1]


place = jax.jit(lambda q: rb.link_pose(arm, q, "ee_right")[:3, 3])
begin = place(jnp.asarray(q))
targets = [begin + jnp.array([0.15, 0.0, 0.1]), begin + jnp.array([0.1, 0.1, 0.0])]
controller = mpc(reach(targets[0]))
rows = []
for tick in range(140):
    target = targets[tick >= 60]
    tau = controller(q, v, period * tick, problem=reach(target))
    ahead = np.asarray(controller.plan.qs[1])
    rows.append((q, v, tau, ahead, np.asarray(target - place(jnp.asarray(q)))))
    q, v = map(np.asarray, plant(q, v, tau))
qs, vs, taus, aheads, errors = (np.array(x) for x in zip(*rows, strict=True))
for name, tick in (("before the jump", 59), ("at the end", 139)):
    print(f"distance {name}: {1e3 * np.linalg.norm(errors[tick]):.0f} mm")

# %%
t = period * np.arange(len(rows))
figure, (left, middle, last) = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
left.plot(t, 100 * np.linalg.norm(errors, axis=1))
left.set(xlabel="time [s]", ylabel="distance from the target [cm]")
middle.plot(t, vs / np.asarray(arm.velocity_limit))
middle.set(xlabel="time [s]", ylabel="velocity / limit")
last.plot(t, taus / np.asarray(arm.effort_limit), label=[name.removeprefix("right_arm_") for name in right])
last.set(xlabel="time [s]", ylabel="torque / limit")
last.legend(frameon=False, ncols=2, title="joint")
plt.show()

# %% [markdown]
# ## Commands
#
# The robot takes positions: what is sent at each tick is where the plan is one step later. `validate` checks a command
# against the limits of the robot. This loop has been run in simulation only.


# %%
def command(position):
    moved = commands.JointPositionCommand(position=position, minimum_time=period)
    body = commands.BodyComponentBasedCommand(right_arm_command=moved)
    return commands.RobotCommand(commands.ComponentBasedCommand(body_command=body))


stream = [command(position) for position in aheads]
for each in stream:
    each.validate("A")
print(len(stream), "commands")

# %% [markdown]
# ## What must hold

# %%
assert np.linalg.norm(errors[59]) < 0.01 and np.linalg.norm(errors[-1]) < 0.01
assert (np.abs(taus) <= np.asarray(arm.effort_limit) + 1e-9).all()
assert (np.abs(vs) <= np.asarray(arm.velocity_limit)).all()
assert np.abs(aheads - qs).max() < period * float(arm.velocity_limit.max())
