"""Pinocchio (C++, float64) through its Python bindings; the same calls on a robot of one joint are subtracted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pinocchio as pin

from rbydyn_jax import Model, to_urdf
from rbydyn_jax.engines.pinocchio import PinRobot, pin_model

from ..case import CHECKED, LOOP, Case, Entry, chain
from . import loop

Call = Callable[[int], object]


class Robot:
    """A robot in pinocchio, with inputs in its own coordinates."""

    def __init__(self, model: Model, link: str, inputs: dict[str, np.ndarray]) -> None:
        self.twin = _read(model)
        self.model, self.data = self.twin.model, self.twin.data
        self.frame = self.model.getFrameId(link, pin.FrameType.BODY)
        self.link, self.inputs = link, inputs
        self.q = [self.twin.q(q) for q in inputs["q"][:LOOP]]
        self.v, self.a, self.tau = ([self.twin.v(x) for x in inputs[name][:LOOP]] for name in ("v", "a", "tau"))
        self.zero = np.zeros(self.model.nv)

    def operations(self) -> dict[str, list[tuple[str, Call]]]:
        """For each operation one or more variants (label, call)."""
        m, d, q, v, tau = self.model, self.data, self.q, self.v, self.tau
        local, world = pin.Convention.LOCAL, pin.Convention.WORLD
        return {name: [("", call)] for name, call in (self._values() | self._derivatives()).items()} | {
            # Poses of the joints alone, which is less than all links: `fk` is compared with the faster.
            "fk": [
                ("", lambda k: pin.forwardKinematics(m, d, q[k])),
                (" all frames", lambda k: pin.framesForwardKinematics(m, d, q[k])),
            ],
            "crba": [
                ("", lambda k: pin.crba(m, d, q[k], local)),
                (" world convention", lambda k: pin.crba(m, d, q[k], world)),
            ],
            "aba": [
                ("", lambda k: pin.aba(m, d, q[k], v[k], tau[k], local)),
                (" world convention", lambda k: pin.aba(m, d, q[k], v[k], tau[k], world)),
            ],
        }

    def _values(self) -> dict[str, Call]:
        m, d, q, v, a, f, zero = self.model, self.data, self.q, self.v, self.a, self.frame, self.zero
        aligned, joint = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED, self.model.frames[self.frame].parentJoint

        def placed(k: int, *rates: np.ndarray) -> None:
            pin.forwardKinematics(m, d, q[k], *rates)
            pin.updateFramePlacement(m, d, f)

        def jacobian(k: int) -> object:
            return pin.computeFrameJacobian(m, d, q[k], f, aligned)

        def hessian(k: int) -> object:
            pin.computeJointKinematicHessians(m, d, q[k])
            return pin.getJointKinematicHessian(m, d, joint, aligned)

        def velocity(k: int) -> object:
            placed(k, v[k])
            return pin.getFrameVelocity(m, d, f, aligned)

        def acceleration(k: int, a: np.ndarray) -> object:
            placed(k, v[k], a)
            return pin.getFrameClassicalAcceleration(m, d, f, aligned)

        def jacobian_dot(k: int) -> object:
            pin.computeJointJacobiansTimeVariation(m, d, q[k], v[k])
            pin.updateFramePlacement(m, d, f)
            return pin.getFrameJacobianTimeVariation(m, d, f, aligned)

        def mobility(k: int) -> None:  # the products and the inverse of the 6x6 matrix are not even counted
            pin.computeMinverse(m, d, q[k])
            jacobian(k)

        return {
            "link_pose": lambda k: placed(k),
            "body_poses": lambda k: pin.forwardKinematics(m, d, q[k]),
            "jacobian": jacobian,
            "point_jacobian": jacobian,
            "quaternion_jacobian": jacobian,
            "hessian": hessian,
            "point_hessian": hessian,
            "link_velocity": velocity,
            "link_acceleration": lambda k: acceleration(k, a[k]),
            "jacobian_dot": jacobian_dot,
            "jacobian_dot_v": lambda k: acceleration(k, zero),
            "center_of_mass": lambda k: pin.centerOfMass(m, d, q[k]),
            "com_jacobian": lambda k: pin.jacobianCenterOfMass(m, d, q[k]),
            "com_velocity": lambda k: pin.centerOfMass(m, d, q[k], v[k]),
            "com_acceleration": lambda k: pin.centerOfMass(m, d, q[k], v[k], a[k]),
            "momentum": lambda k: pin.computeCentroidalMomentum(m, d, q[k], v[k]),
            "centroidal_momentum": lambda k: pin.computeCentroidalMomentum(m, d, q[k], v[k]),
            "centroidal_momentum_rate": lambda k: pin.computeCentroidalMomentumTimeVariation(m, d, q[k], v[k], a[k]),
            "momentum_matrix": lambda k: pin.computeCentroidalMap(m, d, q[k]),
            "centroidal_momentum_matrix": lambda k: pin.computeCentroidalMap(m, d, q[k]),
            "spatial_inertia": lambda k: pin.ccrba(m, d, q[k], v[k]),
            "kinetic_energy": lambda k: pin.computeKineticEnergy(m, d, q[k], v[k]),
            "potential_energy": lambda k: pin.computePotentialEnergy(m, d, q[k]),
            "rnea": lambda k: pin.rnea(m, d, q[k], v[k], a[k]),
            "bias_forces": lambda k: pin.nonLinearEffects(m, d, q[k], v[k]),
            "gravity_forces": lambda k: pin.computeGeneralizedGravity(m, d, q[k]),
            "joint_reaction_wrenches": lambda k: pin.rnea(m, d, q[k], v[k], a[k]),
            "mass_matrix_inverse": lambda k: pin.computeMinverse(m, d, q[k]),
            "operational_space_inertia": mobility,
            "coriolis_matrix": lambda k: pin.computeCoriolisMatrix(m, d, q[k], v[k]),
            "torque_regressor": lambda k: pin.computeJointTorqueRegressor(m, d, q[k], v[k], a[k]),
            "integrate": lambda k: pin.integrate(m, q[k], v[k]),
            "difference": lambda k: pin.difference(m, q[k], q[(k + 1) % LOOP]),
        }

    def _derivatives(self) -> dict[str, Call]:
        """Matrices of first derivatives: the products with a cotangent that make gradients are not even counted."""
        m, d, q, v, a, tau, f, zero = self.model, self.data, self.q, self.v, self.a, self.tau, self.frame, self.zero
        aligned = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED

        def jacobian(k: int) -> object:
            return pin.computeFrameJacobian(m, d, q[k], f, aligned)

        def of_velocity(k: int) -> object:
            pin.computeForwardKinematicsDerivatives(m, d, q[k], v[k], zero)
            return pin.getFrameVelocityDerivatives(m, d, f, aligned)

        def of_acceleration(k: int) -> object:
            pin.computeForwardKinematicsDerivatives(m, d, q[k], v[k], a[k])
            return pin.getFrameAccelerationDerivatives(m, d, f, aligned)

        def of_rnea(k: int) -> object:
            return pin.computeRNEADerivatives(m, d, q[k], v[k], a[k])

        def of_aba(k: int) -> object:
            return pin.computeABADerivatives(m, d, q[k], v[k], tau[k])

        def of_momentum(k: int) -> object:
            return pin.computeCentroidalDynamicsDerivatives(m, d, q[k], v[k], a[k])

        def of_com_velocity(k: int) -> object:
            pin.computeForwardKinematicsDerivatives(m, d, q[k], v[k], zero)
            pin.centerOfMass(m, d, q[k], v[k])
            return pin.getCenterOfMassVelocityDerivatives(m, d)

        return {
            "rnea_derivatives": of_rnea,
            "rnea_jacobian": of_rnea,
            "rnea_gradient": of_rnea,
            "aba_derivatives": of_aba,
            "aba_gradient": of_aba,
            "fk_gradient": jacobian,
            # Those of `function_table`, of all results.
            "fk_grad": lambda k: pin.computeJointJacobians(m, d, q[k]),
            "body_poses_grad": lambda k: pin.computeJointJacobians(m, d, q[k]),
            "rnea_grad": of_rnea,
            "aba_grad": of_aba,
            "link_pose_grad": jacobian,
            "link_velocity_grad": of_velocity,
            "link_acceleration_grad": of_acceleration,
            "jacobian_grad": self._values()["hessian"],
            "point_jacobian_grad": self._values()["hessian"],
            "center_of_mass_grad": lambda k: pin.jacobianCenterOfMass(m, d, q[k]),
            "com_velocity_grad": of_com_velocity,
            "centroidal_momentum_grad": of_momentum,
            "centroidal_momentum_rate_grad": of_momentum,
            "potential_energy_grad": lambda k: pin.computeGeneralizedGravity(m, d, q[k]),
            "bias_forces_grad": lambda k: pin.computeRNEADerivatives(m, d, q[k], v[k], zero),
            "gravity_forces_grad": lambda k: pin.computeGeneralizedGravityDerivatives(m, d, q[k]),
        }

    def values(self, operation: str, k: int) -> np.ndarray | None:
        """The result on configuration k in our conventions, flat; None where it is not stated."""
        twin, link = self.twin, self.link
        q, v, a, tau, none = *(self.inputs[x][k] for x in ("q", "v", "a", "tau")), np.zeros((twin.ours.nb, 6))
        stated: dict[str, Callable[[], Any]] = {
            "fk": lambda: twin.fk(q),
            "jacobian": lambda: twin.jacobian(q, link),
            "jacobian_dot": lambda: twin.jacobian_dot(q, v, link),
            "link_velocity": lambda: twin.velocity(q, v, link),
            "link_acceleration": lambda: twin.acceleration(q, v, a, link),
            "fk_gradient": lambda: twin.jacobian(q, link)[3:].T @ self._pose(q)[:3, 3],
            "com_jacobian": lambda: twin.com_jacobian(q),
            "centroidal_momentum_matrix": lambda: pin_momentum_matrix(twin, q),
            "potential_energy": lambda: twin.potential_energy(q),
            "kinetic_energy": lambda: twin.kinetic_energy(q, v),
            "rnea": lambda: twin.rnea(q, v, a),
            "bias_forces": lambda: twin.rnea(q, v, np.zeros_like(v)),
            "gravity_forces": lambda: twin.gravity(q),
            "crba": lambda: twin.crba(q),
            "mass_matrix_inverse": lambda: np.linalg.inv(twin.crba(q)),
            "aba": lambda: twin.aba(q, v, tau),
            "coriolis_matrix": lambda: twin.coriolis_matrix(q, v),
            "torque_regressor": lambda: twin.torque_regressor(q, v, a),
            "rnea_derivatives": lambda: twin.rnea_derivatives(q, v, a, none),
            "rnea_jacobian": lambda: twin.rnea_derivatives(q, v, a, none),
            "aba_derivatives": lambda: twin.aba_derivatives(q, v, tau, none),
            "rnea_gradient": lambda: _contracted(twin.rnea(q, v, a), twin.rnea_derivatives(q, v, a, none)),
            "aba_gradient": lambda: _contracted(twin.aba(q, v, tau), twin.aba_derivatives(q, v, tau, none)),
        }
        if operation not in stated:
            return None
        found = stated[operation]()
        return np.concatenate([np.ravel(x) for x in found]) if isinstance(found, tuple) else np.ravel(found)

    def _pose(self, q: np.ndarray) -> np.ndarray:
        return self.twin.fk(q)[self.twin.ours.link_index(self.link)]


def pin_momentum_matrix(twin: PinRobot, q: np.ndarray) -> np.ndarray:
    """That about the centre of mass of all that moves."""
    found = pin.computeCentroidalMap(twin.model, twin.data, twin.q(q)) @ twin.G
    return found[[3, 4, 5, 0, 1, 2]]


def entries(case: Case, operations: Iterable[str], batches: Iterable[int]) -> Iterator[Entry]:
    model = case.model
    robot = Robot(model, case.link, case.inputs)
    one = chain(1)
    small = {name: x[:, :1] for name, x in case.inputs.items()}
    empty = Robot(one, one.link_names[-1], small).operations()
    for operation, variants in robot.operations().items():
        if operation not in operations:
            continue
        for (label, call), (_, nothing) in zip(variants, empty[operation], strict=True):

            def values(operation: str = operation) -> np.ndarray:
                found = (robot.values(operation, k) for k in range(CHECKED))
                rows = np.stack([x for x in found if x is not None])
                return rows * case.moving_share if operation == "com_jacobian" else rows

            stated = not label and robot.values(operation, 0) is not None
            yield Entry(f"pinocchio{label}", operation, 1, loop(call), loop(nothing), values if stated else None)


def version() -> str:
    return pin.__version__


def _read(model: Model) -> PinRobot:
    """The robot as Pinocchio reads it from a file, with axes along x, y and z where they are; else of our numbers."""
    if set(model.tree.joint_types) <= {"revolute", "continuous", "prismatic", "floating"}:
        twin = pin.buildModelFromXML(to_urdf(model, collisions=False))
        ids = [twin.getJointId(name) for name in model.joint_names]
        return PinRobot(model, twin, ids, [np.eye(3)] * model.nb)
    return pin_model(model)


def _contracted(value: np.ndarray, matrices: Iterable[np.ndarray]) -> np.ndarray:
    return np.concatenate([x.T @ value for x in matrices])
