"""A Model in pinocchio, and pinocchio's results in our conventions.

Two roads lead there: `pin_model(model)` writes our numbers into pinocchio's own classes, which tests the algorithms
alone; `pin_from_urdf(text, model)` lets pinocchio read the same file, which tests our reader too. Mimic joints are
independent joints there, and are tied with the constant map v_pin = G v: tau = G' tau_pin, M = G' M_pin G.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pinocchio as pin

from .._errors import NameNotFoundError
from ..model.model import Model
from .conventions import (
    change_velocity_origin,
    com_inertia,
    float64,
    joint_values,
    joint_velocity_map,
    plane_alignment,
    quat_xyzw,
    quaternion_of_mrp,
    swap_rows,
    turned_parameters,
)

FRAMES = {
    "local": pin.ReferenceFrame.LOCAL,
    "world": pin.ReferenceFrame.WORLD,
    "world_aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
}


class PinRobot:
    """One robot in pinocchio; every method takes and returns our conventions, one configuration at a time."""

    def __init__(self, model: Model, pin_model: pin.Model, joint_ids: list[int], alignments: list[np.ndarray]) -> None:
        """`joint_ids` are pinocchio's joints of our bodies; `alignments` turn our body axes into pinocchio's."""
        self.ours, self.model, self.joint_ids, self.alignments = model, pin_model, joint_ids, alignments
        self.data = pin_model.createData()
        self.G = np.zeros((pin_model.nv, model.nv))
        for j, rows in zip(joint_ids, joint_velocity_map(model), strict=True):
            order = swap_rows(range(6)) if len(rows) == 6 else range(len(rows))
            at = pin_model.joints[j].idx_v
            self.G[at : at + len(rows)] = rows[list(order)]
        self.has_mimics = model.tree.has_mimics

    def q(self, q) -> np.ndarray:
        """Our configuration in pinocchio's coordinates."""
        out = pin.neutral(self.model)
        for i, value in enumerate(joint_values(self.ours, q)):
            joint = self.model.joints[self.joint_ids[i]]
            kind = self.ours.tree.joint_types[i]
            if kind == "floating":
                value = np.concatenate([value[4:], quat_xyzw(value[:4])])
            elif kind == "mrp_floating":
                value = np.concatenate([value[3:], quat_xyzw(quaternion_of_mrp(value[:3]))])
            elif kind == "sin_cos_revolute":
                value = value[::-1] / np.linalg.norm(value)
            elif kind == "spherical":
                value = quat_xyzw(value)
            elif kind == "planar":
                value = np.array([value[0], value[1], np.cos(value[2]), np.sin(value[2])])
            elif joint.nq == 2:
                value = np.array([np.cos(value[0]), np.sin(value[0])])
            out[joint.idx_q : joint.idx_q + joint.nq] = value
        return out

    def v(self, v) -> np.ndarray:
        """Our velocity or acceleration in pinocchio's coordinates."""
        return self.G @ float64(v)

    def forces(self, f_ext) -> list[pin.Force]:
        """Our external wrenches (nb, 6), in body axes at body origins, as pinocchio's list."""
        forces = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for i, wrench in enumerate(float64(f_ext)):
            turn = self.alignments[i].T
            forces[self.joint_ids[i]] = pin.Force(turn @ wrench[3:], turn @ wrench[:3])
        return forces

    def _frame(self, link: str) -> int:
        frame = self.model.getFrameId(link, pin.FrameType.BODY)
        if frame >= len(self.model.frames):
            raise NameNotFoundError(link, "link", [frame.name for frame in self.model.frames])
        return frame

    def _columns(self, J) -> np.ndarray:
        """Angular rows first, columns of our velocities; of a robot with one joint pinocchio returns a vector."""
        return swap_rows(np.reshape(J, (6, -1))) @ self.G

    # Kinematics

    def fk(self, q) -> np.ndarray:
        """(n_links, 4, 4)."""
        pin.framesForwardKinematics(self.model, self.data, self.q(q))
        return np.stack([self.data.oMf[self._frame(link)].homogeneous for link in self.ours.link_names])

    def jacobian(self, q, link: str, frame: str = "world_aligned") -> np.ndarray:
        """(6, nv), angular rows first."""
        J = pin.computeFrameJacobian(self.model, self.data, self.q(q), self._frame(link), FRAMES[frame])
        return self._columns(J)

    def jacobian_dot(self, q, v, link: str, frame: str = "world_aligned") -> np.ndarray:
        """Time derivative of `jacobian` along v."""
        pin.computeJointJacobiansTimeVariation(self.model, self.data, self.q(q), self.v(v))
        pin.updateFramePlacements(self.model, self.data)
        dJ = pin.getFrameJacobianTimeVariation(self.model, self.data, self._frame(link), FRAMES[frame])
        return self._columns(dJ)

    def velocity(self, q, v, link: str, frame: str = "world_aligned") -> np.ndarray:
        """Twist [w; v] of a link."""
        pin.forwardKinematics(self.model, self.data, self.q(q), self.v(v))
        pin.updateFramePlacements(self.model, self.data)
        V = pin.getFrameVelocity(self.model, self.data, self._frame(link), FRAMES[frame])
        return np.concatenate([V.angular, V.linear])

    def acceleration(self, q, v, a, link: str, frame: str = "world_aligned") -> np.ndarray:
        """Time derivative of the coordinates of `velocity`: in world-aligned axes the classical acceleration."""
        pin.forwardKinematics(self.model, self.data, self.q(q), self.v(v), self.v(a))
        pin.updateFramePlacements(self.model, self.data)
        take = pin.getFrameClassicalAcceleration if frame == "world_aligned" else pin.getFrameAcceleration
        A = take(self.model, self.data, self._frame(link), FRAMES[frame])
        return np.concatenate([A.angular, A.linear])

    # Dynamics

    def rnea(self, q, v, a, f_ext=None) -> np.ndarray:
        """Inverse dynamics. Our rotor inertias belong to coordinates, so they are tied by G as well."""
        arguments = (self.model, self.data, self.q(q), self.v(v), self.v(a))
        return self.G.T @ (pin.rnea(*arguments) if f_ext is None else pin.rnea(*arguments, self.forces(f_ext)))

    def joint_wrenches(self, q, v, a, f_ext) -> np.ndarray:
        """(nb, 6) wrenches [n; f] that each joint passes on to its body, in body axes at the body's origin."""
        self.rnea(q, v, a, f_ext)
        wrenches = [self.data.f[j] for j in self.joint_ids]
        pairs = zip(self.alignments, wrenches, strict=True)
        return np.stack([np.concatenate([turn @ w.angular, turn @ w.linear]) for turn, w in pairs])

    def crba(self, q) -> np.ndarray:
        """The whole mass matrix."""
        M = pin.crba(self.model, self.data, self.q(q))
        M = np.triu(M) + np.triu(M, 1).T
        return self.G.T @ M @ self.G

    def aba(self, q, v, tau, f_ext=None) -> np.ndarray:
        """Forward dynamics; with mimic joints by a solve, since pinocchio's joints are then not tied."""
        if self.has_mimics:
            bias = self.rnea(q, v, np.zeros(self.ours.nv), f_ext)
            return np.linalg.solve(self.crba(q), float64(tau) - bias)
        # G is a permutation here, so it also takes forces.
        arguments = (self.model, self.data, self.q(q), self.v(v), self.G @ float64(tau))
        return self.G.T @ (pin.aba(*arguments) if f_ext is None else pin.aba(*arguments, self.forces(f_ext)))

    def rnea_derivatives(self, q, v, a, f_ext) -> tuple[np.ndarray, ...]:
        """Derivatives of `rnea` along q (as a velocity), v and a."""
        arguments = (self.q(q), self.v(v), self.v(a), self.forces(f_ext))
        parts = [x.copy() for x in pin.computeRNEADerivatives(self.model, self.data, *arguments)]
        parts[2] = np.triu(parts[2]) + np.triu(parts[2], 1).T
        return tuple(self.G.T @ x @ self.G for x in parts)

    def aba_derivatives(self, q, v, tau, f_ext) -> tuple[np.ndarray, ...]:
        """Derivatives of `aba` along q (as a velocity), v and tau; with mimic joints from those of `rnea`."""
        if self.has_mimics:
            dq, dv, M = self.rnea_derivatives(q, v, self.aba(q, v, tau, f_ext), f_ext)
            inverse = np.linalg.inv(M)
            return -inverse @ dq, -inverse @ dv, inverse
        arguments = (self.q(q), self.v(v), self.G @ float64(tau), self.forces(f_ext))
        parts = [x.copy() for x in pin.computeABADerivatives(self.model, self.data, *arguments)]
        parts[2] = np.triu(parts[2]) + np.triu(parts[2], 1).T
        return tuple(self.G.T @ x @ self.G for x in parts)

    def coriolis_matrix(self, q, v) -> np.ndarray:
        """C(q, v) by the Christoffel-consistent factorization of pinocchio."""
        return self.G.T @ pin.computeCoriolisMatrix(self.model, self.data, self.q(q), self.v(v)) @ self.G

    def torque_regressor(self, q, v, a) -> np.ndarray:
        """(nv, 10 nb), ten columns for each of our bodies, of parameters in its axes."""
        rows = pin.computeJointTorqueRegressor(self.model, self.data, self.q(q), self.v(v), self.v(a))
        return self.G.T @ self._of_our_bodies(rows)

    def energy_regressor(self, q, v) -> np.ndarray:
        """(2, 10 nb): of the kinetic energy, and of the potential energy."""
        kinetic = pin.computeKineticEnergyRegressor(self.model, self.data, self.q(q), self.v(v))
        potential = pin.computePotentialEnergyRegressor(self.model, self.data, self.q(q))
        return self._of_our_bodies(np.stack([kinetic, potential]).reshape(2, -1))

    def _of_our_bodies(self, columns: np.ndarray) -> np.ndarray:
        blocks = [
            columns[:, 10 * (j - 1) : 10 * j] @ turned_parameters(alignment.T)
            for j, alignment in zip(self.joint_ids, self.alignments, strict=True)
        ]
        return np.concatenate(blocks, axis=1)

    def gravity(self, q) -> np.ndarray:
        """Generalized gravity forces."""
        return self.G.T @ pin.computeGeneralizedGravity(self.model, self.data, self.q(q))

    def kinetic_energy(self, q, v) -> float:
        """Kinetic energy, from pinocchio's mass matrix: its computeKineticEnergy leaves out the rotors of revolute
        joints while it counts those of prismatic ones (seen in 4.1)."""
        return float(0.5 * float64(v) @ self.crba(q) @ float64(v))

    def potential_energy(self, q) -> float:
        """Potential energy of gravity, zero at the world's origin."""
        return float(pin.computePotentialEnergy(self.model, self.data, self.q(q)))

    # Centroidal

    def center_of_mass(self, q) -> np.ndarray:
        """Centre of mass of all that moves."""
        return pin.centerOfMass(self.model, self.data, self.q(q)).copy()

    def com_jacobian(self, q) -> np.ndarray:
        """(3, nv)."""
        return pin.jacobianCenterOfMass(self.model, self.data, self.q(q)).reshape(3, -1) @ self.G

    def com_motion(self, q, v, a) -> tuple[np.ndarray, np.ndarray]:
        """Velocity and acceleration of the centre of mass."""
        pin.centerOfMass(self.model, self.data, self.q(q), self.v(v), self.v(a))
        return self.data.vcom[0].copy(), self.data.acom[0].copy()

    def momentum_matrix(self, q) -> np.ndarray:
        """(6, nv) about the world's origin."""
        com = self.center_of_mass(q)
        Ag = self._columns(pin.computeCentroidalMap(self.model, self.data, self.q(q)))
        return change_velocity_origin(com).T @ Ag


