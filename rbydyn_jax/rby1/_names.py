"""Lists of names, as the SDK takes them."""

from __future__ import annotations

from typing import Any

import numpy as np


def listed(x: Any) -> Any:
    """A vector of NumPy as a list, as which the SDK takes one of names; anything else as it is."""
    return x.tolist() if type(x) is np.ndarray and x.ndim == 1 else x
