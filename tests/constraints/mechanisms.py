"""Mechanisms with loops on which the constraints are tested, and robots in maximal coordinates."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax import Model
from rbydyn_jax.constraints import LoopJoint
from rbydyn_jax.constraints._bodies import body_motions
from rbydyn_jax.io import Inertial, JointDescription, LinkDescription, RobotDescription
from rbydyn_jax.spatial import quaternions

GROUND, CRANK, COUPLER, ROCKER = 1.0, 0.4, 0.9, 0.7


def four_bar() -> tuple[Model, LoopJoint]:
    """A crank and rocker in the xz plane: of the five equations of the hinge that closes it, two are independent."""
    b = rb.RobotBuilder("four_bar").link("ground")
    for name, mass, length in (("crank", 1.0, CRANK), ("coupler", 1.5, COUPLER), ("rocker", 2.0, ROCKER)):
        b.link(name, mass, (length / 2, 0.01, 0), mass * length**2 / 12 + 1e-3)
    b.continuous("a", "ground", "crank", axis=(0, 1, 0))
    b.continuous("b", "crank", "coupler", xyz=(CRANK, 0, 0), axis=(0, 1, 0))
    b.continuous("d", "ground", "rocker", xyz=(GROUND, 0, 0), axis=(0, 1, 0))
    ends = {"predecessor_pose": place(COUPLER), "successor_pose": place(ROCKER)}
    return rb.build_model(b), LoopJoint("revolute", "coupler", "rocker", axis=(0, 1, 0), **ends)


def place(x: float, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    """A translation (4, 4)."""
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def maximal(description: RobotDescription) -> tuple[Model, tuple[LoopJoint, ...]]:
    """The same robot with every link floating, and its joints as constraints: another way to the same motion."""
    links = [description.links[0], *(link for link in description.links[1:])]
    joints = tuple(JointDescription(f"free_{link.name}", "floating", links[0].name, link.name) for link in links[1:])
    model = rb.build_model(dataclasses.replace(description, joints=joints))
    loops = tuple(
        LoopJoint(
            joint.kind,
            None if joint.parent == links[0].name else joint.parent,
            joint.child,
            predecessor_pose=joint.origin,
            axis=joint.axis,
        )
        for joint in description.joints
    )
    return model, loops


def maximal_state(tree: Model, free: Model, q: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The state of `maximal(description)` that is the state (q, v) of the tree."""
    bodies = body_motions(tree, q, v)
    order = [tree.tree.link_bodies[tree.link_index(joint.removeprefix("free_"))] for joint in free.joint_names]
    turns = jax.vmap(quaternions.from_matrix)(bodies.poses[:, :3, :3])
    qs = jnp.concatenate([turns, bodies.poses[:, :3, 3]], axis=1)
    return qs[np.array(order)].reshape(-1), bodies.velocities[np.array(order)].reshape(-1)


def falling_ball(mass: float = 0.3, radius: float = 0.05) -> Model:
    """A free ball, its centre at the origin at first."""
    moment = 0.4 * mass * radius**2
    links = (LinkDescription("world"), LinkDescription("ball", Inertial(mass, np.zeros(3), moment * np.eye(3))))
    return rb.build_model(RobotDescription("ball", links, (JointDescription("free", "floating", "world", "ball"),)))
