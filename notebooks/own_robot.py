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
# # Your own robot
#
# From a file to a model that is checked, changed and saved again. The robot is a small arm in URDF; MJCF
# (`rb.load_mjcf`) and xacro (`rb.load_xacro`) give the same kind of object.

# %%
# %matplotlib inline
import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax import collision, viz

URDF = """
<robot name="lamp">
  <link name="base">
    <collision><origin xyz="0 0 0.02"/><geometry><cylinder radius="0.09" length="0.04"/></geometry></collision>
  </link>
  <link name="lower">
    <inertial>
      <origin xyz="0 0 0.15"/><mass value="0.8"/>
      <inertia ixx="0.006" iyy="0.006" izz="0.0002" ixy="0" ixz="0" iyz="0"/>
    </inertial>
    <collision><origin xyz="0 0 0.15"/><geometry><capsule radius="0.02" length="0.3"/></geometry></collision>
  </link>
  <link name="upper">
    <inertial>
      <origin xyz="0 0 0.12"/><mass value="0.5"/>
      <inertia ixx="0.0025" iyy="0.0025" izz="0.0001" ixy="0" ixz="0" iyz="0"/>
    </inertial>
    <collision><origin xyz="0 0 0.12"/><geometry><capsule radius="0.018" length="0.24"/></geometry></collision>
  </link>
  <link name="head">
    <inertial>
      <origin xyz="0.05 0 0"/><mass value="0.3"/>
      <inertia ixx="0.0002" iyy="0.0002" izz="0.0006" ixy="0" ixz="0" iyz="0"/>
    </inertial>
    <collision><origin xyz="0.05 0 0"/><geometry><sphere radius="0.06"/></geometry></collision>
  </link>
  <joint name="turn" type="continuous">
    <parent link="base"/><child link="lower"/><origin xyz="0 0 0.04"/><axis xyz="0 0 1"/>
    <limit effort="5" velocity="3"/>
  </joint>
  <joint name="elbow" type="revolute">
    <parent link="lower"/><child link="upper"/><origin xyz="0 0 0.3"/><axis xyz="0 1 0"/>
    <limit lower="-2.4" upper="2.4" effort="4" velocity="3"/><dynamics damping="0.05" friction="0.02"/>
  </joint>
  <joint name="nod" type="revolute">
    <parent link="upper"/><child link="head"/><origin xyz="0 0 0.24"/><axis xyz="0 1 0"/>
    <limit lower="-1.5" upper="1.5" effort="1" velocity="3"/>
  </joint>
</robot>
"""
lamp = rb.load_urdf_string(URDF)
print(lamp)

# %% [markdown]
# The tree shows what was understood: joints with their axes and limits, masses, shapes. What the reader corrected,
# filled in or doubts stands in the report, with the line of the file: the head's inertia is a mistake, which we
# leave in. `rbydyn check lamp.urdf` prints the same.

# %%
for finding in lamp.report:
    print(finding)

# %% [markdown]
# ## Look at it
#
# `viz.draw_robot` draws a configuration into 3-D axes; `viz.show(lamp)` opens it in a browser, with sliders.

# %%
figure = plt.figure(figsize=(8, 3.6), layout="constrained")
for k, q in enumerate(([0.0, 0.0, 0.0], [0.5, 0.9, 0.6], [2.2, -1.6, 1.0])):
    axes = figure.add_subplot(1, 3, k + 1, projection="3d")
    viz.draw_robot(axes, lamp, jnp.array(q), color="tab:blue", alpha=0.5)
    axes.set(title=f"q = {q}", xticklabels=[], yticklabels=[], zticklabels=[])
plt.show()

# %% [markdown]
# ## Is it right?
#
# A few numbers that can be worked out on paper find most mistakes in a file: the mass, and the torques that hold the
# robot. With the upper arm level, the elbow bears its own arm at 0.12 m and the head, whose centre hangs below the end
# of the arm, at 0.24 m.

# %%
level = jnp.array([0.0, jnp.pi / 2, 0.0])
torques = rb.gravity_forces(lamp, level)
by_hand = -9.81 * (0.5 * 0.12 + 0.3 * 0.24)
print("mass:", float(rb.total_mass(lamp)), "kg without the base, which is fixed")
print("elbow:", round(float(torques[1]), 6), "N m; by hand", round(by_hand, 6))
print("collision pairs:", [tuple(map(str, pair)) for pair in collision.pairs(lamp).links])

# %% [markdown]
# ## Change it
#
# Every edit is a function that returns a new robot. Values, such as masses and limits, may even be traced: one compiled
# program serves all of them, and gradients go through. Structure, such as what is welded or attached, is changed
# outside of `jit`.

# %%
heavier = rb.attach_payload(lamp, "head", 0.4, jnp.array([0.05, 0.0, 0.0]))
two_joints = rb.lock_joints(lamp, {"turn": 0.5})
slower = rb.with_limits(lamp, velocity_limit=0.5 * lamp.velocity_limit)
print("a heavier head: ", rb.gravity_forces(heavier, level)[1].round(4), "N m at the elbow")
print("turn is welded: ", two_joints.joint_names)
print("half the speed: ", slower.velocity_limit)


# %% [markdown]
# How heavy may the head be, before the elbow's 4 N m do not hold it? The derivative with respect to the mass answers in
# one Newton step, since torques are linear in masses.


# %%
def elbow(mass):
    return -rb.gravity_forces(rb.attach_payload(lamp, "head", mass, jnp.array([0.05, 0.0, 0.0])), level)[1]


most = float((4.0 - elbow(0.0)) / jax.grad(elbow)(0.0))
print(f"{most:.3f} kg more: then the elbow bears {float(elbow(most)):.3f} N m")

# %% [markdown]
# ## Save it
#
# `rb.to_urdf` is the text and `rb.save_urdf` writes the file. Reading it again gives the same robot.

# %%
again = rb.load_urdf_string(rb.to_urdf(heavier))
print(rb.gravity_forces(again, level).round(6))

# %% [markdown]
# ## Without a file
#
# The builder makes the same robot from Python; wrong values are refused where they are written.

# %%
builder = rb.RobotBuilder("crane").link("base").link("boom", 2.0, (0.5, 0, 0), (0.01, 0.2, 0.2))
builder.revolute("lift", "base", "boom", axis=(0, -1, 0), lower=0.0, upper=1.4, effort=40.0, velocity=1.0)
crane = rb.build_model(builder.build_description())
print(crane)
try:
    rb.build_model(builder.revolute("swing", "boom", "hook").build_description())
except rb.RbydynError as error:
    print(f"{type(error).__name__}: {error}")

# %% [markdown]
# ## What must hold

# %%
assert abs(float(torques[1]) - by_hand) < 1e-12
assert abs(float(rb.total_mass(lamp)) - 1.6) < 1e-12
assert abs(float(elbow(most)) - 4.0) < 1e-9
assert np.allclose(rb.crba(again, level), rb.crba(heavier, level), rtol=0, atol=1e-12)
assert two_joints.nv == 2 and crane.nv == 1
