"""A robot as text: the tree of its joints and links, with types and limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._lazy import is_traced, jax
from .tree import KinematicTree

if TYPE_CHECKING:
    from .model import Model

LIMITS = ("velocity_limit", "acceleration_limit", "effort_limit")
_WIDTH = 60  # characters of the left column


def model_text(model: Model, rows: int | None = None) -> str:
    """A headline and the tree; at most `rows` lines of it, and without limits where they are traced or a batch."""
    tree = model.tree
    lines = [headline(tree), *tree_lines(joint_facts(tree, _numbers(model)), attachments(tree))]
    if rows is not None and len(lines) > rows + 1:
        lines[rows:] = [f"  ... and {len(lines) - rows} more joints: model.summary() has all"]
    return "\n".join(lines)


def headline(tree: KinematicTree) -> str:
    """Name and sizes."""
    plural = {"box": "boxes", "convex_hull": "convex hulls"}
    shapes = ", ".join(f"{count} {plural.get(kind, kind + 's')}" for kind, count in shape_counts(tree).items())
    sizes = f"{tree.nb} moving joints, nq = {tree.nq}, nv = {tree.nv}, {len(tree.link_names)} links"
    return f"{tree.name}: {sizes}, {shapes}"


def shape_counts(tree: KinematicTree) -> dict[str, int]:
    """How many collision shapes there are of each kind; of capsules there may be none."""
    return {kind: tree.shape_kinds.count(kind) for kind in sorted({"capsule", *tree.shape_kinds})}


def joint_facts(tree: KinematicTree, numbers: Mapping[str, np.ndarray] | None) -> list[dict[str, Any]]:
    """Type, axis, limits and more of each joint as plain data: infinite limits are None, unknown ones are left out, as
    are those of a joint that mimics another, which has none of its own.

    Args:
        tree: The topology.
        numbers: The axes, as ``joint_axes``, and the leaves of a `Model` by their names; None if they are unknown.
    """
    return [_facts_of_joint(tree, numbers, i) for i in range(tree.nb)]


def _facts_of_joint(tree: KinematicTree, numbers: Mapping[str, np.ndarray] | None, i: int) -> dict[str, Any]:
    q, v, mimic = tree.q_slices[i], tree.v_slices[i], tree.mimics[i]
    facts: dict[str, Any] = {
        "name": tree.joint_names[i],
        "type": tree.joint_types[i],
        "parent": tree.joint_names[tree.parents[i]] if tree.parents[i] >= 0 else None,
        "link": tree.link_names[tree.principal_links[i]],
    }
    if mimic is not None:
        facts["mimic"] = {"joint": tree.joint_names[mimic.source]}
    if numbers is None:
        return facts
    facts["axis"] = numbers["joint_axes"][i].round(9).tolist()
    if mimic is None:
        facts |= {"lower": _finite(numbers["position_lower"][q]), "upper": _finite(numbers["position_upper"][q])}
        facts |= {what: _finite(numbers[what][v]) for what in LIMITS}
    else:
        facts["mimic"] |= {
            "multiplier": float(numbers["mimic_multipliers"][mimic.slot]),
            "offset": float(numbers["mimic_offsets"][mimic.slot]),
        }
    return facts


def attachments(tree: KinematicTree) -> dict[str, str]:
    """For each link that is fixed to another one or to the world, what carries it."""
    carriers = [tree.principal_links[body] if body >= 0 else -1 for body in tree.link_bodies]
    names = ["world" if carrier < 0 else tree.link_names[carrier] for carrier in carriers]
    return {tree.link_names[k]: names[k] for k, slot in enumerate(tree.welded_slots) if slot >= 0}


def tree_lines(joints: Sequence[Mapping[str, Any]], fixed: Mapping[str, str]) -> list[str]:
    """One line for each joint, indented by its depth; links fixed to its link follow after a plus."""
    carried: dict[str, list[str]] = {}
    for link, carrier in fixed.items():
        carried.setdefault(carrier, []).append(link)
    children: dict[str | None, list[Mapping[str, Any]]] = {}
    for joint in joints:
        children.setdefault(joint["parent"], []).append(joint)
    depth: dict[str | None, int] = {None: 0}
    rows = [("world" + _with(carried.get("world")), "")]
    stack = list(reversed(children.get(None, [])))
    while stack:
        joint = stack.pop()
        depth[joint["name"]] = depth[joint["parent"]] + 1
        left = "  " * depth[joint["name"]] + f"{joint['name']} -> {joint['link']}"
        rows.append((left, _joint_text(joint) + _with(carried.get(joint["link"]))))
        stack += reversed(children.get(joint["name"], []))
    width = min(max(len(left) for left, _ in rows), _WIDTH)
    return [f"{left:<{width}}  {right}".rstrip() for left, right in rows]


_LEAVES = ("position_lower", "position_upper", *LIMITS, "mimic_multipliers", "mimic_offsets")


def _numbers(model: Model) -> dict[str, np.ndarray] | None:
    """What `joint_facts` takes; None where something is traced, deleted, or that of a batch of models."""
    leaves = (model.geometry, *(getattr(model, name) for name in _LEAVES))
    if not all(isinstance(x, jax.Array | np.ndarray) and x.ndim == 1 for x in leaves) or any(
        is_traced(x) or (isinstance(x, jax.Array) and x.is_deleted()) for x in leaves
    ):
        return None
    return {name: np.asarray(getattr(model, name)) for name in ("joint_axes", *_LEAVES)}


def _finite(values: Any) -> list[float | None]:
    return [x if math.isfinite(x) else None for x in np.asarray(values).tolist()]


def _with(links: list[str] | None) -> str:
    return f" + {', '.join(links)}" if links else ""


def _joint_text(joint: Mapping[str, Any]) -> str:
    def shown(values: list[float | None], none: str) -> str:
        texts = [none if x is None else f"{x:.4g}" for x in values]
        return texts[0] if len(set(texts)) == 1 else " ".join(texts)

    kind = joint["type"]
    if "axis" in joint:
        kind += f" ({' '.join(f'{x:g}' for x in np.round(joint['axis'], 4))})"
    if "mimic" in joint:
        return f"{kind}, mimics {joint['mimic']['joint']}"
    parts = [kind]
    if any(x is not None for x in joint.get("lower", []) + joint.get("upper", [])):
        parts.append(f"q [{shown(joint['lower'], '-inf')}, {shown(joint['upper'], 'inf')}]")
    for letter, what in zip(("v", "a", "tau"), LIMITS, strict=True):
        if any(x is not None for x in joint.get(what, [])):
            parts.append(f"{letter} {shown(joint[what], 'inf')}")
    return ", ".join(parts)
