"""MuJoCo (C, float64) through its Python bindings; the same calls on a robot of one joint are subtracted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import mujoco as mj
import numpy as np

from rbydyn_jax import to_urdf

from ..case import CHECKED, Case, Entry, chain
from . import loop

_COMPILER = '<mujoco><compiler fusestatic="true" discardvisual="true" balanceinertia="true"/></mujoco>'


class Robot:
    """A robot in MuJoCo without contacts and limits, and the results of its calls."""

    def __init__(self, urdf: str, joint_names: tuple[str, ...], inputs: dict[str, np.ndarray]) -> None:
        text = urdf[: urdf.rindex("</robot>")] + _COMPILER + "</robot>"
        self.model = mj.MjModel.from_xml_string(text)
        self.model.opt.disableflags = mj.mjtDisableBit.mjDSBL_CONTACT | mj.mjtDisableBit.mjDSBL_CONSTRAINT
        self.model.opt.gravity[:] = (0, 0, -9.81)
        for x in (self.model.dof_damping, self.model.dof_armature, self.model.dof_frictionloss):
            x[:] = 0
        self.data = mj.MjData(self.model)
        self.order = np.array([self.model.joint(name).dofadr[0] for name in joint_names])  # ours -> theirs
        inverse = np.argsort(self.order)
        self.inputs = {name: list(np.ascontiguousarray(x[:, inverse])) for name, x in inputs.items()}
        n = self.model.nv
        self.torque, self.M, self.a = np.zeros(n), np.zeros((n, n)), np.zeros((1, n))

    def _kinematics(self, k: int) -> None:
        self.data.qpos[:] = self.inputs["q"][k]
        mj.mj_kinematics(self.model, self.data)

    def fk(self, k: int) -> None:
        self._kinematics(k)

    def rnea(self, k: int) -> np.ndarray:
        self.data.qvel[:] = self.inputs["v"][k]
        self.data.qacc[:] = self.inputs["a"][k]
        self._kinematics(k)
        mj.mj_comPos(self.model, self.data)
        mj.mj_comVel(self.model, self.data)
        mj.mj_rne(self.model, self.data, 1, self.torque)
        return self.torque[self.order]

    def crba(self, k: int) -> np.ndarray:
        self._kinematics(k)
        mj.mj_comPos(self.model, self.data)
        mj.mj_makeM(self.model, self.data)
        mj.mj_fullM(self.model, self.data, self.M)
        return self.M[self.order][:, self.order]

    def aba(self, k: int) -> np.ndarray:
        m, d = self.model, self.data
        d.qvel[:] = self.inputs["v"][k]
        self._kinematics(k)
        mj.mj_comPos(m, d)
        mj.mj_makeM(m, d)
        mj.mj_factorM(m, d)
        mj.mj_comVel(m, d)
        mj.mj_rne(m, d, 0, self.torque)
        mj.mj_solveM(m, d, self.a, (self.inputs["tau"][k] - self.torque)[None])
        return self.a[0][self.order]

    def operations(self) -> dict[str, Callable[[int], object]]:
        return {"fk": self.fk, "rnea": self.rnea, "crba": self.crba, "aba": self.aba}


def entries(case: Case, operations: Iterable[str], batches: Iterable[int]) -> Iterator[Entry]:
    robot = Robot(to_urdf(case.model, collisions=False), case.model.joint_names, case.inputs)
    one = chain(1)
    small = {name: x[:, :1] for name, x in case.inputs.items()}
    empty = Robot(to_urdf(one, collisions=False), one.joint_names, small).operations()
    for operation, call in robot.operations().items():
        if operation not in operations:
            continue

        def values(call: Callable = call) -> np.ndarray:
            return np.stack([np.array(call(k)).ravel() for k in range(CHECKED)])

        yield Entry("mujoco", operation, 1, loop(call), loop(empty[operation]), None if operation == "fk" else values)


def version() -> str:
    return mj.__version__
