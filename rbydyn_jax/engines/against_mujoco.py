"""Our results at many configurations beside those of MuJoCo."""

from __future__ import annotations

import numpy as np

from .comparison import Error, Results, relative, residual
from .conventions import batch, change_velocity_origin, float64
from .mujoco import MujocoRobot


def errors_against_mujoco(results: Results, other: MujocoRobot) -> dict[str, Error]:
    """The error of each function that MuJoCo has."""
    model, tip, q, v, a, tau, f_ext, ours = results
    zero, link = np.zeros_like(v), model.link_index(tip)
    body, placements = model.tree.link_bodies[link], float64(model.link_placements)
    moving = [i for i, carrier in enumerate(model.tree.link_bodies) if carrier >= 0]
    carriers = [model.tree.link_bodies[i] for i in moving]

    def jacobian(q: np.ndarray) -> np.ndarray:
        arm = other.body_poses(q)[body, :3, :3] @ placements[link, :3, 3]
        return change_velocity_origin(arm) @ other.jacobian(q, body)

    poses = ours["fk"].copy()  # links that are fixed to the world have no body there
    poses[:, moving] = batch(other.body_poses, q)[:, carriers] @ placements[moving]
    forces = float(np.abs(ours["rnea"]).max())
    out = {
        "fk": relative(ours["fk"], poses),
        "jacobian": relative(ours["jacobian"], batch(jacobian, q)),
        "crba": relative(ours["crba"], batch(other.crba, q)),
        "rnea": relative(ours["rnea"], batch(other.rnea, q, v, a, f_ext)),
        "bias_forces": relative(ours["bias_forces"], batch(other.rnea, q, v, zero), forces),
        "gravity_forces": relative(ours["gravity_forces"], batch(other.rnea, q, zero, zero), forces),
    }
    if (model.link_inertias[:, 0][np.array(model.tree.link_bodies) < 0] == 0).all():
        com, momentum = map(np.stack, zip(*(other.com_and_momentum(*s) for s in zip(q, v, strict=True)), strict=True))
        out["center_of_mass"] = relative(ours["center_of_mass"], com)
        out["centroidal_momentum"] = relative(ours["centroidal_momentum"], momentum)
        potential, kinetic = batch(other.energies, q, v).T
        out["potential_energy"] = relative(ours["potential_energy"], potential)
        out["kinetic_energy"] = relative(ours["kinetic_energy"], kinetic)
    if "aba" in ours:
        rest = batch(other.rnea, q, v, zero, f_ext) - tau
        out["aba"] = residual(batch(other.crba, q), ours["aba"][..., None], rest[..., None])
    return out
