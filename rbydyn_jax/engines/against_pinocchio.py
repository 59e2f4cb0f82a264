"""Our results at many configurations beside those of Pinocchio."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..model.model import Model
from .comparison import Error, Results, relative, residual
from .conventions import batch, change_velocity_origin, com_inertia, float64
from .pinocchio import PinRobot


def errors_against_pinocchio(results: Results, twin: PinRobot) -> dict[str, Error]:
    """The error of each function."""
    model, tip, q, v, a, tau, f_ext, ours = results
    fixed, zero = _Fixed(model, twin), np.zeros(model.nv)
    inertia = batch(lambda q: mass_matrix(twin, q), q)
    wanted: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
        "fk": (twin.fk, (q,)),
        "jacobian": (lambda q: twin.jacobian(q, tip), (q,)),
        "rnea": (twin.rnea, (q, v, a, f_ext)),
        "potential_energy": (twin.potential_energy, (q,)),
        "center_of_mass": (fixed.center_of_mass, (q,)),
        "centroidal_momentum_matrix": (fixed.momentum_matrix, (q,)),
        "centroidal_momentum": (lambda q, v: fixed.momentum_matrix(q) @ v, (q, v)),
        "rnea_derivatives": (lambda *s: np.stack(twin.rnea_derivatives(*s)), (q, v, a, f_ext)),
    }
    out = {name: relative(ours[name], batch(f, *args)) for name, (f, args) in wanted.items()}
    out["total_mass"] = relative(ours["total_mass"][0], np.asarray(fixed.total))
    out["crba"] = relative(ours["crba"], inertia)
    out["kinetic_energy"] = relative(ours["kinetic_energy"], 0.5 * np.einsum("bi,bij,bj->b", v, inertia, v))
    motion = float(np.abs(inertia).max() * np.abs(v).max())  # one joint alone may have no Coriolis forces
    out["coriolis_matrix"] = relative(ours["coriolis_matrix"], batch(twin.coriolis_matrix, q, v), motion)
    moved = max(float(np.abs(ours[name]).max()) for name in ("com_jacobian", "jacobian"))  # opposite masses cancel
    com_jacobian = batch(lambda q: fixed.share * twin.com_jacobian(q), q)
    out["com_jacobian"] = relative(ours["com_jacobian"], com_jacobian, moved)
    # Gravity may do no work on any joint: forces are measured by those of the motion.
    forces = float(np.abs(ours["rnea"]).max(initial=0.0))
    out["gravity_forces"] = relative(ours["gravity_forces"], batch(twin.gravity, q), forces)
    out["bias_forces"] = relative(ours["bias_forces"], batch(lambda q, v: twin.rnea(q, v, zero), q, v), forces)
    if "aba" in ours:
        rest = batch(lambda q, v, f: twin.rnea(q, v, zero, f), q, v, f_ext) - tau
        out["aba"] = residual(inertia, ours["aba"][..., None], rest[..., None])
        slopes = np.stack([twin.rnea_derivatives(*s) for s in zip(q, v, ours["aba"], f_ext, strict=True)], axis=1)
        right = *slopes[:2], np.broadcast_to(-np.eye(model.nv), inertia.shape)
        least = (float(np.abs(slopes).max()),) * 2 + (1.0,)
        unsure = _change_by_rounding(twin, q, inertia, ours["aba"], rest)
        parts = zip(np.moveaxis(ours["aba_derivatives"], 1, 0), right, least, (unsure, 0.0, 0.0), strict=True)
        out["aba_derivatives"] = max(residual(inertia, *part) for part in parts)
    return out


def _change_by_rounding(
    twin: PinRobot, q: np.ndarray, inertia: np.ndarray, a: np.ndarray, rest: np.ndarray
) -> np.ndarray:
    """How much the derivatives of the forces along q change between accelerations that solve M a = tau - c.

    The residual of an exact solver is up to nv eps of the terms [Higham 2002, section 9.3], which is much of the
    acceleration where the condition of M is 1e8: those of `aba` and of a Cholesky factor differ by 4e-11 there.
    """
    nv, zero = twin.ours.nv, np.zeros(twin.ours.nv)
    terms = np.einsum("bij,bj->bi", np.abs(inertia), np.abs(a)) + np.abs(rest)
    rounding = nv * np.finfo(np.float64).eps * terms
    errors = np.einsum("bij,bj->bi", np.abs(np.linalg.inv(inertia)), rounding)
    still = np.zeros((twin.ours.nb, 6))

    def change(q: np.ndarray, errors: np.ndarray) -> np.ndarray:
        along = (np.abs(twin.rnea_derivatives(q, zero, e, still)[0]) for e in np.eye(nv))
        return np.asarray(sum(part * error for part, error in zip(along, errors, strict=True)))

    with _weightless(twin):
        return batch(change, q, errors)


@contextmanager
def _weightless(twin: PinRobot) -> Iterator[None]:
    gravity = twin.model.gravity.vector.copy()
    twin.model.gravity.vector = np.zeros(6)
    try:
        yield
    finally:
        twin.model.gravity.vector = gravity


class _Fixed:
    """What links that are fixed to the world, which Pinocchio's centroidal functions leave out, add to them."""

    def __init__(self, model: Model, twin: PinRobot) -> None:
        own = zip(float64(model.link_inertias), float64(model.link_placements), model.tree.link_bodies, strict=True)
        bodies = [(com_inertia(row), T) for row, T, body in own if body < 0]
        self.mass = sum(m for (m, _, _), _ in bodies)
        self.moment = sum((m * (T[:3, :3] @ c + T[:3, 3]) for (m, c, _), T in bodies), np.zeros(3))
        moving = float(sum(body.mass for body in list(twin.model.inertias)[1:]))
        read = float(twin.model.inertias[0].mass)  # what Pinocchio reads of a file that is fixed to the world
        self.total = moving + (read or self.mass)
        self.share = moving / self.total
        self.twin = twin

    def center_of_mass(self, q: np.ndarray) -> np.ndarray:
        return self.share * self.twin.center_of_mass(q) + self.moment / self.total

    def momentum_matrix(self, q: np.ndarray) -> np.ndarray:
        return change_velocity_origin(-self.center_of_mass(q)).T @ self.twin.momentum_matrix(q)


def mass_matrix(twin: PinRobot, q: np.ndarray) -> np.ndarray:
    """Pinocchio's mass matrix; of a robot with mimic joints by the columns of its inverse dynamics."""
    if not twin.has_mimics:
        return twin.crba(q)
    zero = np.zeros(twin.ours.nv)
    with _weightless(twin):  # its forces would cancel, and take digits of the small entries with them
        columns = [twin.rnea(q, zero, e) for e in np.eye(twin.ours.nv)]
    return np.stack(columns, axis=1)
