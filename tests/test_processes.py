"""Threads and processes beside one another: the right number or the documented error, and never a wait without end."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.helpers import ROOT

SCRIPT = """
import sys, warnings
import jax
from benchmarks.soak import _count, as_documented, in_process, threads

def main():
    if sys.argv[1] == "threads":
        jax.monitoring.register_event_duration_secs_listener(_count)
        assert [x.programs for x in threads(300)] == [0]
        return
    warnings.simplefilter("ignore")  # Python 3.12 and JAX warn of a fork
    next(threads(200))  # JAX is used, and its threads are there
    got = in_process(sys.argv[1], 60.0)
    assert as_documented(sys.argv[1], got), got

if __name__ == "__main__":  # `spawn` imports this again
    main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["threads", "spawn", *(["fork"] if hasattr(os, "fork") else [])])
def test_neighbours(way: str, tmp_path):
    script = tmp_path / "neighbours.py"
    script.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    environment.pop("XLA_FLAGS", None)
    done = subprocess.run(
        [sys.executable, str(script), way], capture_output=True, text=True, timeout=240, env=environment, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-2000:]
