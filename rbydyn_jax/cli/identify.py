"""``rbydyn identify``: the parameters of a robot from a log of its motion and torques."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._errors import ArgumentError
from ..identification import TrajectoryData, base_parameters, fit, motor_torques, read_csv
from ..identification.fitting import FitResult
from ..identification.parameter_vector import Term, velocity_names
from ..io.save import save_urdf
from ..model.model import Model
from .source import load

_ROUNDING = 1e-9  # what the squared error has to fall by, relative, to be smaller


def identify(
    log: Path,
    robot: str,
    *,
    terms: Sequence[Term],
    links: Sequence[str] = (),
    payload: str | None = None,
    constants: Sequence[float] | None = None,
    prior: float = 1.0,
    huber: float | None = None,
    window: int = 21,
    held_out: float = 0.25,
    output: Path | None = None,
    as_json: bool = False,
) -> int:
    """Fits a robot to a log and prints what was found.

    Returns 0 if the fitted robot predicts the rows that were held out better than the given one, 1 if it does not or
    the fit did not come to an end.

    Args:
        log: A CSV file; see `identification.read_csv`.
        robot: A file or a name.
        terms: What is fitted; see `identification.fit`.
        links: The links whose inertia is fitted; default is all, or none if there is a payload.
        payload: A link that carries something unknown.
        constants: If the log has currents: torque per ampere of each joint [N m/A, N/A], the initial values.
        prior: How far the initial parameters may be wrong, relative to their size.
        huber: Errors beyond this many standard deviations count linearly.
        window: Number of rows over which positions are smoothed.
        held_out: Share of the rows, the last ones, that are not fitted.
        output: A URDF file for the fitted robot, which is replaced if it exists.
        as_json: Whether to print a JSON document instead of tables.

    Raises:
        ArgumentError: A value does not fit.
        ModelError: A joint has more positions than velocities, or `output` is given and URDF has no such joint.
        NameNotFoundError: There is no such robot or link.
        ParseError: The log or the file of the robot cannot be read.
        ShapeError: `constants` has another number of values than the robot has velocities.
    """
    with jax.enable_x64(True):
        model = load(robot)
        data = read_csv(model, log, measured="tau" if constants is None else "current", window=window)
        count = len(data) - int(held_out * len(data))
        if not 0 < count < len(data):
            raise ArgumentError(f"there are {len(data)} rows, of which {count} are fitted: too few")
        print(f"{len(data)} rows of {model.nv} joints are read, {count} are fitted", file=sys.stderr)
        used = {"terms": terms, "links": links or None, "payload": payload, "prior": prior, "huber": huber}
        given = None if constants is None else jnp.asarray(constants, dtype=float)
        found = fit(model, data[:count], constants=given, **used)
        if (torques := count * model.nv) < (unknowns := len(found.names)):
            print(f"warning: {torques} torques are fitted to {unknowns} unknowns: the prior decides", file=sys.stderr)
        told = base_parameters(model, data[:count], terms=terms, links=links or None, payload=payload)
        before, after = (_errors(x, data[count:], k) for x, k in ((model, given), (found.model, found.constants)))
        consistent = all(found.consistent.values())
        if output is not None:
            save_urdf(found.model, output)
    good = found.converged and float((after**2).sum()) < (1.0 - _ROUNDING) * float((before**2).sum())
    facts = {
        "name": model.name,
        "rows": {"fitted": count, "held_out": len(data) - count},
        "combinations": {"of": len(told.names), "told_apart": told.rank, "condition": told.condition},
        "converged": found.converged,
        "consistent": consistent,
        "better": good,
        "unknowns": _unknowns(found),
        "errors": {
            name: {"noise": float(noise), "before": float(old), "after": float(new)}
            for name, noise, old, new in zip(velocity_names(model), found.noise, before, after, strict=True)
        },
    }
    print(json.dumps(facts, indent=2) if as_json else _as_text(facts, found))
    return 0 if good else 1


def _errors(model: Model, data: TrajectoryData, constants: Any) -> np.ndarray:
    """The root mean squares of the errors of the torques [N m, N]."""
    tau = jax.jit(jax.vmap(motor_torques, (None, 0, 0, 0)))(model, *data.motion)
    measured = np.asarray(data.tau) * (1.0 if constants is None else np.asarray(constants))
    return np.sqrt(np.mean((np.asarray(tau) - measured) ** 2, axis=0))


def _unknowns(found: FitResult) -> dict[str, dict[str, float | None]]:
    """The unknowns; a deviation that is infinite is None, which JSON can say."""
    deviation = [float(x) if np.isfinite(x) else None for x in found.deviation]
    rows = zip(found.names, found.initial, found.values, deviation, strict=True)
    return {name: {"initial": float(a), "fitted": float(b), "deviation": c} for name, a, b, c in rows}


def _as_text(facts: dict[str, Any], found: FitResult) -> str:
    told, rows = facts["combinations"], facts["rows"]
    width = max(map(len, ("error of torque", *facts["errors"])))
    lines = [*found.unknowns_table(), "", f"{'error of torque':{width}}  {'noise':>10}  {'before':>10}  {'after':>10}"]
    for name, x in facts["errors"].items():
        lines.append(f"{name:{width}}  {x['noise']:10.3g}  {x['before']:10.3g}  {x['after']:10.3g}")
    lines += [
        "",
        f"of {told['of']} parameters the motion tells {told['told_apart']} combinations apart, condition number "
        f"{told['condition']:.3g}",
        f"before and after are those of the last {rows['held_out']} rows, which were not fitted",
        "every link can exist" if facts["consistent"] else "a link cannot exist",
    ]
    if not facts["converged"]:
        lines.append("the fit did not come to an end")
    elif not facts["better"]:
        lines.append("the fitted robot does not predict the rows that were held out better than the given one")
    return "\n".join(lines)
