"""A built robot: the tree from the base link on, and the parameters of its bodies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from ..._errors import DtypeError
from ._algebra import SWAP, ScrewExponentials, adjoint, inverse, swap, swap_both
from ._errors import ModelError
from ._links import Joint, Link


@dataclass(frozen=True)
class Topology:
    """Names, order and connections of links and joints: a state fits every robot with an equal topology.

    Args:
        link_names: Links in breadth-first order.
        joint_names: Moving joints in breadth-first order.
        parents: For each body the body that carries it. Body 0 is the base, body i + 1 is moved by joint i.
        link_bodies: For each link the body that it belongs to.
    """

    link_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    parents: tuple[int, ...]
    link_bodies: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Connection:
    """A joint as it was connected when the robot was built."""

    joint: Joint
    parent: Link
    child: Link
    T_pj: Float[np.ndarray, "4 4"]
    T_jc: Float[np.ndarray, "4 4"]


@dataclass(frozen=True, eq=False)
class Structure:
    """Links, joints and parameters of a built robot; bodies are numbered as in `Topology`.

    Body frames coincide with the base frame at zero position and move with their body.

    Args:
        topology: Names and tree.
        links: The links; their collision objects are looked at live.
        joints: The moving joints; their limits are looked at live.
        connections: All joints, fixed ones included, in the order in which they were visited.
        screws: Screw of each joint in the base frame at zero position (n, 6).
        exponentials: The motions of these screws.
        descent: Entry (b, j) is 1 if joint j is above body b, its own included, else 0.
        above: Entry (i, j) is 1 if joint i is above joint j or the same, else 0.
        jumps: Round k of forward kinematics multiplies a body's motion by that of the body 2^k above, or of the base,
            which has none.
        link_placements: Pose of each link in its body (L, 4, 4).
        link_adjoints: Ad of the inverse of each placement (L, 6, 6).
        swapped_link_adjoints: These times P.
        link_moments: Of each link the first moment and the mass, in its own frame (L, 4).
        body_moments: Of each body the first moment and the mass, in its frame (n + 1, 4).
        inertias: Inertia of each body in its frame (n + 1, 6, 6).
        swapped_inertias: P J P of each inertia J.
        in_bodies: Of each body P L of its inertia J = L D L^T, and the screw of its joint; zeros of the base.
        signs: The diagonals of all D but the base's, of 1 and -1; None if all are 1.
    """

    topology: Topology
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    connections: tuple[Connection, ...]
    screws: Float[np.ndarray, "n 6"]
    exponentials: ScrewExponentials
    descent: Float[np.ndarray, "b n"]
    above: Float[np.ndarray, "n n"]
    jumps: tuple[Int[np.ndarray, "b"], ...]
    link_placements: Float[np.ndarray, "l 4 4"]
    link_adjoints: Float[np.ndarray, "l 6 6"]
    swapped_link_adjoints: Float[np.ndarray, "l 6 6"]
    link_moments: Float[np.ndarray, "l 4"]
    body_moments: Float[np.ndarray, "b 4"]
    inertias: Float[np.ndarray, "b 6 6"]
    swapped_inertias: Float[np.ndarray, "b 6 6"]
    in_bodies: Float[np.ndarray, "b 6 7"]
    signs: Float[np.ndarray, "m"] | None

    @property
    def dof(self) -> int:
        """Number of moving joints."""
        return len(self.joints)


def walk(base: Link) -> Iterator[Connection]:
    """Joints from a link on, breadth-first and siblings in the order of connection.

    Raises:
        ModelError: A link comes twice: the joints form a cycle.
    """
    seen, queue = {id(base)}, [base]
    for link in queue:
        for joint in link.get_child_joint_list():
            child = joint.get_child_link()
            assert child is not None  # only connect_links puts a joint into the list
            if id(child) in seen:
                raise ModelError(f"joint {joint.name!r} leads back to link {child.name!r}: the joints form a cycle")
            seen.add(id(child))
            queue.append(child)
            yield Connection(joint, link, child, joint._T_pj, joint._T_jc)


def build_structure(base: Link) -> Structure:
    """Copies the tree below a link.

    Raises:
        ModelError: There is a cycle, or a name is given twice.
    """
    links, bodies, placements = [base], {id(base): 0}, {id(base): np.eye(4)}
    joints: list[Joint] = []
    parents, screws = [0], []
    connections = tuple(walk(base))
    for connection in connections:
        joint, child = connection.joint, connection.child
        body, pose = bodies[id(connection.parent)], placements[id(connection.parent)] @ connection.T_pj
        if joint._screw is None:
            pose = pose @ connection.T_jc
        else:
            joints.append(joint)
            parents.append(body)
            screws.append(adjoint(pose) @ joint._screw)
            body = len(joints)
        links.append(child)
        bodies[id(child)], placements[id(child)] = body, pose
    _unique("link", [link.name for link in links])
    _unique("joint", [joint.name for joint in joints])
    topology = Topology(
        tuple(link.name for link in links),
        tuple(joint.name for joint in joints),
        tuple(parents),
        tuple(bodies[id(link)] for link in links),
    )
    return _with_numbers(
        topology, links, joints, connections, np.array(screws).reshape(-1, 6), [placements[id(x)] for x in links]
    )


def _with_numbers(
    topology: Topology,
    links: list[Link],
    joints: list[Joint],
    connections: tuple[Connection, ...],
    screws: Float[np.ndarray, "n 6"],
    placements: list[np.ndarray],
) -> Structure:
    n, parents, owner = len(joints), np.array(topology.parents), np.array(topology.link_bodies)
    descent = np.zeros((n + 1, n))
    for body in range(1, n + 1):  # parents come first
        descent[body] = descent[parents[body]]
        descent[body, body - 1] = 1.0
    jumps = []
    jump = parents
    while jump.any():
        jumps.append(jump)
        jump = jump[jump]
    inertials = np.stack([link.inertial for link in links])
    poses = np.stack(placements)
    link_adjoints = adjoint(inverse(poses))
    inertias = np.zeros((n + 1, 6, 6))
    np.add.at(inertias, owner, link_adjoints.swapaxes(1, 2) @ inertials @ link_adjoints)
    # The first moment m c stands in the off-diagonal blocks m [c].
    moments = np.stack([-inertials[:, 1, 5], inertials[:, 0, 5], -inertials[:, 0, 4], inertials[:, 3, 3]], axis=1)
    body_moments = np.zeros((n + 1, 4))
    np.add.at(body_moments, owner, (poses @ moments[:, :, None])[:, :, 0])
    roots, signs = _roots(inertias[1:])
    in_bodies = np.zeros((n + 1, 6, 7))
    in_bodies[1:] = np.concatenate([roots, screws[:, :, None]], axis=2)
    return Structure(
        topology,
        tuple(links),
        tuple(joints),
        connections,
        screws,
        ScrewExponentials(screws),
        descent,
        np.ascontiguousarray(descent[1:].T),
        tuple(jumps),
        poses,
        link_adjoints,
        swap(link_adjoints),
        moments,
        body_moments,
        inertias,
        swap_both(inertias),
        in_bodies,
        None if (signs > 0.0).all() else signs,
    )


def _roots(inertias: Float[np.ndarray, "n 6 6"]) -> tuple[Float[np.ndarray, "n 6 6"], Float[np.ndarray, "m"]]:
    """P L and the diagonal of D, of J = L D L^T with signs on D; the SDK accepts negative inertias."""
    values, vectors = np.linalg.eigh(inertias)
    rounding = 8 * np.finfo(np.float64).eps * np.abs(values).max(axis=1, keepdims=True)
    values = np.where(np.abs(values) > rounding, values, 0.0)
    roots = vectors * np.sqrt(np.abs(values))[:, None, :]
    return roots.take(SWAP, 1), np.where(values < 0.0, -1.0, 1.0).ravel()


def _unique(kind: str, names: list[str]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ModelError(f"{kind} names must be unique, given more than once: {', '.join(sorted(twice))}")


def structure_of(robot: Any) -> Structure:
    """Returns the links and joints of a robot.

    Raises:
        DtypeError: It is no robot.
    """
    structure = getattr(robot, "_structure", None)
    if structure is None:
        raise DtypeError(f"robot must be a Robot of rby1.dynamics, got {type(robot).__name__}")
    return structure