def pin_model(model: Model) -> PinRobot:
    """Writes the numbers of a Model into pinocchio, joint by joint."""
    twin, tree = pin.Model(), model.tree
    twin.gravity = pin.Motion(float64(model.gravity), np.zeros(3))
    placements, axes = float64(model.joint_placements), float64(model.joint_axes)
    ids, alignments = [-1] * model.nb, [np.eye(3)] * model.nb
    given = iter(float64(model.joint_parameters))
    own = [[next(given) for _ in joint.parameters] for joint in tree.joints]
    for i in tree.order:
        if tree.joint_types[i] in ("planar", "sin_cos_revolute"):
            alignments[i] = plane_alignment(axes[i])
        parent = tree.parents[i]
        before = _se3(placements[i], alignments[parent].T if parent >= 0 else np.eye(3), alignments[i])
        joint = _JOINTS[tree.joint_types[i]](axes[i], *own[i])
        ids[i] = twin.addJoint(0 if parent < 0 else ids[parent], joint, before, tree.joint_names[i])
        mass, com, inertia = com_inertia(float64(model.inertias)[i])
        turn = alignments[i].T
        twin.appendBodyToJoint(ids[i], pin.Inertia(mass, turn @ com, turn @ inertia @ turn.T), pin.SE3.Identity())
    for name, body, placement in zip(tree.link_names, tree.link_bodies, float64(model.link_placements), strict=True):
        turn = alignments[body].T if body >= 0 else np.eye(3)
        joint_id = ids[body] if body >= 0 else 0
        twin.addFrame(pin.Frame(name, joint_id, 0, _se3(placement, turn, np.eye(3)), pin.FrameType.BODY))
    return _with_armature(PinRobot(model, twin, ids, alignments))


