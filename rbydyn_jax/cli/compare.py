"""``rbydyn compare``: our results beside those of other engines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from .._errors import ModelError
from .._extras import require
from ..engines.comparison import FUNCTIONS, Error, Results, our_results, place
from .source import find


class _Engine(NamedTuple):
    """What a comparison with an engine needs: its package, the extra that installs it, and the errors against it."""

    package: str
    extra: str
    errors: Callable[[Results, Path | None], tuple[dict[str, Error], str]]


def _pinocchio(ours: Results, urdf: Path | None) -> tuple[dict[str, Error], str]:
    from ..engines.against_pinocchio import errors_against_pinocchio
    from ..engines.pinocchio import pin_twin

    twin, note = pin_twin(ours.model, urdf.read_bytes() if urdf else None)
    return errors_against_pinocchio(ours, twin), note


def _mujoco(ours: Results, _: Path | None) -> tuple[dict[str, Error], str]:
    from ..engines.against_mujoco import errors_against_mujoco
    from ..engines.mujoco import mujoco_model

    return errors_against_mujoco(ours, mujoco_model(ours.model)), ""


def _rby1_sdk(ours: Results, _: Path | None) -> tuple[dict[str, Error], str]:
    from ..engines.against_rby1_sdk import errors_against_rby1_sdk
    from ..engines.rby1_sdk import rby1_model

    return errors_against_rby1_sdk(ours, rby1_model(ours.model)), ""


_ENGINES = {
    "pinocchio": _Engine("pinocchio", "pinocchio", _pinocchio),
    "mujoco": _Engine("mujoco", "mjcf", _mujoco),
    "rby1_sdk": _Engine("rby1_sdk", "rby1", _rby1_sdk),
}


def compare(
    robot: str, engines: Sequence[str], samples: int = 100, seed: int = 0, bound: float = 1e-9, as_json: bool = False
) -> int:
    """Prints the relative error of each function against each engine; returns 0, or 1 if one is above the bound.

    Pinocchio reads a URDF file itself; otherwise our parameters are written into the engine.

    Args:
        robot: A file or a name.
        engines: Some of ``"pinocchio"``, ``"mujoco"``, ``"rby1_sdk"``.
        samples: Number of configurations.
        seed: Seed of the random states.
        bound: The largest error that passes.
        as_json: Whether to print a JSON document instead of a table.

    Raises:
        MissingExtraError: An engine is not installed.
        ModelError: The robot has no joint that moves, or an engine has no such joints.
        NameNotFoundError: There is no such robot.
        ParseError: The file describes no robot.
    """
    for name in engines:
        require(_ENGINES[name].package, _ENGINES[name].extra, f"rbydyn compare --with {name}")
    with jax.enable_x64(True):
        found = find(robot)
        model = found.load()
        if not (model.nv and bool((model.inertias[:, 0] != 0).any())):
            raise ModelError(f"{model.name} has no joint that moves a mass")
        ours = our_results(model, samples, seed)
        urdf = found.path if found.format == "urdf" else None
        against = {name: _ENGINES[name].errors(ours, urdf) for name in engines}
    errors = {name: table for name, (table, _) in against.items()}
    notes = [note for _, note in against.values() if note]
    if "aba" not in ours.values:
        notes.append("singular mass matrix: nothing is solved")
    worst = next(_differences(errors, bound), None)
    first = None if worst is None else _described(ours, *worst)
    facts = {
        "name": model.name,
        "samples": samples,
        "bound": bound,
        "errors": {name: {f: error.value for f, error in table.items()} for name, table in errors.items()},
        "first_difference": first,
        "notes": notes,
    }
    print(json.dumps(facts, indent=2) if as_json else _as_text(facts))
    return 0 if worst is None else 1


def _differences(errors: dict[str, dict[str, Error]], bound: float) -> Iterator[tuple[str, str, Error]]:
    """What is above the bound, kinematics first: an error there causes those of the dynamics."""
    for function in FUNCTIONS:
        for engine, table in errors.items():
            if function in table and not table[function].value <= bound:
                yield function, engine, table[function]


def _described(ours: Results, function: str, engine: str, error: Error) -> str:
    where = place(ours.model, function, error.at)
    return f"{function} against {engine}: {error.value:.1e}" + (f" at {where}" if where else "")


def _as_text(facts: dict[str, Any]) -> str:
    engines, errors = list(facts["errors"]), facts["errors"]
    lines = [
        f"{facts['name']}: relative errors at {facts['samples']} configurations, ! above {facts['bound']:g}",
        "",
        f"{'':28}" + "".join(f"{engine:>12} " for engine in engines),
    ]
    for function in FUNCTIONS:
        values = [errors[engine].get(function) for engine in engines]
        cells = ["" if x is None else f"{x:.1e}" for x in values]
        marks = [" " if x is None or x <= facts["bound"] else "!" for x in values]
        if any(cells):
            lines.append(f"{function:28}" + "".join(f"{x:>12}{m}" for x, m in zip(cells, marks, strict=True)).rstrip())
    lines += ["", *facts["notes"]]
    first = facts["first_difference"]
    return "\n".join([*lines, f"first difference: {first}" if first else "no difference above the bound"])
