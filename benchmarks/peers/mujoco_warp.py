"""MuJoCo Warp (MuJoCo's algorithms in kernels for NVIDIA GPUs, float32) on the robot that MuJoCo reads.

Each operation is one CUDA graph. It leaves its results in MuJoCo's arrays on the device.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable

import mujoco_warp as mjw
import numpy as np
import warp as wp

from rbydyn_jax import to_urdf

from ..case import CHECKED, Case
from . import all_links, mujoco


class Robot:
    """A batch of configurations of one robot."""

    def __init__(self, case: Case, batch: int) -> None:
        self.case = case
        robot = mujoco.Robot(to_urdf(case.model, collisions=False), case.model.joint_names, case.inputs)
        self.order, self.bodies = robot.order, robot.bodies
        self.m, self.d = mjw.put_model(robot.model), mjw.put_data(robot.model, robot.data, nworld=batch)
        given = {name: x[:batch, np.argsort(robot.order)].astype(np.float32) for name, x in case.inputs.items()
                 if name in ("q", "v", "a", "tau")}  # fmt: skip
        self.d.qpos, self.d.qvel, self.d.qacc, self.tau = (wp.array(given[x]) for x in ("q", "v", "a", "tau"))
        self.force, self.acceleration = wp.zeros_like(self.tau), wp.zeros_like(self.tau)

    def operations(self) -> dict[str, Callable[[], None]]:
        """What launches the kernels of each operation."""
        return {"fk": self._fk, "rnea": self._rnea, "crba": self._crba, "aba": self._aba}

    def result(self, operation: str) -> np.ndarray:
        """The results of the last launch on the first configurations, in our conventions."""
        chosen = slice(CHECKED)
        if operation == "fk":
            turned, at = self.d.xmat.numpy()[chosen, self.bodies], self.d.xpos.numpy()[chosen, self.bodies]
            poses = np.zeros((*at.shape[:2], 4, 4))
            poses[..., :3, :3], poses[..., :3, 3], poses[..., 3, 3] = turned, at, 1.0
            return all_links(self.case.model, poses).reshape(CHECKED, -1)
        found = self.d.qfrc_bias if operation == "rnea" else self.acceleration
        return found.numpy()[chosen, self.order].astype(np.float64)

    def _fk(self) -> None:
        mjw.kinematics(self.m, self.d)

    def _motion(self) -> None:
        for step in (mjw.kinematics, mjw.com_pos, mjw.com_vel):
            step(self.m, self.d)

    def _rnea(self) -> None:
        self._motion()
        mjw.rne(self.m, self.d, flg_acc=True)

    def _crba(self) -> None:
        mjw.kinematics(self.m, self.d)
        mjw.com_pos(self.m, self.d)
        mjw.crb(self.m, self.d)

    def _aba(self) -> None:
        self._motion()
        mjw.crb(self.m, self.d)
        mjw.factor_m(self.m, self.d)
        mjw.rne(self.m, self.d)
        wp.launch(_difference, dim=self.tau.shape, inputs=[self.tau, self.d.qfrc_bias], outputs=[self.force])
        mjw.solve_m(self.m, self.d, self.acceleration, self.force)


@wp.kernel
def _difference(x: wp.array2d[float], y: wp.array2d[float], out: wp.array2d[float]):
    i, j = wp.tid()
    out[i, j] = x[i, j] - y[i, j]


def version() -> str:
    return importlib.metadata.version("mujoco-warp")
