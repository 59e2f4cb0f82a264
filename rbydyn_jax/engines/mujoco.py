"""A Model in MuJoCo, and MuJoCo's results in our conventions.

MuJoCo's free joint measures its linear velocity in world axes, so there the map between velocities depends on q:
v_mujoco = X(q) v. Mimic and planar joints have no counterpart and are refused.
"""

from __future__ import annotations

import mujoco
import numpy as np

from .._errors import ModelError
from ..model.model import Model
from .conventions import com_inertia, float64, quaternion_matrix

_TYPES = {
    "revolute": mujoco.mjtJoint.mjJNT_HINGE,
    "continuous": mujoco.mjtJoint.mjJNT_HINGE,
    "prismatic": mujoco.mjtJoint.mjJNT_SLIDE,
    "spherical": mujoco.mjtJoint.mjJNT_BALL,
    "floating": mujoco.mjtJoint.mjJNT_FREE,
}
_LEAST = 2e-14  # [kg, kg m^2]; MuJoCo refuses a body between moving joints that has less than 1e-14


class MujocoRobot:
    """One robot in MuJoCo; every method takes and returns our conventions, one configuration at a time."""

    def __init__(self, model: Model) -> None:
        self.ours = model
        self.placements = float64(model.joint_placements)
        self.model = _specification(model).compile()
        self.data = mujoco.MjData(self.model)

    def q(self, q) -> np.ndarray:
        """Our configuration in MuJoCo's coordinates."""
        out = np.zeros(self.model.nq)
        for i, name in enumerate(self.ours.joint_names):
            joint, value = self.model.joint(name), float64(q)[self.ours.tree.q_slices[i]]
            if self.ours.tree.joint_types[i] == "floating":
                before = self.placements[i]
                turned = np.zeros(4)
                mujoco.mju_mulQuat(turned, _quaternion(before[:3, :3]), value[:4] / np.linalg.norm(value[:4]))
                value = np.concatenate([before[:3, :3] @ value[4:] + before[:3, 3], turned])
            elif len(value) == 4:
                value = value / np.linalg.norm(value)
            at = joint.qposadr[0]
            out[at : at + len(value)] = value
        return out

    def velocity_map(self, q) -> np.ndarray:
        """X(q) of v_mujoco = X v."""
        X = np.zeros((self.model.nv, self.ours.nv))
        for i, name in enumerate(self.ours.joint_names):
            at, ours = self.model.joint(name).dofadr[0], self.ours.tree.v_slices[i]
            n = ours.stop - ours.start
            if self.ours.tree.joint_types[i] == "floating":
                value = float64(q)[self.ours.tree.q_slices[i]]
                X[at : at + 3, ours.start + 3 : ours.stop] = self.placements[i][:3, :3] @ quaternion_matrix(value[:4])
                X[at + 3 : at + 6, ours.start : ours.start + 3] = np.eye(3)
            else:
                X[at : at + n, ours] = np.eye(n)
        return X

    def acceleration(self, q, v, a) -> np.ndarray:
        """Our accelerations in MuJoCo's coordinates: X a + dX/dt v."""
        v, a = float64(v), float64(a).copy()
        for i, kind in enumerate(self.ours.tree.joint_types):
            if kind == "floating":
                at = self.ours.tree.v_slices[i].start
                a[at + 3 : at + 6] += np.cross(v[at : at + 3], v[at + 3 : at + 6])
        return self.velocity_map(q) @ a

    def _forward(self, q, v=None) -> None:
        self.data.qpos[:] = self.q(q)
        self.data.qvel[:] = 0.0 if v is None else self.velocity_map(q) @ float64(v)
        mujoco.mj_forward(self.model, self.data)

    def body_poses(self, q) -> np.ndarray:
        """(nb, 4, 4) poses of the bodies that move."""
        self._forward(q)
        poses = np.tile(np.eye(4), (self.ours.nb, 1, 1))
        for i, name in enumerate(self.ours.joint_names):
            body = self.data.body(name)
            poses[i, :3, :3], poses[i, :3, 3] = body.xmat.reshape(3, 3), body.xpos
        return poses

    def jacobian(self, q, body: int) -> np.ndarray:
        """(6, nv) of a body's origin in world axes, angular rows first."""
        self._forward(q)
        linear, angular = np.zeros((3, self.model.nv)), np.zeros((3, self.model.nv))
        mujoco.mj_jacBody(self.model, self.data, linear, angular, self.model.body(self.ours.joint_names[body]).id)
        return np.concatenate([angular, linear]) @ self.velocity_map(q)

    def crba(self, q) -> np.ndarray:
        """The whole mass matrix."""
        self._forward(q)
        M = np.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        X = self.velocity_map(q)
        return X.T @ M @ X

    def rnea(self, q, v, a, f_ext=None) -> np.ndarray:
        """Inverse dynamics under our external wrenches (nb, 6), in body axes at body origins."""
        self._forward(q, v)
        self.data.qacc[:] = self.acceleration(q, v, a)
        mujoco.mj_inverse(self.model, self.data)
        pushed = np.zeros(self.model.nv)
        for name, wrench in zip(self.ours.joint_names, float64(f_ext) if f_ext is not None else (), strict=False):
            body = self.data.body(name)
            R = body.xmat.reshape(3, 3)
            mujoco.mj_applyFT(self.model, self.data, R @ wrench[3:], R @ wrench[:3], body.xpos, body.id, pushed)
        return self.velocity_map(q).T @ (self.data.qfrc_inverse - pushed)

    def energies(self, q, v) -> np.ndarray:
        """Potential and kinetic energy."""
        self._forward(q, v)
        mujoco.mj_energyPos(self.model, self.data)
        mujoco.mj_energyVel(self.model, self.data)
        return self.data.energy.copy()

    def com_and_momentum(self, q, v) -> tuple[np.ndarray, np.ndarray]:
        """Centre of mass of all that moves, and the momentum [l; p] about it."""
        self._forward(q, v)
        mujoco.mj_subtreeVel(self.model, self.data)
        momentum = self.model.body_subtreemass[0] * self.data.subtree_linvel[0]
        return self.data.subtree_com[0].copy(), np.concatenate([self.data.subtree_angmom[0], momentum])