def pin_from_urdf(text: str, model: Model) -> PinRobot:
    """Lets pinocchio read a file; joints and links are matched with ours by name (planar joints are not supported)."""
    if model.joint_names[:1] == ("floating_base",):
        twin = pin.buildModelFromXML(text, pin.JointModelFreeFlyer(), "floating_base")
    else:
        twin = pin.buildModelFromXML(text)
    twin.gravity = pin.Motion(float64(model.gravity), np.zeros(3))
    ids = [twin.getJointId(name) for name in model.joint_names]
    robot = PinRobot(model, twin, ids, [np.eye(3)] * model.nb)
    return _with_armature(robot)


def pin_twin(model: Model, text: bytes | None = None) -> tuple[PinRobot, str]:
    """The robot as Pinocchio reads a URDF file; of our numbers where there is none, or it cannot read it, and why."""
    if text is None:
        return pin_model(model), ""
    if "planar" in model.tree.joint_types:
        return pin_model(model), "planar joint: Pinocchio reads our numbers"
    read = _without_shapes(text)
    plain = re.sub(r'="\s*([^"]*?)\s*"', r'="\1"', read)
    # urdfdom drops, with a word on the console, an inertia of which a number ends in a blank.
    note = "" if plain == read else "Pinocchio reads numbers without the blanks around them"
    try:
        return pin_from_urdf(plain, model), note
    except ValueError:
        return pin_model(model), "Pinocchio refuses the file: it reads our numbers"


