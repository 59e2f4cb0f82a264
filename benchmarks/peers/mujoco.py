"""MuJoCo (C, float64) through its Python bindings; the same calls on a robot of one joint are subtracted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import mujoco as mj
import numpy as np

from rbydyn_jax import to_urdf

from ..case import CHECKED, Case, Entry, chain
from . import all_links, loop, placement

_COMPILER = '<mujoco><compiler fusestatic="true" discardvisual="true" balanceinertia="true"/></mujoco>'


class Robot:
    """A robot in MuJoCo without contacts and limits. A call leaves its results in MuJoCo's arrays."""

    def __init__(self, urdf: str, joint_names: tuple[str, ...], inputs: dict[str, np.ndarray]) -> None:
        text = urdf[: urdf.rindex("</robot>")] + _COMPILER + "</robot>"
        self.model = mj.MjModel.from_xml_string(text)
        self.model.opt.disableflags = mj.mjtDisableBit.mjDSBL_CONTACT | mj.mjtDisableBit.mjDSBL_CONSTRAINT
        self.model.opt.gravity[:] = (0, 0, -9.81)
        for x in (self.model.dof_damping, self.model.dof_armature, self.model.dof_frictionloss):
            x[:] = 0
        self.data = mj.MjData(self.model)
        self.order = np.array([self.model.joint(name).dofadr[0] for name in joint_names])  # ours -> theirs
        self.bodies = np.array([self.model.joint(name).bodyid[0] for name in joint_names])
        self.carrier, self.offset = int(self.bodies[-1]), np.zeros(3)
        inverse = np.argsort(self.order)
        self.inputs = {name: list(np.ascontiguousarray(inputs[name][:, inverse])) for name in ("q", "v", "a", "tau")}
        n = self.model.nv
        self.torque, self.M, self.a = np.zeros(n), np.zeros((n, n)), np.zeros((1, n))
        self.unit, self.inverse = np.eye(n), np.zeros((n, n))
        self.linear, self.angular = np.zeros((3, n)), np.zeros((3, n))

    def _kinematics(self, k: int) -> None:
        self.data.qpos[:] = self.inputs["q"][k]
        mj.mj_kinematics(self.model, self.data)

    def _com_kinematics(self, k: int) -> None:
        self._kinematics(k)
        mj.mj_comPos(self.model, self.data)

    def _factors(self, k: int) -> None:
        self._com_kinematics(k)
        mj.mj_makeM(self.model, self.data)
        mj.mj_factorM(self.model, self.data)

    def fk(self, k: int) -> None:
        self._kinematics(k)

    def jacobian(self, k: int) -> None:
        self._com_kinematics(k)
        point = self.data.xpos[self.carrier] + self.data.xmat[self.carrier].reshape(3, 3) @ self.offset
        mj.mj_jac(self.model, self.data, self.linear, self.angular, point, self.carrier)

    def com_jacobian(self, k: int) -> None:
        self._com_kinematics(k)
        mj.mj_jacSubtreeCom(self.model, self.data, self.linear, 0)

    def rnea(self, k: int) -> None:
        self.data.qvel[:] = self.inputs["v"][k]
        self.data.qacc[:] = self.inputs["a"][k]
        self._com_kinematics(k)
        mj.mj_comVel(self.model, self.data)
        mj.mj_rne(self.model, self.data, 1, self.torque)

    def crba(self, k: int) -> None:
        self._com_kinematics(k)
        mj.mj_makeM(self.model, self.data)
        mj.mj_fullM(self.model, self.data, self.M)

    def mass_matrix_inverse(self, k: int) -> None:
        self._factors(k)
        mj.mj_solveM(self.model, self.data, self.inverse, self.unit)

    def aba(self, k: int) -> None:
        self.data.qvel[:] = self.inputs["v"][k]
        self._factors(k)
        mj.mj_comVel(self.model, self.data)
        mj.mj_rne(self.model, self.data, 0, self.torque)
        mj.mj_solveM(self.model, self.data, self.a, (self.inputs["tau"][k] - self.torque)[None])

    def operations(self) -> dict[str, Callable[[int], None]]:
        names = ("fk", "jacobian", "com_jacobian", "rnea", "crba", "mass_matrix_inverse", "aba")
        return {name: getattr(self, name) for name in names}

    def told(self, operation: str) -> np.ndarray:
        """The results of the last call of an operation in our order; for `fk` the poses of the bodies."""
        o, d = self.order, self.data
        if operation == "fk":
            T = np.zeros((len(o), 4, 4))
            T[:, :3, :3], T[:, :3, 3], T[:, 3, 3] = d.xmat[self.bodies].reshape(-1, 3, 3), d.xpos[self.bodies], 1
            return T
        matrix = {"crba": self.M, "mass_matrix_inverse": self.inverse}.get(operation)
        if matrix is not None:
            return matrix[o][:, o]
        if operation == "jacobian":
            return np.concatenate([self.angular, self.linear])[:, o]
        return {"com_jacobian": self.linear, "rnea": self.torque, "aba": self.a[0]}[operation][..., o]


def entries(case: Case, operations: Iterable[str], batches: Iterable[int]) -> Iterator[Entry]:
    model = case.model
    robot = Robot(to_urdf(model, collisions=False), model.joint_names, case.inputs)
    body, T = placement(model, case.link)
    robot.carrier, robot.offset = int(robot.bodies[body]), T[:3, 3]
    one = chain(1)
    small = {name: x[:, :1] for name, x in case.inputs.items()}
    empty = Robot(to_urdf(one, collisions=False), one.joint_names, small).operations()
    for operation, call in robot.operations().items():
        if operation not in operations:
            continue

        def values(operation: str = operation, call: Callable = call) -> np.ndarray:
            rows = []
            for k in range(CHECKED):
                call(k)
                told = robot.told(operation)
                rows.append(np.array(all_links(model, told) if operation == "fk" else told).ravel())
            return np.stack(rows) * (case.moving_share if operation == "com_jacobian" else 1.0)

        yield Entry("mujoco", operation, 1, loop(call), loop(empty[operation]), values)


def version() -> str:
    return mj.__version__
