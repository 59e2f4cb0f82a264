"""Every notebook runs to its last assertion, is paired with its script, and is stored without outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers import ROOT

SCRIPTS = sorted((ROOT / "notebooks").glob("*.py"))
pytestmark = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)


def test_notebook_is_paired_and_has_no_outputs(script: Path):
    jupytext = pytest.importorskip("jupytext")
    paired = script.with_suffix(".ipynb")
    stored = json.loads(paired.read_text())
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert code and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    from_script, from_notebook = jupytext.read(script), jupytext.read(paired)
    assert [c.source for c in from_script.cells] == [c.source for c in from_notebook.cells]
    assert "assert " in "".join(code[-1]["source"]), "a notebook ends in assertions"


@pytest.mark.notebook
# The kernel is another process; its start-up reports on sockets and event loops that are no concern of the notebook.
@pytest.mark.filterwarnings("default")
def test_notebook_runs(script: Path, tmp_path: Path):
    jupytext = pytest.importorskip("jupytext")
    nbclient = pytest.importorskip("nbclient")
    notebook = jupytext.read(script)
    resources = {"metadata": {"path": str(tmp_path)}}
    client = nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources)
    client.execute()
    assert all(cell.get("execution_count") for cell in notebook.cells if cell.cell_type == "code")