def _without_shapes(text: bytes) -> str:
    """The document without visual and collision elements, of which urdfdom complains at length."""
    return re.sub(r"<(visual|collision)\b(?:[^>]*[^/])?>.*?</\1\s*>", "", text.decode("utf-8"), flags=re.DOTALL)


_JOINTS: dict[str, Callable[..., pin.JointModel]] = {
    "revolute": pin.JointModelRevoluteUnaligned,
    "continuous": pin.JointModelRevoluteUnaligned,
    "prismatic": pin.JointModelPrismaticUnaligned,
    "planar": lambda axis: pin.JointModelPlanar(),
    "spherical": lambda axis: pin.JointModelSpherical(),
    "floating": lambda axis: pin.JointModelFreeFlyer(),
    "sin_cos_revolute": lambda axis: pin.JointModelRUBZ(),
    "screw": lambda axis, pitch: pin.JointModelHelicalUnaligned(axis, pitch),
    "mrp_floating": lambda axis: pin.JointModelFreeFlyer(),
}


def _se3(T: np.ndarray, left: np.ndarray, right: np.ndarray) -> pin.SE3:
    return pin.SE3(left @ T[:3, :3] @ right, left @ T[:3, 3])


def _with_armature(robot: PinRobot) -> PinRobot:
    """Rotor inertia of each coordinate, on the joint that owns it and not on those that mimic it."""
    armature = np.zeros(robot.model.nv)
    owners = [i for i, mimic in enumerate(robot.ours.tree.mimics) if mimic is None]
    maps = joint_velocity_map(robot.ours)
    for i in owners:
        at = robot.model.joints[robot.joint_ids[i]].idx_v
        own = maps[i] @ float64(robot.ours.armature)
        armature[at : at + len(own)] = swap_rows(own) if len(own) == 6 else own
    robot.model.armature = armature
    robot.data = robot.model.createData()
    return robot
