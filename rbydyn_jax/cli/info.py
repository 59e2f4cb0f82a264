"""``rbydyn info``: the tree, limits and mass properties of a robot file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..algorithms.centroidal import center_of_mass, total_mass
from ..algorithms.crba import crba
from ..io.build import load_urdf
from ..model.configuration import neutral
from ..model.model import Model

# Each is run once: it is compiled without the optimisations of the machine code.
_QUICK = {"xla_backend_optimization_level": 0}
_LIMITS = ("velocity_limit", "acceleration_limit", "effort_limit")


def info(path: Path, as_json: bool = False) -> int:
    """Prints what a URDF file describes; returns 0.

    Raises:
        ParseError: The file cannot be read or describes no robot.
    """
    with jax.enable_x64(True):
        model = load_urdf(path)
        facts = describe(model)
    print(json.dumps(facts, indent=2) if as_json else _as_text(facts, [f"{kind}s" for kind in model.shapes]))
    return 0


def describe(model: Model) -> dict[str, Any]:
    """The facts that `info` prints, as plain data, in the model's precision; what is infinite or undefined is None."""
    tree = model.tree
    masses = np.asarray(model.link_inertias)[:, 0]

    def numbers(model: Model) -> tuple:
        q = neutral(model)
        return total_mass(model), center_of_mass(model, q), crba(model, q)

    mass, com, M = jax.jit(numbers, compiler_options=_QUICK)(model)
    return {
        "name": model.name,
        "nq": model.nq,
        "nv": model.nv,
        "mass": float(mass),
        "center_of_mass": np.asarray(com).tolist() if mass != 0.0 else None,
        "mass_matrix_condition": _finite(float(np.linalg.cond(M))) if model.nv else None,
        "links": list(model.link_names),
        "joints": [_joint(model, i) for i in range(model.nb)],
        "fixed_links": {tree.link_names[k]: _carrier(model, k) for k, s in enumerate(tree.welded_slots) if s >= 0},
        "massless_links": [name for name, m in zip(model.link_names, masses, strict=True) if m == 0.0],
        **{f"{kind}s": tree.shape_kinds.count(kind) for kind in model.shapes},
        "findings": [str(f) for f in model.report],
    }


def _joint(model: Model, i: int) -> dict[str, Any]:
    tree = model.tree
    q, v, mimic = tree.q_slices[i], tree.v_slices[i], tree.mimics[i]
    facts: dict[str, Any] = {
        "name": tree.joint_names[i],
        "type": tree.joint_types[i],
        "parent": tree.joint_names[tree.parents[i]] if tree.parents[i] >= 0 else None,
        "link": tree.link_names[tree.principal_links[i]],
        "axis": np.asarray(model.joint_axes[i]).round(9).tolist(),
        "lower": [_finite(x) for x in np.asarray(model.position_lower[q]).tolist()],
        "upper": [_finite(x) for x in np.asarray(model.position_upper[q]).tolist()],
    }
    facts |= {what: [_finite(x) for x in np.asarray(getattr(model, what)[v]).tolist()] for what in _LIMITS}
    if mimic is not None:
        multiplier, offset = float(model.mimic_multipliers[mimic.slot]), float(model.mimic_offsets[mimic.slot])
        facts["mimic"] = {"joint": tree.joint_names[mimic.source], "multiplier": multiplier, "offset": offset}
    return facts


def _carrier(model: Model, link: int) -> str:
    body = model.tree.link_bodies[link]
    return "world" if body < 0 else model.link_names[model.tree.principal_links[body]]


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _as_text(facts: dict[str, Any], shapes: list[str]) -> str:
    com, condition = facts["center_of_mass"], facts["mass_matrix_condition"]
    mass = [f"mass {facts['mass']:.4f} kg"]
    if com is not None:
        mass.append(f"centre of mass at neutral ({', '.join(f'{x:.4f}' for x in com)}) m")
    if facts["nv"]:
        mass.append(f"cond(M) {condition:.3g}" if condition is not None else "cond(M) infinite")
    lines = [
        f"{facts['name']}: {len(facts['joints'])} moving joints, nq = {facts['nq']}, nv = {facts['nv']}, "
        f"{len(facts['links'])} links, " + ", ".join(f"{facts[kind]} {kind}" for kind in shapes),
        ", ".join(mass),
        "",
        *_tree_lines(facts),
        "",
        "massless links: " + (", ".join(facts["massless_links"]) or "none"),
    ]
    mimics = [(j["name"], j["mimic"]) for j in facts["joints"] if "mimic" in j]
    lines += [f"mimic: {name} = {m['multiplier']:g} * {m['joint']} + {m['offset']:g}" for name, m in mimics]
    return "\n".join(lines + facts["findings"])


def _tree_lines(facts: dict[str, Any]) -> list[str]:
    """One line for each joint, indented by its depth; links fixed to its link follow after a plus."""
    fixed: dict[str, list[str]] = {}
    for link, carrier in facts["fixed_links"].items():
        fixed.setdefault(carrier, []).append(link)
    depth: dict[str | None, int] = {None: 0}
    rows = [("world" + _with(fixed.get("world")), "")]
    children: dict[str | None, list[dict[str, Any]]] = {}
    for joint in facts["joints"]:
        children.setdefault(joint["parent"], []).append(joint)
    stack = list(reversed(children.get(None, [])))
    while stack:
        joint = stack.pop()
        depth[joint["name"]] = depth[joint["parent"]] + 1
        left = "  " * depth[joint["name"]] + f"{joint['name']} -> {joint['link']}"
        rows.append((left, _joint_text(joint) + _with(fixed.get(joint["link"]))))
        stack += reversed(children.get(joint["name"], []))
    width = min(max(len(left) for left, _ in rows), 60)
    return [f"{left:<{width}}  {right}".rstrip() for left, right in rows]


def _with(links: list[str] | None) -> str:
    return f" + {', '.join(links)}" if links else ""


def _joint_text(joint: dict[str, Any]) -> str:
    axis = " ".join(f"{x:g}" for x in np.round(joint["axis"], 4))

    def shown(values: list[float | None], none: str) -> str:
        return " ".join(none if x is None else f"{x:.4g}" for x in values)

    parts = [f"{joint['type']} ({axis})"]
    if "mimic" in joint:
        return parts[0] + f", mimics {joint['mimic']['joint']}"
    if any(x is not None for x in joint["lower"] + joint["upper"]):
        parts.append(f"q [{shown(joint['lower'], '-inf')}, {shown(joint['upper'], 'inf')}]")
    for letter, what in zip(("v", "a", "tau"), _LIMITS, strict=True):
        if any(x is not None for x in joint[what]):
            parts.append(f"{letter} {shown(joint[what], 'inf')}")
    return ", ".join(parts)
