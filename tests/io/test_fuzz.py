"""Thousands of damaged files: each loads as finite numbers, or is refused by a ParseError that names the file."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from rbydyn_jax._errors import ParseError

from .crane import CRANE, load

_WORDS = [
    "nan",
    "inf",
    "-1",
    "1e999",
    "0",
    "",
    " ",
    "&lt;",
    "\u0663",
    "1,2",
    "a" * 300,
    "0x1",
    "-0.0",
    "1e-320",
    "$(x)",
]
_VALUE = re.compile(r'"[^"]*"')
_ELEMENT = re.compile(r"<[a-z]+[^<>]*/>")
_TAG = re.compile(r"</?[a-z_]+")


def mutate(text: str, dice: random.Random) -> str | bytes:
    """The text with one or a few random changes."""
    for _ in range(dice.randint(1, 3)):
        kind = dice.randrange(7)
        if kind == 0:
            values = list(_VALUE.finditer(text))
            at = dice.choice(values)
            text = text[: at.start()] + f'"{dice.choice(_WORDS)}"' + text[at.end() :]
        elif kind == 1:
            at = dice.choice(list(_ELEMENT.finditer(text)))
            text = text[: at.start()] + dice.choice(["", at[0] * 2]) + text[at.end() :]
        elif kind == 2:
            a, b = (dice.choice(list(_VALUE.finditer(text)))[0] for _ in range(2))
            text = text.replace(a, b, 1)
        elif kind == 3:
            at = dice.choice(list(_TAG.finditer(text)))
            text = text[: at.end()] + dice.choice(["x", "", " y='1'", ":z"]) + text[at.end() :]
        elif kind == 4:
            start, end = sorted(dice.randrange(len(text)) for _ in range(2))
            text = text[:start] + text[min(end, start + 40) :]
        elif kind == 5:
            start, end = sorted(dice.randrange(len(text)) for _ in range(2))
            text = text[:end] + text[start:end] + text[end:]
        else:
            data = bytearray(text.encode())
            for _ in range(dice.randint(1, 4)):
                data[dice.randrange(len(data))] = dice.randrange(256)
            return bytes(data)
    return text


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_load_or_are_refused(seed):
    dice = random.Random(seed)
    loaded = refused = 0
    for _ in range(1_000):
        damaged = mutate(CRANE, dice)
        try:
            robot, _ = load(damaged)
        except ParseError as error:
            assert str(error).startswith("crane.urdf:"), str(error)
            assert any(finding.level == "error" for finding in error.findings)
            refused += 1
            continue
        arrays = (robot.body_inertias, robot.link_inertias, robot.joint_placements, robot.joint_axes, robot.armature)
        assert all(np.isfinite(array).all() for array in arrays)
        assert not np.isnan([robot.lower, robot.upper, robot.velocity, robot.effort]).any()
        loaded += 1
    assert loaded > 50
    assert refused > 400
