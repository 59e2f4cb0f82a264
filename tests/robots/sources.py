"""The robots of `python -m tests.robots`: every URDF that is installed, the vendor's, and random trees."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from rbydyn_jax import Model, load_urdf_string, with_traversal
from rbydyn_jax.engines.pinocchio import PinRobot, pin_model, pin_twin
from rbydyn_jax.joints import JOINT_TYPES
from rbydyn_jax.testing import random_tree
from tests.helpers import RBY1_DIRECTORY, example_robot_directory

# Wheels that ship robots: the extra `robots`.
WHEELS = (
    "airo-models",
    "cookie-description",
    "dexmate-urdf",
    "gym-ignition-models",
    "hex-util-urdf",
    "icub-models",
    "jvrc-description",
    "upkie-description",
)
_SCALARS = ("revolute", "continuous", "prismatic", "fixed")
_ENGINES = ("revolute", "continuous", "prismatic", "spherical", "fixed")
# Number of joints, types of joint, mimic joints.
_TREES: tuple[tuple[int, tuple[str, ...], int], ...] = tuple(
    (n, types, mimics)
    for n in (5, 10, 20, 30, 45, 60)
    for types, mimics in ((tuple(JOINT_TYPES), 0), (tuple(JOINT_TYPES), 2), (_SCALARS, 0), (_SCALARS, 2), (_ENGINES, 0))
)
# Trees with more bodies are swept by loops: their programs do not grow with the number of bodies.
_UNROLLED = 24


class Robot(NamedTuple):
    """A robot by name: of a file, with a floating base or without, or a random tree."""

    source: str
    name: str
    path: Path | None = None
    floating_base: bool = False
    seed: int = 0

    def size(self) -> int:
        """Its number of joints, more or less."""
        return self.path.read_bytes().count(b"<axis") if self.path else _TREES[self.seed][0]

    def build(self) -> tuple[Model, PinRobot, str]:
        """Our model, Pinocchio's of the same file or else of our numbers, and why of our numbers."""
        if self.path is None:
            n, types, mimics = _TREES[self.seed]
            model = _swept(random_tree(self.seed, types, max(n, len(types)), mimics=mimics))
            return model, pin_model(model), ""
        text = self.path.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = _swept(load_urdf_string(text, floating_base=self.floating_base))
        return model, *pin_twin(model, text)


def _swept(model: Model) -> Model:
    return model if model.nb <= _UNROLLED else with_traversal(model, "scanned")


def robots() -> list[Robot]:
    """All of them, small ones first, files of equal content once; every second file is put on a floating base."""
    seen: set[bytes] = set()
    taken: set[tuple[str, str]] = set()
    found: list[Robot] = []
    for source, path in _files():
        digest = hashlib.sha256(path.read_bytes()).digest()
        if digest not in seen:
            seen.add(digest)
            name = path.stem if path.stem != "model" else path.parent.name
            if (source, name) in taken:  # by a file of other content
                name = f"{path.parent.name}/{name}"
            taken.add((source, name))
            found.append(Robot(source, name, path, floating_base=len(found) % 2 == 1))
    found += [Robot("random trees", f"tree {seed}", seed=seed) for seed in range(len(_TREES))]
    return sorted(found, key=Robot.size)


def _files() -> Iterator[tuple[str, Path]]:
    if RBY1_DIRECTORY.is_dir():
        yield from (("RB-Y1", path) for path in sorted(RBY1_DIRECTORY.glob("*.urdf")))
    if folder := example_robot_directory():
        yield from (("example-robot-data", path) for path in sorted(folder.rglob("*.urdf")))
    for wheel in WHEELS:
        try:
            files = metadata.files(wheel) or []
        except metadata.PackageNotFoundError:
            continue
        yield from ((wheel, Path(str(file.locate()))) for file in sorted(files) if file.suffix == ".urdf")
