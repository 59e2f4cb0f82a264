"""The files that robot files mean by the names of meshes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

_SEARCHED = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH")


def find_mesh(filename: str, urdf: str | Path, packages: Sequence[str | Path] = ()) -> Path | None:
    """The file that a URDF file means by the name of a mesh; None if it is not found.

    ``package://NAME/...`` is looked for in the folders `packages`, in those of ROS_PACKAGE_PATH, AMENT_PREFIX_PATH and
    CMAKE_PREFIX_PATH, and in the folders around the file; other names are relative to the file.

    Args:
        filename: The name in the file.
        urdf: The URDF file.
        packages: Folders that are packages, or that hold some.
    """
    around = Path(urdf).resolve().parent
    scheme, colon, rest = filename.partition("://")
    if not colon:
        candidates: Iterator[Path] = iter([around / filename])
    elif scheme == "file":
        candidates = iter([Path(unquote(rest))])
    elif scheme in ("package", "model"):
        name, _, inside = rest.partition("/")
        candidates = _in_packages(name, inside, [*map(Path, packages), *_environment(), around, *around.parents])
    else:
        return None
    return next((path for path in candidates if path.is_file()), None)


def _in_packages(name: str, inside: str, folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        if folder.name == name:
            yield folder / inside
        yield folder / name / inside
        yield folder / "share" / name / inside


def _environment() -> list[Path]:
    return [Path(x) for name in _SEARCHED for x in os.environ.get(name, "").split(os.pathsep) if x]
