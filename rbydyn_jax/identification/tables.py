"""Tables of results, as text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def unknowns_table(names: Sequence[str], initial: np.ndarray, values: np.ndarray, deviation: np.ndarray) -> list[str]:
    """A line for each unknown: what it was, what it is, and its standard deviation."""
    width = max((len(name) for name in names), default=0)
    rows = zip(names, initial, values, deviation, strict=True)
    lines = [f"{'':{width}}  {'initial':>10}  {'fitted':>10}  {'deviation':>10}"]
    return lines + [f"{name:{width}}  {old:10.4g}  {new:10.4g}  {by:10.2g}" for name, old, new, by in rows]
