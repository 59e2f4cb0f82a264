"""The tutorials: notebooks that are kept with their outputs, and a page of the site for each of them.

`python -m website.tutorials [NAME ...]` executes the scripts in notebooks/ and writes the notebooks. A build of the
site executes nothing; the tests execute the scripts and compare what comes out with what is kept.
"""

from __future__ import annotations

import base64
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
_LINK = re.compile(r"\]\(\.\./notebooks/(\w+)\.ipynb\)")
_NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|\binf\b|\bnan\b)")


def execute(script: Path, folder: Path) -> Any:
    """The notebook of a script, executed in a folder."""
    import jupytext
    import nbclient

    notebook = jupytext.read(script)
    resources = {"metadata": {"path": str(folder)}}
    client = nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources=resources, record_timing=False
    )
    client.execute()
    for i, cell in enumerate(notebook.cells):
        _merge(cell.get("outputs", []))
        cell["id"] = f"{script.stem}-{i}"
    notebook.metadata.pop("language_info", None)
    return notebook


def _merge(outputs: list[Any]) -> None:
    """What was printed in several pieces becomes one: how it is cut depends on time."""
    for i in range(len(outputs) - 1, 0, -1):
        a, b = outputs[i - 1], outputs[i]
        if a["output_type"] == b["output_type"] == "stream" and a["name"] == b["name"]:
            a["text"] += b["text"]
            del outputs[i]


def texts(notebook: Any) -> list[str]:
    """What the cells of a notebook have printed or returned, in order."""
    outputs = [x for cell in notebook["cells"] for x in cell.get("outputs", [])]
    return ["".join(x["text"] if "text" in x else x["data"].get("text/plain", "")) for x in outputs]


def pictures(notebook: Any) -> list[bytes]:
    """The pictures in a notebook, as PNG."""
    data = [x.get("data", {}) for cell in notebook["cells"] for x in cell.get("outputs", [])]
    return [base64.b64decode(x["image/png"]) for x in data if "image/png" in x]


def difference(kept: Any, new: Any, rtol: float = 0.02) -> str | None:
    """The first line of output that has changed between two runs of a notebook, or None.

    Times differ from run to run, and so do residuals: lines with a number of `s`, `ms` or `us` may have other numbers,
    and numbers below 1e-6 count as zero.
    """
    old_lines = [line for text in texts(kept) for line in text.splitlines() if not line.startswith("<Figure")]
    new_lines = [line for text in texts(new) for line in text.splitlines() if not line.startswith("<Figure")]
    if len(old_lines) != len(new_lines) or len(pictures(kept)) != len(pictures(new)):
        return f"{len(old_lines)} lines and {len(pictures(kept))} pictures are kept, {len(new_lines)} and " + (
            f"{len(pictures(new))} are new"
        )
    for old, line in zip(old_lines, new_lines, strict=True):
        words, new_words = (" ".join(_NUMBER.sub("#", x).split()) for x in (old, line))
        numbers, new_numbers = ([float(x) for x in _NUMBER.findall(y)] for y in (old, line))
        timed = re.search(r"\d [mu]?s\b", old)
        if words != new_words or (not timed and not all(map(_close(rtol), numbers, new_numbers))):
            return f"{line!r} instead of {old!r}"
    return None


def _close(rtol: float) -> Any:
    return lambda a, b: math.isclose(a, b, rel_tol=rtol, abs_tol=1e-6) or (math.isnan(a) and math.isnan(b))


def page_of(name: str, notebook: Any) -> tuple[str, dict[str, bytes]]:
    """The Markdown of a notebook, and its pictures by file name."""
    lines: list[str] = []
    shown: dict[str, bytes] = {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines += [source, ""]
            continue
        code = "\n".join(line for line in source.splitlines() if not line.startswith("%"))
        lines += ["```python", code.strip(), "```", ""]
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                picture = f"{name}_{len(shown) + 1}.png"
                shown[picture] = base64.b64decode(data["image/png"])
                lines += [f"![What the cell above draws]({picture})", ""]
            else:
                text = "".join(output["text"] if "text" in output else data.get("text/plain", ""))
                lines += ["``` { .text .output }", text.rstrip(), "```", ""]
    title, *rest = lines
    note = f"[The notebook]({name}.ipynb){{ .md-button }}"
    return "\n".join([title, *rest, note]) + "\n", shown


def on_files(files: Any, config: Any) -> Any:
    """Hook of MkDocs: adds a page, the pictures and the notebook for each tutorial."""
    from mkdocs.structure.files import File

    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        text = path.read_text()
        page, shown = page_of(path.stem, json.loads(text))
        files.append(File.generated(config, f"tutorials/{path.stem}.md", content=page))
        files.append(File.generated(config, f"tutorials/{path.name}", content=text))
        for name, picture in shown.items():
            files.append(File.generated(config, f"tutorials/{name}", content=picture))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Hook of MkDocs: links to notebooks, as they are in the repository, become links to their pages."""
    return _LINK.sub(r"](tutorials/\1.md)", markdown)


def main(names: list[str]) -> None:
    """Executes the scripts, all or those named, and writes their notebooks."""
    import tempfile

    import nbformat

    for script in sorted(NOTEBOOKS.glob("*.py")):
        if not names or script.stem in names:
            with tempfile.TemporaryDirectory() as folder:
                nbformat.write(execute(script, Path(folder)), script.with_suffix(".ipynb"))
            print(script.stem)


if __name__ == "__main__":
    main(sys.argv[1:])
