"""Pinocchio (C++, float64) through its Python bindings; the same call on a robot of one joint is subtracted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pinocchio as pin

from rbydyn_jax import to_urdf

from ..case import CHECKED, LOOP, Case, Entry, chain
from . import loop

SWAP = [3, 4, 5, 0, 1, 2]


class Robot:
    """A robot in pinocchio with its inputs in its own order of joints."""

    def __init__(self, urdf: str, joint_names: tuple[str, ...], link: str, inputs: dict[str, np.ndarray]) -> None:
        self.model = pin.buildModelFromXML(urdf)
        self.data = self.model.createData()
        self.frame = self.model.getFrameId(link, pin.FrameType.BODY)
        at = [self.model.joints[self.model.getJointId(name)].idx_v for name in joint_names]
        self.order = np.array(at)  # ours -> theirs
        self.bodies = np.array([self.model.getJointId(name) - 1 for name in joint_names])
        turned = {name: np.zeros((LOOP, self.model.nv)) for name in inputs}
        for name, x in inputs.items():
            turned[name][:, at] = x[:LOOP]
        neutral = pin.neutral(self.model)
        self.q = [pin.integrate(self.model, neutral, q) for q in turned["q"]]
        self.v, self.a, self.tau = (list(turned[name]) for name in ("v", "a", "tau"))

    def operations(self) -> dict[str, list[tuple[str, Callable[[int], object]]]]:
        """For each operation one or more variants (label, call)."""
        m, d, q, v, a, tau, f = self.model, self.data, self.q, self.v, self.a, self.tau, self.frame
        aligned, local, world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED, pin.Convention.LOCAL, pin.Convention.WORLD
        jacobian = [("", lambda k: pin.computeFrameJacobian(m, d, q[k], f, aligned))]
        derivatives = [("", lambda k: pin.computeRNEADerivatives(m, d, q[k], v[k], a[k]))]
        aba_derivatives = [("", lambda k: pin.computeABADerivatives(m, d, q[k], v[k], tau[k]))]
        return {
            # Poses of the joints alone, which is less than all links: `fk` is compared with the faster.
            "fk": [
                ("", lambda k: pin.forwardKinematics(m, d, q[k])),
                (" all frames", lambda k: pin.framesForwardKinematics(m, d, q[k])),
            ],
            "jacobian": jacobian,
            "com_jacobian": [("", lambda k: pin.jacobianCenterOfMass(m, d, q[k]))],
            "centroidal_momentum_matrix": [("", lambda k: pin.computeCentroidalMap(m, d, q[k]))],
            "rnea": [("", lambda k: pin.rnea(m, d, q[k], v[k], a[k]))],
            "crba": [
                ("", lambda k: pin.crba(m, d, q[k], local)),
                (" world convention", lambda k: pin.crba(m, d, q[k], world)),
            ],
            "aba": [
                ("", lambda k: pin.aba(m, d, q[k], v[k], tau[k], local)),
                (" world convention", lambda k: pin.aba(m, d, q[k], v[k], tau[k], world)),
            ],
            "mass_matrix_inverse": [("", lambda k: pin.computeMinverse(m, d, q[k]))],
            "coriolis_matrix": [("", lambda k: pin.computeCoriolisMatrix(m, d, q[k], v[k]))],
            "torque_regressor": [("", lambda k: pin.computeJointTorqueRegressor(m, d, q[k], v[k], a[k]))],
            # The products with the position or the torques that make it a gradient are not even counted.
            "fk_gradient": jacobian,
            "rnea_gradient": derivatives,
            "rnea_derivatives": derivatives,
            "aba_gradient": aba_derivatives,
            "aba_derivatives": aba_derivatives,
            "rnea_jacobian": derivatives,
        }

    def values(self, operation: str, k: int, link_names: tuple[str, ...]) -> np.ndarray:
        """The result on configuration k in our conventions, flat."""
        m, d, q, v, a, tau, o = self.model, self.data, self.q[k], self.v[k], self.a[k], self.tau[k], self.order
        if operation == "fk":
            pin.framesForwardKinematics(m, d, q)
            return np.stack([d.oMf[m.getFrameId(x, pin.FrameType.BODY)].homogeneous for x in link_names]).ravel()
        if operation in ("jacobian", "fk_gradient"):
            J = pin.computeFrameJacobian(m, d, q, self.frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)[:, o]
            if operation == "jacobian":
                return J[SWAP].ravel()
            pin.framesForwardKinematics(m, d, q)
            return J[:3].T @ d.oMf[self.frame].translation
        if operation == "com_jacobian":
            return pin.jacobianCenterOfMass(m, d, q)[:, o].ravel()
        if operation == "centroidal_momentum_matrix":
            return pin.computeCentroidalMap(m, d, q)[SWAP][:, o].ravel()
        if operation == "rnea":
            return pin.rnea(m, d, q, v, a)[o]
        if operation == "aba":
            return pin.aba(m, d, q, v, tau)[o]
        if operation == "torque_regressor":
            return pin.computeJointTorqueRegressor(m, d, q, v, a)[o].reshape(len(o), -1, 10)[:, self.bodies].ravel()
        matrix = {
            "crba": lambda: _symmetric(pin.crba(m, d, q)),
            "mass_matrix_inverse": lambda: _symmetric(pin.computeMinverse(m, d, q)),
            "coriolis_matrix": lambda: pin.computeCoriolisMatrix(m, d, q, v),
        }.get(operation)
        if matrix is not None:
            return matrix()[o][:, o].ravel()
        if operation in ("aba_gradient", "aba_derivatives"):
            found = pin.computeABADerivatives(m, d, q, v, tau)
        else:
            found = pin.computeRNEADerivatives(m, d, q, v, a)
        dq, dv, last = (x.copy() for x in found)
        parts = [x[o][:, o] for x in (dq, dv, _symmetric(last))]
        if operation in ("rnea_gradient", "aba_gradient"):
            value = self.values(operation.removesuffix("_gradient"), k, link_names)
            return np.concatenate([x.T @ value for x in parts])
        return np.concatenate([x.ravel() for x in parts])


def entries(case: Case, operations: Iterable[str], batches: Iterable[int]) -> Iterator[Entry]:
    model = case.model
    robot = Robot(to_urdf(model, collisions=False), model.joint_names, case.link, case.inputs)
    one = chain(1)
    small = {name: x[:, :1] for name, x in case.inputs.items()}
    empty = Robot(to_urdf(one, collisions=False), one.joint_names, one.link_names[-1], small).operations()
    for operation, variants in robot.operations().items():
        if operation not in operations:
            continue
        for (label, call), (_, nothing) in zip(variants, empty[operation], strict=True):

            def values(operation: str = operation) -> np.ndarray:
                rows = np.stack([robot.values(operation, k, model.link_names) for k in range(CHECKED)])
                return rows * case.moving_share if operation == "com_jacobian" else rows

            yield Entry(f"pinocchio{label}", operation, 1, loop(call), loop(nothing), values if not label else None)


def version() -> str:
    return pin.__version__


def _symmetric(upper: np.ndarray) -> np.ndarray:
    return np.triu(upper) + np.triu(upper, 1).T
