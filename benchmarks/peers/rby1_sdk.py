"""RB-Y1's own SDK (C++, float64), the robot typed with its number of joints; RB-Y1 only.

Subtracted are the calls that bring a state in and a result out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.etree import ElementTree

import numpy as np
import rby1_sdk
import rby1_sdk.dynamics as sdk

from rbydyn_jax import collision, to_urdf

from ..case import CHECKED, Case, Entry
from . import loop


def entries(case: Case, operations: Iterable[str], batches: Iterable[int]) -> Iterator[Entry]:
    if case.robot != "rby1a":
        return
    model, tree = case.model, case.model.tree
    robot = sdk.Robot_24(sdk.load_robot_from_urdf_data(_with_axes(to_urdf(model)), model.link_names[0]))
    links = [model.link_names[0], case.link]  # and of the others only those that have a capsule
    links += [model.link_names[k] for k in sorted(set(tree.shape_links)) if model.link_names[k] not in links]
    state = robot.make_state(links, list(model.joint_names))
    state.set_gravity(np.array([0, 0, 0, 0, 0, -9.81]))
    q, v, a = (list(case.inputs[name]) for name in ("q", "v", "a"))

    def fk(k: int) -> None:
        state.set_q(q[k])
        robot.compute_forward_kinematics(state)

    def jacobian(k: int) -> np.ndarray:
        fk(k)
        return robot.compute_body_jacobian(state, 0, 1)

    def com_jacobian(k: int) -> np.ndarray:
        fk(k)
        return robot.compute_center_of_mass_jacobian(state, 0)

    def crba(k: int) -> np.ndarray:
        fk(k)
        return robot.compute_mass_matrix(state)

    def rnea(k: int) -> np.ndarray:
        set_all(k)
        robot.compute_forward_kinematics(state)
        robot.compute_diff_forward_kinematics(state)
        robot.compute_2nd_diff_forward_kinematics(state)
        robot.compute_inverse_dynamics(state)
        return state.get_tau()

    def self_distance(k: int) -> list:
        fk(k)
        return robot.detect_collisions_or_nearest_links(state, 1)

    def set_q(k: int) -> None:
        state.set_q(q[k])

    def set_all(k: int) -> None:
        state.set_q(q[k])
        state.set_qdot(v[k])
        state.set_qddot(a[k])

    def set_all_and_get(k: int) -> np.ndarray:
        set_all(k)
        return state.get_tau()

    def all_distances() -> np.ndarray:
        pairs = collision.pairs(model)
        rows = []
        for k in range(CHECKED):
            fk(k)
            found = robot.detect_collisions_or_nearest_links(state, len(pairs))
            by_links = {frozenset((x.link1, x.link2)): x.distance for x in found}
            rows.append([by_links[frozenset(pair)] for pair in pairs.links])
        return np.array(rows)

    def poses(k: int) -> np.ndarray:
        fk(k)
        T = np.full((len(model.link_names), 4, 4), np.nan)
        for at, name in enumerate(links):
            T[model.link_index(name)] = robot.compute_transformation(state, 0, at)
        return T

    def world_aligned_jacobian(k: int) -> np.ndarray:
        J, R = jacobian(k), robot.compute_transformation(state, 0, 1)[:3, :3]
        return np.concatenate([R @ J[:3], R @ J[3:]])

    def values(f) -> np.ndarray:
        return np.stack([np.array(f(k)).ravel() for k in range(CHECKED)])

    table = {
        "fk": (fk, set_q, lambda: values(poses)),
        "jacobian": (jacobian, set_q, lambda: values(world_aligned_jacobian)),
        "com_jacobian": (com_jacobian, set_q, lambda: values(com_jacobian)),
        "rnea": (rnea, set_all_and_get, lambda: values(rnea)),
        "crba": (crba, set_q, lambda: values(crba)),
        "self_distance": (self_distance, set_q, all_distances),
    }
    for operation, (call, nothing, check) in table.items():
        if operation in operations:
            yield Entry("rby1_sdk", operation, 1, loop(call), loop(nothing), check)


def _with_axes(urdf: str) -> str:
    """The SDK wants an axis on every joint, on fixed ones too."""
    root = ElementTree.fromstring(urdf)
    for joint in root.iter("joint"):
        if joint.find("axis") is None:
            ElementTree.SubElement(joint, "axis", xyz="0 0 1")
    return ElementTree.tostring(root, encoding="unicode")


def version() -> str:
    return rby1_sdk.__version__
