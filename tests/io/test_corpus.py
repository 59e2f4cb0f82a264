"""The collection of damaged files that lies beside the repository: each is answered as its manifest says."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from rbydyn_jax._errors import ParseError
from rbydyn_jax.io.urdf import read_bytes
from tests.helpers import ROOT

from .crane import load

CORPUS = Path(os.environ.get("RBYDYN_CORPUS_DIR", ROOT.parent / "shared" / "corpus"))
CASES = json.loads((CORPUS / "manifest.json").read_text()) if (CORPUS / "manifest.json").is_file() else []
_SIZES = {"planar": 3, "spherical": 4, "floating": 7}
# Refused with a message, which the manifest allows ("refuse ...") although it counts them as warnings.
_MAY_BE_REFUSED = {"b_internal_entity": "entities are refused", "b_huge_attr_20MB": "exceeds the size limit"}


def test_the_corpus_is_there():
    if not CASES:
        pytest.skip(f"no corpus in {CORPUS}; the same classes of damage are in test_urdf_reader")
    assert len(CASES) > 100


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_answered_as_the_manifest_says(case, tmp_path):
    path = CORPUS / case["file"]
    if case["name"] == "b_huge_attr_20MB" and not path.is_file():  # too large to be kept: made here
        path = tmp_path / "big.urdf"
        control = (CORPUS / "urdf" / "ok_control.urdf").read_text()
        path.write_text(control.replace("<robot ", f'<robot a="{"x" * 20_000_000}" ', 1))
    try:
        robot, report = load(read_bytes(path))
    except ParseError as error:
        text = str(error)
        if case["expect"] != "error":
            assert _MAY_BE_REFUSED.get(case["name"], "never") in text
        for element in re.findall(r"(?:link|joint) '[^']+'", case["say"]):
            quoted = element.split("'")[1]
            assert quoted in text, f"{case['say']!r} is not said in {text!r}"
        return
    warned = any(finding.level == "warning" for finding in report)
    assert case["expect"] == ("warn" if warned else "ok"), (case["say"], [str(f) for f in report])
    nq = sum(_SIZES.get(k, 1) for k, m in zip(robot.joint_types, robot.mimic, strict=True) if m is None)
    assert nq == case["nq"]
