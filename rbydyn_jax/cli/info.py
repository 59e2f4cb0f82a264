"""``rbydyn info``: the tree, limits and mass properties of a robot file."""

from __future__ import annotations

import json
import math
from typing import Any

import jax
import numpy as np

from ..algorithms.centroidal import center_of_mass, total_mass
from ..algorithms.crba import crba
from ..model.configuration import neutral
from ..model.model import Model
from ..model.summary import fixed_links, headline, joint_facts, tree_lines
from .source import load

# Each is run once: it is compiled without the optimisations of the machine code.
_QUICK = {"xla_backend_optimization_level": 0}


def info(robot: str, as_json: bool = False) -> int:
    """Prints what a file or a name describes; returns 0.

    Raises:
        NameNotFoundError: There is no such robot.
        ParseError: The file cannot be read or describes no robot.
    """
    with jax.enable_x64(True):
        model = load(robot)
        facts = describe(model)
    print(json.dumps(facts, indent=2) if as_json else _as_text(facts, headline(model)))
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
        "mass_matrix_condition": _condition(M) if model.nv else None,
        "links": list(model.link_names),
        "joints": [joint_facts(model, i) for i in range(model.nb)],
        "fixed_links": fixed_links(model),
        "massless_links": [name for name, m in zip(model.link_names, masses, strict=True) if m == 0.0],
        **{f"{kind}s": tree.shape_kinds.count(kind) for kind in model.shapes},
        "findings": [str(f) for f in model.report],
    }


def _condition(M: jax.Array) -> float | None:
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
