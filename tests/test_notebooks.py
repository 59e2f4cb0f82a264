"""Every notebook runs to its last assertion, is paired with its script, and is stored without outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.helpers import ROOT

NOTEBOOKS = ROOT / "notebooks"
SCRIPTS = sorted(NOTEBOOKS.glob("*.py"))
every_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)


def test_every_notebook_has_its_script():
    names = {path.stem for path in SCRIPTS}
    assert {"quickstart", "batches_and_gradients", "trajectory_optimization"} <= names
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == names


@every_script
def test_notebook_is_paired_and_has_no_outputs(script: Path):
    jupytext = pytest.importorskip("jupytext")
    paired = script.with_suffix(".ipynb")
    stored = json.loads(paired.read_text())
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert code and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    from_script, from_notebook = jupytext.read(script), jupytext.read(paired)
    for notebook in (from_script, from_notebook):
        assert notebook.metadata["jupytext"]["formats"] == "ipynb,py:percent"
    # In step: if not, `jupytext --to ipynb notebooks/*.py` writes the notebooks anew.
    assert [(c.cell_type, c.source) for c in from_script.cells] == [
        (c.cell_type, c.source) for c in from_notebook.cells
    ]
    assert from_script.cells[0].cell_type == "markdown" and from_script.cells[0].source.startswith("# ")
    assert stored["cells"][-1] is code[-1] and "assert " in "".join(code[-1]["source"]), "a notebook ends in assertions"


@pytest.mark.notebook
# The kernel is another process; its start-up reports on sockets and event loops that are no concern of the notebook.
@pytest.mark.filterwarnings("default")
@every_script
def test_notebook_runs(script: Path, tmp_path: Path):
    jupytext = pytest.importorskip("jupytext")
    nbclient = pytest.importorskip("nbclient")
    notebook = jupytext.read(script)
    resources = {"metadata": {"path": str(tmp_path)}}
    client = nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources)
    client.execute()
    assert all(cell.get("execution_count") for cell in notebook.cells if cell.cell_type == "code")
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    told = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stderr")
    assert "Warning" not in told, told
    if script.stem == "trajectory_optimization":
        assert any("image/png" in output.get("data", {}) for output in outputs), "the picture is shown"
