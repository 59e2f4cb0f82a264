"""Whether mass properties are possible: of each link alone, and of moving bodies with all that is welded to them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..joints import JOINT_TYPES
from .description import Inertial, LinkDescription
from .findings import Findings
from .mass_properties import spatial_inertia

if TYPE_CHECKING:
    from ..model.arrays import RobotArrays


def check_inertials(links: Sequence[LinkDescription], findings: Findings) -> None:
    """Checks mass properties; the moments of inertia all at once, as a large file has ten thousand of them."""
    sound: list[tuple[int, Inertial]] = []
    for index, link in enumerate(links):
        inertial = link.inertial
        if inertial is None:
            continue
        problem = _inertial_problem(inertial)
        if problem:
            findings.on("error", "link", index, link.name, problem)
        else:
            sound.append((index, inertial))
    moments = np.array([inertial.inertia for _, inertial in sound], float).reshape(-1, 3, 3)
    for (index, inertial), eigenvalues in zip(sound, np.linalg.eigvalsh(moments), strict=True):
        _check_moments(inertial, eigenvalues, findings, index, links[index].name)


def _inertial_problem(inertial: Inertial) -> str:
    mass, com, inertia = inertial.mass, np.asarray(inertial.com), np.asarray(inertial.inertia)
    if com.shape != (3,) or inertia.shape != (3, 3):
        return f"com and inertia have shapes {com.shape} and {inertia.shape}, expected (3,) and (3, 3)"
    if not all(map(math.isfinite, (mass, *com.tolist(), *inertia.ravel().tolist()))):
        return "mass, centre of mass and inertia must be finite"
    if mass < 0.0:
        return f"mass {mass:g} is negative"
    return "" if (inertia == inertia.T).all() else "inertia is not symmetric"


def _check_moments(inertial: Inertial, eigenvalues: np.ndarray, findings: Findings, index: int, name: str) -> None:
    smallest, middle, largest = eigenvalues.tolist()
    # A moment below this is rounding of the numbers in a file: 1e-9 kg m^2 per kg is a body of 30 micrometres.
    tiny = 1e-9 * max(largest, -smallest, inertial.mass)
    if smallest < -tiny:
        diagonal = float(np.diagonal(inertial.inertia).min())
        if diagonal < -tiny:
            findings.on(
                "error", "link", index, name, f"inertia is not positive definite: moment {diagonal:g} on the diagonal"
            )
        else:
            findings.on("warning", "link", index, name, f"inertia is not positive definite (eigenvalue {smallest:.3g})")
    elif (excess := largest - middle - smallest) > max(0.01 * largest, tiny):
        message = f"principal moments break the triangle inequality by {excess / largest:.0%}; no body has such inertia"
        findings.on("warning", "link", index, name, message)


def check_bodies(robot: RobotArrays, findings: Findings, link_names: Sequence[str] = ()) -> None:
    """Adds an error for each moving body that no matter can have, and a warning where the mass matrix is singular.

    A file may give a link that is welded to a heavy one a mass of zero or a wrong inertia, and many do; it is an error
    only if the moving body as a whole has it.

    Args:
        robot: The welded robot.
        findings: Where the remarks go.
        link_names: Links in the order of the description, by which `findings.lines` knows them.
    """
    first_link: dict[int, str] = {}
    for name, body in zip(robot.link_names, robot.link_bodies, strict=True):
        first_link.setdefault(body, name)
    carries = set(robot.parents)
    line_of = {name: findings.lines.get(("link", index), 0) for index, name in enumerate(link_names)}
    for body, inertia in enumerate(robot.body_inertias):
        link = f"link {first_link[body]!r}"
        line = line_of.get(first_link[body], 0)
        moment = spatial_inertia(inertia)[:3, :3]
        smallest = float(np.linalg.eigvalsh(moment)[0])
        scale = max(float(np.abs(moment).max()), float(inertia[0]))
        if inertia[0] == 0.0 and moment.any():
            findings.add("error", "moves with zero mass but non-zero inertia", link, line)
        elif smallest < -1e-9 * scale:
            message = f"inertia of the moving body about its joint is not positive definite (eigenvalue {smallest:.3g})"
            findings.add("error", message, link, line)
        elif body not in carries and _is_singular(robot, body):
            what = "no inertia" if not inertia.any() else "no inertia about its axis"
            joint = robot.joint_names[body]
            findings.add("warning", f"moves by joint {joint!r} with {what}: the mass matrix is singular", link, line)
        elif body in carries and _is_redundant(robot, body):
            what = f"by joint {robot.joint_names[body]!r} with no inertia, and the next body so in more than six ways"
            findings.add("warning", f"moves {what}: the mass matrix is singular", link, line)


def _is_singular(robot: RobotArrays, body: int) -> bool:
    """Whether a body at the end of a chain has nothing that resists its joint."""
    if robot.armature[body] > 0.0 or robot.mimic[body] is not None:
        return False
    S = _columns(robot.joint_types[body], tuple(robot.joint_axes[body].tolist()), robot.joint_parameters[body])
    M = S.T @ spatial_inertia(robot.body_inertias[body]) @ S
    smallest = M[0, 0] if len(M) == 1 else np.linalg.eigvalsh(M)[0]
    return bool(smallest <= 1e-12 * robot.body_inertias[body, 0])


def _is_redundant(robot: RobotArrays, body: int) -> bool:
    """Whether bodies without inertia, one after the other from this, and the next move in more than six ways."""
    ways, last = 0, body
    while True:
        if robot.armature[last] > 0.0 or robot.mimic[last] is not None:
            return False
        axis = tuple(robot.joint_axes[last].tolist())
        ways += _columns(robot.joint_types[last], axis, robot.joint_parameters[last]).shape[1]
        children = [k for k, parent in enumerate(robot.parents) if parent == last]
        if robot.body_inertias[last].any():
            return last != body and ways > 6
        if len(children) != 1:
            return False
        last = children[0]


@functools.lru_cache(maxsize=256)
def _columns(kind: str, axis: tuple[float, ...], parameters: tuple[float, ...]) -> np.ndarray:
    return JOINT_TYPES[kind].columns(np.array(axis), parameters)
