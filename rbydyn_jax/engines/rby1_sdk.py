"""RB-Y1 in the vendor's own library, in the joint order of a Model; spatial vectors are angular first on both sides.

The SDK takes the cosine as the root of 1 - sin^2: near a quarter turn its angle is off by up to 1e-8, so configurations
should keep away from there. It does not normalize axes, whose printed digits in the vendor's files leave 1e-9; text
from `to_urdf` has unit axes, and then results agree to rounding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import rby1_sdk.dynamics as sdk

from .._errors import ModelError
from ..io.save import to_urdf
from ..model.model import Model
from .conventions import float64

# The SDK takes what memory holds for an inertia that is not written, and divides by the mass of each link.
_NO_MASS = (
    '<inertial><origin xyz="0 0 0"/><mass value="1e-30"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/>'
    "</inertial>"
)
_TYPES = ("revolute", "continuous", "prismatic")
_ROBOTS = {18: sdk.Robot_18, 24: sdk.Robot_24, 26: sdk.Robot_26}


class Rby1Robot:
    """A robot and its state in rby1_sdk; one configuration at a time."""

    def __init__(self, source: str | Path, joint_names: Sequence[str], link_names: Sequence[str], base: str) -> None:
        text = Path(source).read_text() if isinstance(source, Path) else source
        configuration = sdk.load_robot_from_urdf_data(text, base)
        self.robot = _ROBOTS.get(len(joint_names), sdk.Robot)(configuration)
        # More names than joints would be read out of bounds there.
        if self.robot.get_dof() != len(joint_names):
            raise ModelError(f"rby1_sdk counts {self.robot.get_dof()} joints, not {len(joint_names)}")
        self.state = self.robot.make_state(list(link_names), list(joint_names))
        self.links = {name: i for i, name in reversed(list(enumerate(self.state.get_link_names())))}

    def set(self, q, v=None, a=None, gravity=(0.0, 0.0, -9.81)) -> Rby1Robot:
        """Sets the state and runs forward kinematics to second order."""
        n = len(self.state.get_joint_names())
        self.state.set_q(float64(q))
        self.state.set_qdot(np.zeros(n) if v is None else float64(v))
        self.state.set_qddot(np.zeros(n) if a is None else float64(a))
        self.state.set_gravity(np.concatenate([np.zeros(3), float64(gravity)]))
        self.robot.compute_forward_kinematics(self.state)
        self.robot.compute_diff_forward_kinematics(self.state)
        self.robot.compute_2nd_diff_forward_kinematics(self.state)
        return self

    def fk(self, q, base: str, links: Sequence[str]) -> np.ndarray:
        """Poses (n, 4, 4) of links in the base link."""
        self.set(q)
        at = self.links
        return np.stack([self.robot.compute_transformation(self.state, at[base], at[link]) for link in links])

    def rnea(self, q, v, a) -> np.ndarray:
        """Joint torques."""
        self.set(q, v, a)
        self.robot.compute_inverse_dynamics(self.state)
        return np.array(self.state.get_tau())

    def gravity(self, q) -> np.ndarray:
        """Gravity torques."""
        return np.array(self.robot.compute_gravity_term(self.set(q).state))

    def crba(self, q) -> np.ndarray:
        """Mass matrix; by columns where the SDK has no class of this size: its `Robot` crashes (seen in 0.10)."""
        if type(self.robot) is sdk.Robot:
            zero, gravity = np.zeros(len(q)), self.gravity(q)
            return np.stack([self.rnea(q, zero, e) - gravity for e in np.eye(len(q))], axis=1)
        return np.array(self.robot.compute_mass_matrix(self.set(q).state))

    def body_jacobian(self, q, reference: str, target: str) -> np.ndarray:
        """(6, n) in the target link's frame."""
        self.set(q)
        return np.array(self.robot.compute_body_jacobian(self.state, self.links[reference], self.links[target]))

    def space_jacobian(self, q, reference: str, target: str) -> np.ndarray:
        """(6, n) in the reference link's frame, at its origin."""
        self.set(q)
        return np.array(self.robot.compute_space_jacobian(self.state, self.links[reference], self.links[target]))

    def body_velocity(self, q, v, reference: str, target: str) -> np.ndarray:
        """Relative twist in the target link's frame."""
        self.set(q, v)
        return np.array(self.robot.compute_body_velocity(self.state, self.links[reference], self.links[target]))

    def center_of_mass(self, q, reference: str) -> np.ndarray:
        """Centre of mass of all links, the base included, in the reference link's frame."""
        self.set(q)
        return np.array(self.robot.compute_center_of_mass(self.state, self.links[reference]))

    def com_jacobian(self, q, reference: str) -> np.ndarray:
        """(3, n)."""
        self.set(q)
        return np.array(self.robot.compute_center_of_mass_jacobian(self.state, self.links[reference]))

    def total_inertia(self, q, reference: str) -> np.ndarray:
        """(6, 6) of all links in the reference link's frame."""
        self.set(q)
        return np.array(self.robot.compute_total_inertial(self.state, self.links[reference]))

    def operational_inertia(self, q, reference: str, target: str) -> np.ndarray:
        """(6, 6) reflected inertia at the target link, in its frame."""
        self.set(q)
        return np.array(self.robot.compute_reflective_inertia(self.state, self.links[reference], self.links[target]))


def rby1_model(model: Model) -> Rby1Robot:
    """Lets the SDK read the URDF text of a Model.

    Raises:
        ModelError: The base is not fixed to the world, or a joint is tied, or is not of a type that the SDK has.
    """
    tree = model.tree
    refused = {kind for kind in tree.joint_types if kind not in _TYPES} | {
        "mimic" for m in tree.mimics if m is not None
    }
    if refused:
        raise ModelError(f"rby1_sdk has no {', '.join(sorted(refused))} joint")
    if tree.link_bodies[0] >= 0:
        raise ModelError("rby1_sdk needs a base that is fixed to the world")
    text = re.sub(r'(<link name="[^"]*")/>', rf"\1>{_NO_MASS}</link>", to_urdf(model, collisions=False))
    return Rby1Robot(text, model.joint_names, model.link_names, model.link_names[0])
