"""One robot at many configurations: every core function against Pinocchio and MuJoCo.

Errors are relative to the largest entry of the expected array, or of its terms where they may cancel. Solves are judged
by their residual: what an engine's inverse dynamics makes of our solution, relative to the magnitudes of its terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax import Model
from tests.oracles.conventions import change_velocity_origin, com_inertia, float64
from tests.oracles.mujoco_oracle import MujocoRobot, mujoco_model
from tests.oracles.pinocchio_oracle import PinRobot, batch

SINGULAR = 1e14  # condition of a mass matrix above which nothing is solved with it
Arrays = dict[str, np.ndarray]
Errors = dict[tuple[str, str], float]  # by function and engine


def states(model: Model, count: int) -> tuple[jax.Array, ...]:
    """Configurations inside the limits, the neutral one first; velocities, accelerations, forces and wrenches."""
    keys = jax.random.split(jax.random.key(0), count)
    q = jax.jit(jax.vmap(rb.random_configuration, (None, 0)))(model, keys)
    shapes = (model.nv,), (model.nv,), (model.nv,), (model.nb, 6)
    rest = (jax.random.normal(jax.random.key(k), (count, *shape)) for k, shape in enumerate(shapes))
    return q.at[0].set(rb.neutral(model)), *rest


def compute(model: Model, tip: str, state: tuple[jax.Array, ...], solves: bool) -> Arrays:
    """All functions of one robot as one program."""

    def one(model: Model, q: Any, v: Any, a: Any, tau: Any, f_ext: Any) -> dict[str, Any]:
        out = {
            "fk": rb.fk(model, q),
            "jacobian": rb.jacobian(model, q, tip),
            "rnea": rb.rnea(model, q, v, a, f_ext),
            "crba": rb.crba(model, q),
            "gravity_forces": rb.gravity_forces(model, q),
            "bias_forces": rb.bias_forces(model, q, v),
            "coriolis_matrix": rb.coriolis_matrix(model, q, v),
            "kinetic_energy": rb.kinetic_energy(model, q, v),
            "potential_energy": rb.potential_energy(model, q),
            "center_of_mass": rb.center_of_mass(model, q),
            "com_jacobian": rb.com_jacobian(model, q),
            "centroidal_momentum": rb.centroidal_momentum(model, q, v),
            "centroidal_momentum_matrix": rb.centroidal_momentum_matrix(model, q),
            "rnea_derivatives": jnp.stack(jax.tree.leaves(rb.rnea_derivatives(model, q, v, a, f_ext))),
        }
        if solves:
            out["aba"] = rb.aba(model, q, v, tau, f_ext)
            out["aba_derivatives"] = jnp.stack(jax.tree.leaves(rb.aba_derivatives(model, q, v, tau, f_ext)))
        return out

    results = jax.jit(jax.vmap(one, (None, 0, 0, 0, 0, 0)))(model, *state)
    return {name: np.asarray(x) for name, x in results.items()}


def compare(model: Model, twin: PinRobot, count: int) -> tuple[Errors, str]:
    """Errors by function and engine, and why anything was left out."""
    state = states(model, count)
    rows = tuple(np.asarray(x) for x in state)
    inertia = batch(lambda q: mass_matrix(twin, q), rows[0])
    condition = max(map(np.linalg.cond, inertia)) if model.nv else 1.0
    solves, notes = bool(condition < SINGULAR), []
    if not solves:
        notes.append("singular mass matrix: nothing solved")
    tip = _tip(model)
    ours = compute(model, tip, state, solves)
    errors = {(name, "Pinocchio"): e for name, e in _pinocchio(model, twin, tip, rows, inertia, ours).items()}
    try:
        other = mujoco_model(model)
    except ValueError as reason:
        text = str(reason).splitlines()[0].removeprefix("Error: ")
        notes.append(text if text.startswith("MuJoCo") else f"MuJoCo: {text}")
    else:
        errors |= {(name, "MuJoCo"): e for name, e in _mujoco(model, other, tip, rows, ours).items()}
    return errors, "; ".join(notes)


def mass_matrix(twin: PinRobot, q: np.ndarray) -> np.ndarray:
    """Pinocchio's mass matrix; of a robot with mimic joints by the columns of its inverse dynamics."""
    if not twin.has_mimics:
        return twin.crba(q)
    zero = np.zeros(twin.ours.nv)
    gravity = twin.rnea(q, zero, zero)
    return np.stack([twin.rnea(q, zero, e) - gravity for e in np.eye(twin.ours.nv)], axis=1)


def relative(got: np.ndarray, want: np.ndarray, scale: float | None = None) -> float:
    """The largest error, relative to the largest entry; infinite where anything is not finite."""
    if not got.size:
        return 0.0
    error = np.abs(got - want).max()
    size = np.abs(want).max() if scale is None else scale
    return float(error / size) if size and np.isfinite(error) else 0.0 if error == 0 else np.inf


def residual(inertia: np.ndarray, x: np.ndarray, rest: np.ndarray, least: float = 0.0) -> float:
    """M x + rest, relative to the magnitudes of its terms or to `least`, of the worst row of a batch."""
    if not x.size:
        return 0.0
    left, terms = inertia @ x + rest, np.abs(inertia) @ np.abs(x) + np.abs(rest)
    axes = tuple(range(1, left.ndim))
    worst = (np.abs(left).max(axes) / np.maximum(terms.max(axes), least)).max()
    return float(worst) if np.isfinite(worst) else np.inf


def _tip(model: Model) -> str:
    depth = [len(model.tree.path(body)) if body >= 0 else 0 for body in model.tree.link_bodies]
    return model.link_names[int(np.argmax(depth))]


def _pinocchio(
    model: Model, twin: PinRobot, tip: str, rows: tuple[np.ndarray, ...], inertia: np.ndarray, ours: Arrays
) -> dict[str, float]:
    q, v, a, tau, f_ext = rows
    fixed, zero = _Fixed(model, twin), np.zeros(model.nv)
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
    out["total_mass"] = relative(np.asarray(rb.total_mass(model)), np.asarray(fixed.total))
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
        parts = zip(np.moveaxis(ours["aba_derivatives"], 1, 0), right, least, strict=True)
        out["aba_derivatives"] = max(residual(inertia, *part) for part in parts)
    return out


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


def _mujoco(model: Model, other: MujocoRobot, tip: str, rows: tuple[np.ndarray, ...], ours: Arrays) -> dict[str, float]:
    q, v, a, tau, f_ext = rows
    zero, link = np.zeros_like(v), model.link_index(tip)
    body, placements = model.tree.link_bodies[link], float64(model.link_placements)
    moving = [i for i, carrier in enumerate(model.tree.link_bodies) if carrier >= 0]
    carriers = [model.tree.link_bodies[i] for i in moving]

    def jacobian(q: np.ndarray) -> np.ndarray:
        arm = other.body_poses(q)[body, :3, :3] @ placements[link, :3, 3]
        return change_velocity_origin(arm) @ other.jacobian(q, body)

    forces = float(np.abs(ours["rnea"]).max())
    out = {
        "fk": relative(ours["fk"][:, moving], batch(other.body_poses, q)[:, carriers] @ placements[moving]),
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