def mujoco_model(model: Model) -> MujocoRobot:
    """Writes the numbers of a Model into MuJoCo, body by body.

    Raises:
        ModelError: MuJoCo has no joint of such a type, or refuses the numbers.
    """
    try:
        return MujocoRobot(model)
    except ValueError as error:
        text = str(error).splitlines()[0].removeprefix("Error: ")
        raise ModelError(text if text.startswith("MuJoCo") else f"MuJoCo: {text}") from None


def _quaternion(R: np.ndarray) -> np.ndarray:
    out = np.zeros(4)
    mujoco.mju_mat2Quat(out, np.ascontiguousarray(R).ravel())
    return out / np.linalg.norm(out)


def _specification(model: Model) -> mujoco.MjSpec:
    tree = model.tree
    refused = {t for t in tree.joint_types if t not in _TYPES} | {"mimic" for m in tree.mimics if m is not None}
    if refused:
        raise ModelError(f"MuJoCo has no {', '.join(sorted(refused))} joint")
    spec = mujoco.MjSpec()
    spec.option.gravity = float64(model.gravity)
    # Frictionless, unlimited and contact-free: the equations of motion alone.
    spec.option.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT)
    spec.compiler.degree = False
    bodies: dict[int, mujoco.MjsBody] = {-1: spec.worldbody}
    placements, axes, armature = float64(model.joint_placements), float64(model.joint_axes), float64(model.armature)
    for i in tree.order:
        name, T = tree.joint_names[i], placements[i]
        body = bodies[tree.parents[i]].add_body(name=name, pos=T[:3, 3], quat=_quaternion(T[:3, :3]))
        mass, com, inertia = com_inertia(float64(model.inertias)[i])
        mass = max(mass, _LEAST)
        inertia = inertia + max(0.0, _LEAST - np.linalg.eigvalsh(inertia)[0]) * np.eye(3)
        order = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
        body.explicitinertial = True
        body.mass, body.ipos, body.fullinertia = mass, com, [inertia[k] for k in order]
        joint = body.add_joint(name=name, type=_TYPES[tree.joint_types[i]])
        if tree.joint_types[i] in ("revolute", "continuous", "prismatic"):
            joint.axis = axes[i]
        joint.armature = armature[tree.v_slices[i].start]
        bodies[i] = body
    return spec
