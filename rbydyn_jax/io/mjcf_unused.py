"""What a compiled MuJoCo model has and a description cannot hold: each is named in the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._extras import require
from ..shapes import CollisionGeometry
from .findings import Findings

Name = Callable[[str, int], str]  # of an object by its kind and number


def is_disabled(mj_model: Any, *flags: str) -> bool:
    """Whether one of the flags disables what it stands for; a flag that this MuJoCo does not know disables nothing."""
    known = require("mujoco", "mjcf", "from_mujoco").mjtDisableBit
    bits = sum(int(getattr(known, f"mjDSBL_{flag}", 0)) for flag in flags)
    return bool(mj_model.opt.disableflags & bits)


def note_unused(
    mj_model: Any, mujoco: Any, name: Name, shapes: Mapping[int, type[CollisionGeometry]], findings: Findings
) -> None:
    """Adds a note for each thing with a name that is not used, such as an actuator, and counts of what has no name.

    Args:
        mj_model: The compiled model.
        mujoco: The package.
        name: Names of objects.
        shapes: The shapes that are used, by their numbers in MuJoCo.
        findings: Where the notes go.
    """
    for k in range(mj_model.nu):
        _note(findings, "actuator", name("actuator", k), f"{_driven(mj_model, mujoco, name, k)}not used")
    for k in range(mj_model.neq):
        _note(findings, "equality", name("equality", k), f"{_tied(mj_model, mujoco, name, k)}, not used")
    for k in range(mj_model.njnt):
        unused = _spring(mj_model, mujoco, k), _nonlinear_damping(mj_model, k), _cone(mj_model, mujoco, k)
        for what in (*unused, _armature(mj_model, mujoco, k)):
            if what:
                _note(findings, "joint", name("joint", k), f"{what}, not used")
    for k in range(mj_model.nbody):
        if (share := float(mj_model.body_gravcomp[k])) and mj_model.body_mass[k]:
            _note(findings, "body", name("body", k), f"compensation of {share:g} of its weight, not used")
    for what in ("density", "viscosity"):
        if value := float(getattr(mj_model.opt, what)):
            _note(findings, "option", what, f"{value:g}, not used")
    for what, count in (("tendon", mj_model.ntendon), ("sensor", mj_model.nsensor)):
        for k in range(count):
            _note(findings, what, name(what, k), "not used")
    in_contacts = (mj_model.geom_contype != 0) | (mj_model.geom_conaffinity != 0)
    used = ", ".join(shape.tag for shape in shapes.values())
    counts = {
        f"collision shape other than {used}": int((in_contacts & ~np.isin(mj_model.geom_type, list(shapes))).sum()),
        "exclude": int(mj_model.nexclude),
    }
    for what, count in counts.items():
        if count:
            findings.add("note", f"{count} of kind {what!r} not used")


def _note(findings: Findings, kind: str, name: str, message: str) -> None:
    findings.add("note", message, f"{kind} {name!r}")


def _driven(mj_model: Any, mujoco: Any, name: Name, k: int) -> str:
    """What an actuator acts on."""
    kinds = {"JOINT": "joint", "JOINTINPARENT": "joint", "TENDON": "tendon", "SITE": "site", "BODY": "body"}
    by_number = {int(getattr(mujoco.mjtTrn, f"mjTRN_{x}")): kind for x, kind in kinds.items()}
    kind = by_number.get(int(mj_model.actuator_trntype[k]))
    return f"on {kind} {name(kind, int(mj_model.actuator_trnid[k, 0]))!r}, " if kind else ""


def _tied(mj_model: Any, mujoco: Any, name: Name, k: int) -> str:
    """What an equality demands."""
    kind = mujoco.mjtEq(int(mj_model.eq_type[k])).name.removeprefix("mjEQ_").lower()
    first, second = int(mj_model.eq_obj1id[k]), int(mj_model.eq_obj2id[k])
    if kind in ("joint", "tendon"):
        other = "" if second < 0 else f" of {kind} {name(kind, second)!r}"
        polynomial = " ".join(f"{c:g}" for c in mj_model.eq_data[k, :5])
        return f"{kind} {name(kind, first)!r} is a polynomial{other}, coefficients {polynomial}"
    ends = {int(mujoco.mjtObj.mjOBJ_BODY): "body", int(mujoco.mjtObj.mjOBJ_SITE): "site"}
    end = ends.get(int(mj_model.eq_objtype[k]))
    if end is None or kind not in ("connect", "weld"):
        return f"of type {kind}"
    return f"{kind} of {end} {name(end, first)!r} and {end} {name(end, second)!r}"


def _armature(mj_model: Any, mujoco: Any, k: int) -> str:
    """That of a free joint, which MuJoCo adds to the mass matrix, and which is no inertia of a body."""
    if mj_model.jnt_type[k] != int(mujoco.mjtJoint.mjJNT_FREE):
        return ""
    value = float(mj_model.dof_armature[mj_model.jnt_dofadr[k]])
    return f"armature {value:g}" if value else ""


def _spring(mj_model: Any, mujoco: Any, k: int) -> str:
    """The spring of a joint; empty if it has none."""
    first, *more = np.ravel(mj_model.jnt_stiffness[k]).tolist() + _further(mj_model, "jnt_stiffnesspoly", k)
    if not any((first, *more)):
        return ""
    kind = int(mj_model.jnt_type[k])
    units = {int(mujoco.mjtJoint.mjJNT_HINGE): ("N m/rad", "rad"), int(mujoco.mjtJoint.mjJNT_SLIDE): ("N/m", "m")}
    also = f", further coefficients {_listed(more)}" if any(more) else ""
    if kind not in units:
        return f"a spring of stiffness {first:g}{also}"
    per, unit = units[kind]
    return f"a spring of {first:g} {per} about {float(mj_model.qpos_spring[mj_model.jnt_qposadr[k]]):g} {unit}{also}"


def _nonlinear_damping(mj_model: Any, k: int) -> str:
    """The damping of a joint beyond its first coefficient; empty if it has none."""
    more = _further(mj_model, "dof_dampingpoly", int(mj_model.jnt_dofadr[k]))
    disabled = is_disabled(mj_model, "DAMPER")
    return f"further coefficients of damping {_listed(more)}" if any(more) and not disabled else ""


def _further(mj_model: Any, name: str, k: int) -> list[float]:
    """Coefficients of a polynomial after its first one, which older MuJoCo has not."""
    return np.ravel(getattr(mj_model, name)[k]).tolist() if hasattr(mj_model, name) else []


def _listed(numbers: list[float]) -> str:
    return " ".join(f"{x:g}" for x in numbers)


def _cone(mj_model: Any, mujoco: Any, k: int) -> str:
    """The limit of a ball joint; empty if it has none."""
    if not mj_model.jnt_limited[k] or int(mj_model.jnt_type[k]) != int(mujoco.mjtJoint.mjJNT_BALL):
        return ""
    return f"a limit of {float(mj_model.jnt_range[k, 1]):g} rad"
