"""What must hold of every damaged file: a typed error, or a model with finite numbers and finite gravity forces.

The forces are computed in NumPy, in the dtype of the model: nothing is compiled for a file.
"""

from __future__ import annotations

import signal
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

import rbydyn_jax as rb
from rbydyn_jax import Model
from rbydyn_jax.model.tree import IS_MINUS_ONE, IS_ONE, IS_ZERO

from .sources import Kind

LIMITS = ("position_lower", "position_upper", "velocity_limit", "acceleration_limit", "effort_limit")
TIME = 5.0


class Outcome(NamedTuple):
    """What became of one file: ``"loaded"``, ``"refused"``, or what is wrong; and its CPU time [s]."""

    result: str
    seconds: float
    detail: str = ""


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def load(kind: Kind, damaged: str | bytes, folder: Path) -> Model:
    """Loads a file of a kind."""
    if kind == "urdf":
        return rb.load_urdf_string(damaged)
    path = folder / f"robot.{kind}"
    path.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode("utf-8", errors="replace"))
    return rb.load_mjcf(path) if kind == "mjcf" else rb.load_xacro(path)


def gravity_forces(model: Model) -> np.ndarray:
    """Generalized forces that hold the robot still at the neutral configuration, from world poses and moments."""
    tree, dtype = model.tree, model.inertias.dtype
    numbers = np.append(np.asarray(model.geometry, float), [-1.0, 1.0, 0.0])  # constants are -1, -2 and -3 there
    constants = {IS_ZERO: -1, IS_ONE: -2, IS_MINUS_ONE: -3}
    placements = []
    for row in tree.placement_pattern:
        entries = numbers[[constants.get(k, k) for k in row]]
        placements.append(np.eye(4))
        placements[-1][:3, :3], placements[-1][:3, 3] = entries[:9].reshape(3, 3), entries[9:]
    rows = [numbers[[constants.get(k, k) for k in row]] for row in tree.axis_pattern]
    axes, own = [row[:3] for row in rows], [row[3:].tolist() for row in rows]
    poses, columns = {-1: np.eye(4, dtype=dtype)}, {}
    for i in tree.order:
        joint, mimic = tree.joints[i], tree.mimics[i]
        q = joint.neutral() if mimic is None else np.asarray(model.mimic_offsets)[[mimic.slot]]
        T = placements[i] @ joint.matrix(axes[i], own[i], q)
        poses[i], columns[i] = poses[tree.parents[i]] @ T.astype(dtype), joint.columns(axes[i], own[i]).astype(dtype)
    wrenches = {}
    for i, pose in poses.items():  # about the world's origin
        if i >= 0:
            m, h = np.asarray(model.inertias)[i, 0], np.asarray(model.inertias)[i, 1:4]
            force = -m * np.asarray(model.gravity)
            moment = -np.cross(m * pose[:3, 3] + pose[:3, :3] @ h, np.asarray(model.gravity))
            wrenches[i] = np.concatenate([moment, force])
    forces = np.zeros(model.nv, dtype)
    for i in reversed(tree.order):
        pose, (n, f) = poses[i], np.split(wrenches[i], 2)
        local = np.concatenate([pose[:3, :3].T @ (n - np.cross(pose[:3, 3], f)), pose[:3, :3].T @ f])
        mimic = tree.mimics[i]
        factor = np.asarray(1.0, dtype) if mimic is None else np.asarray(model.mimic_multipliers)[mimic.slot]
        forces[tree.v_slices[i if mimic is None else mimic.source]] += factor * (columns[i].T @ local)
        if tree.parents[i] >= 0:
            wrenches[tree.parents[i]] = wrenches[tree.parents[i]] + wrenches[i]
    return forces


def problem(model: Model) -> str:
    """What is wrong with a model; empty if nothing is."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(model):
        name, numbers = jax.tree_util.keystr(path), np.asarray(leaf)
        if name.strip(".") in LIMITS:
            if np.isnan(numbers).any():
                return f"NaN in {name}"
        elif not np.isfinite(numbers).all():
            return f"not finite: {name}"
    if (np.isposinf(model.position_lower) | np.isneginf(model.position_upper)).any():
        return "limits leave no position"
    with np.errstate(all="ignore"):
        forces = gravity_forces(model)
    return "" if np.isfinite(forces).all() else "gravity forces are not finite"


def examine(kind: Kind, damaged: str | bytes, folder: Path) -> Outcome:
    """Loads a damaged file and checks what must hold."""
    start = time.process_time()
    try:
        with _limit(2.0 * TIME):
            model = load(kind, damaged, folder)
    except rb.RbydynError as error:
        result, detail = "refused", str(error)
        if not detail.strip():
            result = "an error without a message"
    except TimeoutError:
        result, detail = "hang", traceback.format_exc()
    except Exception as error:
        result, detail = f"untyped {type(error).__name__}", traceback.format_exc()
    else:
        detail = problem(model)
        result = detail or "loaded"
    seconds = time.process_time() - start
    return Outcome("hang" if seconds > TIME else result, seconds, detail)


def folder() -> tempfile.TemporaryDirectory[str]:
    """Where files are written that cannot be loaded from text."""
    return tempfile.TemporaryDirectory(prefix="fuzz")
