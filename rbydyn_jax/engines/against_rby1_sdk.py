"""Our results at many configurations beside those of rby1_sdk; external wrenches and rotor inertias are added to it."""

from __future__ import annotations

import numpy as np

from .comparison import Error, Results, relative, residual
from .conventions import batch, float64
from .rby1_sdk import Rby1Robot


def errors_against_rby1_sdk(ours: Results, other: Rby1Robot) -> dict[str, Error]:
    """The error of each function that the SDK has."""
    model, q, v, a, values = ours.model, ours.q, ours.v, ours.a, ours.values
    zero, base = np.zeros_like(v), model.link_names[0]
    bodies = [model.link_names[link] for link in model.tree.principal_links]

    def aligned_jacobian(q: np.ndarray) -> np.ndarray:
        R = other.fk(q, base, [ours.tip])[0, :3, :3]
        return np.kron(np.eye(2), R) @ other.body_jacobian(q, base, ours.tip)

    def pushed(q: np.ndarray, f_ext: np.ndarray) -> np.ndarray:
        each = zip(bodies, f_ext, strict=True)
        return sum((other.body_jacobian(q, base, body).T @ wrench for body, wrench in each), np.zeros(model.nv))

    forces = float(np.abs(values["rnea"]).max())
    wrenches = batch(pushed, q, ours.f_ext)
    rotors = float64(model.armature)
    inertia, bias = batch(other.crba, q) + np.diag(rotors), batch(other.rnea, q, v, zero)
    out = {
        "fk": relative(values["fk"], batch(lambda q: other.fk(q, base, model.link_names), q)),
        "jacobian": relative(values["jacobian"], batch(aligned_jacobian, q)),
        "center_of_mass": relative(values["center_of_mass"], batch(lambda q: other.center_of_mass(q, base), q)),
        "crba": relative(values["crba"], inertia),
        "rnea": relative(values["rnea"], batch(other.rnea, q, v, a) + rotors * a - wrenches),
        "bias_forces": relative(values["bias_forces"], bias, forces),
        "gravity_forces": relative(values["gravity_forces"], batch(other.gravity, q), forces),
    }
    if "aba" in values:
        rest = bias - wrenches - ours.tau
        out["aba"] = residual(inertia, values["aba"][..., None], rest[..., None])
    return out
