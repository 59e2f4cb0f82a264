"""Every notebook runs to its last assertion, is paired with its script, and is stored with the outputs it has now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from website.tutorials import NOTEBOOKS, difference, execute, page_of, pictures, texts

SCRIPTS = sorted(NOTEBOOKS.glob("*.py"))
every_script = pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)


def test_every_notebook_has_its_script():
    names = {path.stem for path in SCRIPTS}
    wanted = {"quickstart", "batches_and_gradients", "own_robot", "contact", "identification", "rby1"}
    assert wanted | {"balance", "detect_push", "collision", "inverse_kinematics", "timing", "mpc"} <= names
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == names


@every_script
def test_notebook_is_paired_and_has_outputs(script: Path):
    jupytext = pytest.importorskip("jupytext")
    paired = script.with_suffix(".ipynb")
    stored = json.loads(paired.read_text())
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert texts(stored) and pictures(stored) and all(x.startswith(b"\x89PNG") for x in pictures(stored))
    from_script, from_notebook = jupytext.read(script), jupytext.read(paired)
    for notebook in (from_script, from_notebook):
        assert notebook.metadata["jupytext"]["formats"] == "ipynb,py:percent"
    # In step: if not, `python -m website.tutorials NAME` executes the script and writes the notebook anew.
    assert [(c.cell_type, c.source) for c in from_script.cells] == [
        (c.cell_type, c.source) for c in from_notebook.cells
    ]
    assert from_script.cells[0].cell_type == "markdown" and from_script.cells[0].source.startswith("# ")
    assert stored["cells"][-1] is code[-1] and "assert " in "".join(code[-1]["source"]), "a notebook ends in assertions"


@pytest.mark.notebook
# The kernel is another process; its start-up reports on sockets and event loops that are no concern of the notebook.
@pytest.mark.filterwarnings("default")
@every_script
def test_notebook_runs_and_says_what_is_stored(script: Path, tmp_path: Path):
    pytest.importorskip("jupytext")
    pytest.importorskip("nbclient")
    notebook = execute(script, tmp_path)
    assert all(cell.get("execution_count") for cell in notebook.cells if cell.cell_type == "code")
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    told = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stderr")
    assert "Warning" not in told, told
    changed = difference(json.loads(script.with_suffix(".ipynb").read_text()), notebook)
    assert changed is None, f"{changed}; `python -m website.tutorials {script.stem}` writes it anew"


def notebook_of(*outputs: dict) -> dict:
    cells = [{"cell_type": "markdown", "source": ["# Title\n", "text"]}]
    return {"cells": cells + [{"cell_type": "code", "source": ["f()"], "outputs": list(outputs)}]}


def said(*lines: str) -> dict:
    return notebook_of({"output_type": "stream", "name": "stdout", "text": "\n".join(lines)})


def test_changed_outputs_are_found_and_timings_are_not():
    kept = said("mass: 1.3 kg", "took 12.5 ms", "error 3e-16")
    assert difference(kept, said("mass: 1.301 kg", "took 80 ms", "error -1e-15")) is None
    assert (
        difference(kept, said("mass: 1.5 kg", "took 80 ms", "error 3e-16"))
        == "'mass: 1.5 kg' instead of 'mass: 1.3 kg'"
    )
    assert "instead of 'error 3e-16'" in str(difference(kept, said("mass: 1.3 kg", "took 80 ms", "errors 3e-16")))
    assert "3 lines and 0 pictures are kept" in str(difference(kept, said("mass: 1.3 kg")))


def test_the_page_of_a_notebook_has_its_outputs():
    picture = {"output_type": "display_data", "data": {"image/png": "aGk=", "text/plain": "<Figure>"}}
    value = {"output_type": "execute_result", "data": {"text/plain": ["42"]}}
    page, shown = page_of("two", notebook_of(picture, value))
    assert shown == {"two_1.png": b"hi"}
    assert page.startswith("# Title\ntext\n\n```python\nf()\n```\n") and "(two_1.png)" in page and "\n42\n" in page
