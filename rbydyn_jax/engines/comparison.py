"""One robot at many configurations: our results, and their errors against those of another engine.

Errors are relative to the largest entry of the expected array, or of its terms where they may cancel. Solves are judged
by their residual: what an engine's inverse dynamics makes of our solution, relative to the magnitudes of its terms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..algorithms.aba import aba
from ..algorithms.centroidal import center_of_mass, com_jacobian, total_mass
from ..algorithms.coriolis import coriolis_matrix
from ..algorithms.crba import crba
from ..algorithms.derivatives import aba_derivatives, rnea_derivatives
from ..algorithms.energy import kinetic_energy, potential_energy
from ..algorithms.inverse_dynamics import bias_forces, gravity_forces, rnea
from ..algorithms.jacobians import jacobian
from ..algorithms.kinematics import fk
from ..algorithms.momentum import centroidal_momentum, centroidal_momentum_matrix
from ..identification.parameter_vector import velocity_names
from ..model.configuration import neutral, random_configuration
from ..model.model import Model

SINGULAR = 1e14  # condition of a mass matrix above which nothing is solved with it
# The axis of the entries of a link or a velocity, behind that of the configurations; kinematics first.
_LINKS = {"fk": 1}
_VELOCITIES = {
    **{"jacobian": 2, "com_jacobian": 2, "centroidal_momentum_matrix": 2, "crba": 1, "gravity_forces": 1},
    **{"bias_forces": 1, "coriolis_matrix": 1, "rnea": 1, "rnea_derivatives": 2},
}
FUNCTIONS = (
    *("total_mass", "fk", "jacobian", "center_of_mass", "com_jacobian", "potential_energy", "gravity_forces", "crba"),
    *("kinetic_energy", "centroidal_momentum_matrix", "centroidal_momentum", "coriolis_matrix", "bias_forces", "rnea"),
    *("rnea_derivatives", "aba", "aba_derivatives"),
)
# Each is run once: it is compiled without the optimizations of the machine code.
_QUICK = {"xla_backend_optimization_level": 0}


class Error(NamedTuple):
    """An error of a function, and where it is.

    Attributes:
        value: The error, relative; infinite where anything is not finite.
        at: The index of the entry, the configuration first.
    """

    value: float
    at: tuple[int, ...] = ()


class Results(NamedTuple):
    """What our functions return at some states.

    Attributes:
        model: The robot.
        tip: The link whose Jacobian is taken.
        q: Configurations.
        v: Velocities.
        a: Accelerations.
        tau: Joint forces.
        f_ext: External wrenches.
        values: The results by function; without those that solve with a singular mass matrix.
    """

    model: Model
    tip: str
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    f_ext: np.ndarray
    values: dict[str, np.ndarray]


def our_results(model: Model, samples: int, seed: int = 0) -> Results:
    """All functions at configurations inside the limits, the neutral one first, and random velocities and forces."""
    first, *keys = jax.random.split(jax.random.key(seed), 5)
    q = jax.vmap(random_configuration, (None, 0))(model, jax.random.split(first, samples))
    shapes = (model.nv,), (model.nv,), (model.nv,), (model.nb, 6)
    rest = [jax.random.normal(key, (samples, *shape)) for key, shape in zip(keys, shapes, strict=True)]
    state = q.at[0].set(neutral(model)), *rest
    depth = [len(model.tree.path(body)) if body >= 0 else 0 for body in model.tree.link_bodies]
    tip = model.link_names[int(np.argmax(depth))]

    def one(model: Model, q: Any, v: Any, a: Any, tau: Any, f_ext: Any) -> dict[str, Any]:
        return {
            "total_mass": total_mass(model),
            "fk": fk(model, q),
            "jacobian": jacobian(model, q, tip),
            "rnea": rnea(model, q, v, a, f_ext),
            "crba": crba(model, q),
            "gravity_forces": gravity_forces(model, q),
            "bias_forces": bias_forces(model, q, v),
            "coriolis_matrix": coriolis_matrix(model, q, v),
            "kinetic_energy": kinetic_energy(model, q, v),
            "potential_energy": potential_energy(model, q),
            "center_of_mass": center_of_mass(model, q),
            "com_jacobian": com_jacobian(model, q),
            "centroidal_momentum": centroidal_momentum(model, q, v),
            "centroidal_momentum_matrix": centroidal_momentum_matrix(model, q),
            "rnea_derivatives": jnp.stack(jax.tree.leaves(rnea_derivatives(model, q, v, a, f_ext))),
            "aba": aba(model, q, v, tau, f_ext),
            "aba_derivatives": jnp.stack(jax.tree.leaves(aba_derivatives(model, q, v, tau, f_ext))),
        }

    found = jax.jit(jax.vmap(one, (None, 0, 0, 0, 0, 0)), compiler_options=_QUICK)(model, *state)
    values = {name: np.asarray(found[name]) for name in FUNCTIONS}
    if model.nv and not max(map(np.linalg.cond, values["crba"])) < SINGULAR:
        del values["aba"], values["aba_derivatives"]
    q, v, a, tau, f_ext = (np.asarray(x) for x in state)
    return Results(model, tip, q, v, a, tau, f_ext, values)


def relative(got: np.ndarray, want: np.ndarray, scale: float | None = None) -> Error:
    """The largest error, relative to the largest entry; infinite where anything is not finite."""
    if not got.size:
        return Error(0.0)
    errors = np.abs(got - want)
    at = np.unravel_index(np.argmax(np.where(np.isfinite(errors), errors, np.inf)), errors.shape)
    error, index = float(errors[at]), tuple(int(k) for k in at)
    size = np.abs(want).max() if scale is None else scale
    if size and np.isfinite(error):
        return Error(float(error / size), index)
    return Error(0.0 if error == 0 else np.inf, index)


def residual(
    inertia: np.ndarray, x: np.ndarray, rest: np.ndarray, least: float = 0.0, unsure: np.ndarray | float = 0.0
) -> Error:
    """M x + rest, relative to the magnitudes of its terms or to `least`, of the worst row of a batch.

    Up to the largest entry of `unsure`, for each row of the batch, nothing is an error.
    """
    if not x.size:
        return Error(0.0)
    left, terms = inertia @ x + rest, np.abs(inertia) @ np.abs(x) + np.abs(rest)
    axes = tuple(range(1, left.ndim))
    allowed = np.broadcast_to(unsure, left.shape).max(axes)
    errors = np.maximum(np.abs(left).max(axes) - allowed, 0.0) / np.maximum(terms.max(axes), least)
    errors = np.where(np.isfinite(errors), errors, np.inf)
    return Error(float(errors.max()), (int(np.argmax(errors)),))


def place(model: Model, function: str, at: tuple[int, ...]) -> str:
    """The configuration, and the link or joint, of an entry."""
    if not at:
        return ""
    words = [f"configuration {at[0]}"]
    if function in _LINKS and len(at) > _LINKS[function]:
        words.append(f"link {model.link_names[at[_LINKS[function]]]!r}")
    if function in _VELOCITIES and len(at) > _VELOCITIES[function]:
        words.append(f"joint {velocity_names(model)[at[_VELOCITIES[function]]]!r}")
    return ", ".join(words)
