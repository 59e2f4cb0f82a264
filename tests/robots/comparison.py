"""One robot beside Pinocchio and MuJoCo: every core function at many configurations."""

from __future__ import annotations

from rbydyn_jax import Model, ModelError
from rbydyn_jax.engines.against_mujoco import errors_against_mujoco
from rbydyn_jax.engines.against_pinocchio import errors_against_pinocchio
from rbydyn_jax.engines.comparison import our_results
from rbydyn_jax.engines.mujoco import mujoco_model
from rbydyn_jax.engines.pinocchio import PinRobot

Errors = dict[tuple[str, str], float]  # by function and engine


def compare(model: Model, twin: PinRobot, count: int) -> tuple[Errors, str]:
    """Errors by function and engine, and why anything was left out."""
    ours, notes = our_results(model, count), []
    if "aba" not in ours.values:
        notes.append("singular mass matrix: nothing solved")
    errors = {(name, "Pinocchio"): e.value for name, e in errors_against_pinocchio(ours, twin).items()}
    try:
        other = mujoco_model(model)
    except ModelError as reason:
        notes.append(str(reason))
    else:
        errors |= {(name, "MuJoCo"): e.value for name, e in errors_against_mujoco(ours, other).items()}
    return errors, "; ".join(notes)
