"""The documentation site: every public name has its place in the API reference, every equation its MathML."""

from __future__ import annotations

import importlib
import inspect
import re
from xml.etree import ElementTree

import pytest

import rbydyn_jax as rb
from tests.test_wrong_calls import FUNCTIONS
from website import api, checks


def test_the_reference_has_what_the_package_exports():
    flat = {name for name in dir(rb) if not inspect.ismodule(getattr(rb, name))}
    named = {name.removeprefix("rb.") for name in FUNCTIONS} | flat
    missing = {f"rbydyn_jax.{name}" for name in named} - api.public_names()
    synonyms = {f"{x.name}.{name}" for x in api.public_modules() for name in x.synonyms}
    assert named and not missing - synonyms


def test_the_reference_has_no_name_that_cannot_be_imported():
    modules = api.public_modules()
    assert {x.name for x in modules} > {"rbydyn_jax", "rbydyn_jax.spatial.so3", "rbydyn_jax.rby1.commands"}
    for module in modules:
        space = importlib.import_module(module.name)
        for name in [*module.synonyms, *(x for names in module.names.values() for x in names)]:
            assert hasattr(space, name), f"{module.name}.{name}"
        assert inspect.getdoc(space) == module.docstring


def test_a_new_name_appears_on_its_page(tmp_path, monkeypatch):
    package = tmp_path / "rbydyn_jax"
    package.mkdir()
    (package / "__init__.py").write_text('"""Robots."""\nfrom .parts import new as new\nfrom .parts import old\n')
    (package / "parts.py").write_text('"""Parts; of robots."""\ndef new(): ...\ndef old(): ...\n')
    monkeypatch.setattr(api, "ROOT", tmp_path)
    assert api.page_of(api.read_module("rbydyn_jax")).strip().split("\n\n") == [
        "# rbydyn_jax",
        "Robots.",
        "## Parts { #rbydyn_jax.parts-names }",
        "::: rbydyn_jax.new",
    ]


def test_equations_become_mathml():
    pytest.importorskip("latex2mathml")
    from website.mathml import on_page_content

    page = on_page_content(r'<p>With <span class="arithmatex">\(a &lt; \sqrt{b}\)</span></p>', page=None)
    root = ElementTree.fromstring(page)
    math = root[0]
    assert math.tag.endswith("math") and math.get("display") == "inline"
    assert [x.text for x in math.iter() if x.text and x.text.strip()] == ["a", "<", "b"]
    assert any(x.tag.endswith("msqrt") for x in math.iter())
    with pytest.raises(ValueError, match=r"no MathML for \\nosuch in the equation"):
        on_page_content(r'<div class="arithmatex">\[\nosuch{x}\]</div>', page=None)
    with pytest.raises(ValueError, match="a dollar that is not of an equation"):
        on_page_content("<p>from $x to the end</p><code>$PATH</code>", page=None)
    on_page_content("<code>$PATH</code>", page=None)


def test_faults_of_a_site_are_found(tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "index.html").write_text('<h1 id="top"></h1><a href="more/#here">m</a><a href="https://x.org/">x</a>')
    (tmp_path / "more" / "index.html").write_text('<p id=here><a href="..">up</a><img src="../p.png">')
    assert checks.problems(tmp_path, {"top", "here"}) == ["more/index.html links to ../p.png"]
    (tmp_path / "p.png").write_text("")
    assert checks.problems(tmp_path, {"top", "rbydyn_jax.new"}) == ["rbydyn_jax.new is nowhere"]
    (tmp_path / "index.html").write_text('<script src="https://cdn.org/a.js"></script><a href="more/#there">m</a>')
    assert checks.problems(tmp_path, set()) == [
        "index.html loads https://cdn.org/a.js",
        "index.html links to more/#there",
    ]


def test_names_on_pages_lead_to_the_reference():
    known = api.targets(api.public_modules())
    assert known["rnea"] == known["rb.rnea"] == "api/rbydyn_jax.md#rbydyn_jax.rnea"
    assert known["planning.ilqr"] == "api/planning.md#rbydyn_jax.planning.ilqr.ilqr"  # ilqr is a module, too
    assert known["solve_ik"] == "api/planning.md#rbydyn_jax.planning.solve_ik"
    assert known["so3.exp"] == known["spatial.so3.exp"] == "api/spatial.so3.md#rbydyn_jax.spatial.so3.exp"
    assert known["spatial.so3"] == "api/spatial.so3.md" and "exp" not in known and "Contact" not in known


@pytest.mark.slow
def test_drawings_are_those_of_the_script(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    from website import drawings

    kept = drawings.IMAGES
    monkeypatch.setattr(drawings, "IMAGES", tmp_path)
    drawings.main()
    for name in drawings.DRAWINGS:
        texts, arrows = zip(*(_drawn(folder / f"{name}.svg") for folder in (kept, tmp_path)), strict=True)
        assert texts[0] == texts[1] and arrows[0] == arrows[1] > 3, (
            f"{name}: `python -m website.drawings` draws it anew"
        )


def _drawn(path):
    """The texts of a drawing and the number of its lines and arrows."""
    svg = path.read_text()
    return re.findall(r"<!-- (.*?) -->", svg), svg.count('<g id="patch_')
