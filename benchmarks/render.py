"""Tables and a picture from the JSON of a run."""
from __future__ import annotations

from pathlib import Path
from typing import Any


def render(found: dict[str, Any]) -> str:
    return ""


def render_plot(found: dict[str, Any], path: Path) -> None: ...
