"""The results of a run on disk, written after every job, so that a run that is stopped can be resumed."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

from .plans import Job

KINDS = ("compile", "times", "single", "failures", "done")


class Store:
    """A JSON file: where, when and with what was measured, and lists of records.

    Args:
        path: The file.
        keep: Whether what it holds is kept; it must then be of this machine and these versions.
    """

    def __init__(self, path: Path, keep: bool) -> None:
        versions = {"python": platform.python_version(), **_versions("jax", "jaxlib", "numpy", "rbydyn_jax")}
        self.path = path
        self.found: dict[str, Any] = {
            "date": datetime.date.today().isoformat(),
            "machine": _machine(),
            "versions": versions,
            "peak": {},
            "wall_s": 0,
            **{kind: [] for kind in KINDS},
        }
        if keep and path.exists():
            old = json.loads(path.read_text())
            for what in ("machine", "versions"):
                now = self.found[what]
                if {name: old[what].get(name) for name in now} != now:
                    raise SystemExit(f"{path} is of another machine or other versions: {old[what]}, not {now}")
            self.found = old | {"date": self.found["date"]}

    @property
    def about(self) -> dict[str, Any]:
        """When, where and with what it is measured."""
        return {key: self.found[key] for key in ("date", "machine", "versions")}

    def save_run(self, record: dict[str, Any]) -> dict[str, Any]:
        """Writes what was measured in the place of what the same jax gave, and keeps what other versions gave."""
        kept = json.loads(self.path.read_text())["runs"] if self.path.exists() else []
        others = [run for run in kept if run["versions"].get("jax") != self.about["versions"].get("jax")]
        found = {"runs": [*others, self.about | record]}
        self.path.write_text(json.dumps(found, indent=1) + "\n")
        return found

    def has(self, job: Job) -> bool:
        """Whether a job has been done, with all its batches."""
        return any(_key(x) == job.key and set(job.batches) <= set(x["batches"]) for x in self.found["done"])

    def forget(self, job: Job) -> None:
        """Removes what is known of a job."""
        for kind in KINDS:
            self.found[kind] = [x for x in self.found[kind] if _key(x) != job.key]

    def add(self, kind: str, record: dict[str, Any]) -> None:
        """Adds what a worker has told."""
        if kind == "versions":
            self.found["versions"] |= record
        elif kind == "peak":
            self.found["peak"][record["dtype"]] = record["per_second"]
        else:
            self.found[kind].append(record)

    def save(self, seconds: float) -> None:
        """Writes the file; `seconds` have passed since the last time."""
        self.found["wall_s"] = round(self.found["wall_s"] + seconds, 1)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.found, indent=1) + "\n")


def _key(record: dict[str, Any]) -> tuple[str, str, str]:
    return record["robot"], record["dtype"], record["operation"]


def _machine() -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    fields = dict(reversed([[x.strip() for x in line.split(":", 1)] for line in lines if ":" in line]))
    vectors = [x for x in ("avx512f", "avx2", "asimd") if x in fields.get("flags", fields.get("Features", "")).split()]
    return {
        "cpu": fields.get("model name", platform.processor() or platform.machine()),
        "cores": os.cpu_count(),
        "vectors": vectors[0] if vectors else "",
        "system": platform.system(),
    }


def _versions(*names: str) -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in names}
