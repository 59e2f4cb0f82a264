"""``rbydyn info``: the tree, limits and mass properties of a robot file."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from ..io.mass_properties import mass_properties
from ..model.leaves import tree_and_leaves
from ..model.summary import attachments, headline, joint_facts, shape_counts, tree_lines
from ..model.tree import KinematicTree
from .source import Described, find


def info(robot: str, as_json: bool = False) -> int:
    """Prints what a file or a name describes; returns 0.

    Raises:
        NameNotFoundError: There is no such robot.
        ParseError: The file cannot be read or describes no robot.
    """
    found = find(robot).describe()
    tree, leaves = tree_and_leaves(found.robot)
    facts = _facts(found, tree, leaves)
    print(json.dumps(facts, indent=2) if as_json else _as_text(facts, headline(tree)))
    return 0


def _facts(found: Described, tree: KinematicTree, leaves: dict[str, np.ndarray]) -> dict[str, Any]:
    """The facts that `info` prints, as plain data; what is infinite or undefined is None."""
    robot = found.robot
    at_neutral = mass_properties(robot, tree, leaves["armature"])
    return {
        "name": tree.name,
        "nq": tree.nq,
        "nv": tree.nv,
        "mass": at_neutral.mass,
        "center_of_mass": at_neutral.center.tolist() if at_neutral.mass else None,
        "mass_matrix_condition": _condition(at_neutral.M) if tree.nv else None,
        "links": list(tree.link_names),
        "joints": joint_facts(tree, {**leaves, "joint_axes": robot.joint_axes}),
        "fixed_links": attachments(tree),
        "massless_links": [name for name, x in zip(tree.link_names, robot.link_inertias, strict=True) if x[0] == 0.0],
        **{f"{kind}s": count for kind, count in shape_counts(tree).items()},
        "findings": [str(finding) for finding in found.findings.report()],
    }


def _condition(M: np.ndarray) -> float | None:
    condition = float(np.linalg.cond(M))
    return condition if math.isfinite(condition) else None


def _as_text(facts: dict[str, Any], first: str) -> str:
    com, condition = facts["center_of_mass"], facts["mass_matrix_condition"]
    mass = [f"mass {facts['mass']:.4f} kg"]
    if com is not None:
        mass.append(f"centre of mass at neutral ({', '.join(f'{x:.4f}' for x in com)}) m")
    if facts["nv"]:
        mass.append(f"cond(M) {condition:.3g}" if condition is not None else "cond(M) infinite")
    lines = [
        first,
        ", ".join(mass),
        "",
        *tree_lines(facts["joints"], facts["fixed_links"]),
        "",
        "massless links: " + (", ".join(facts["massless_links"]) or "none"),
    ]
    mimics = [(j["name"], j["mimic"]) for j in facts["joints"] if "mimic" in j]
    lines += [f"mimic: {name} = {m['multiplier']:g} * {m['joint']} + {m['offset']:g}" for name, m in mimics]
    return "\n".join(lines + facts["findings"])
