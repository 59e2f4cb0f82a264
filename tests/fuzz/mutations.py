"""Seeded damage to XML text: numbers, attributes, elements, references, nesting, encoding and bytes."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_ATTRIBUTE = re.compile(r"""\s([A-Za-z_:]+)="([^"]*)\"""")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_ELEMENT = re.compile(r"<([A-Za-z_:]+)(?:\s[^<>]*)?/>|<([A-Za-z_:]+)(?:\s[^<>]*)?>[^<>]*</\2>")
_TAG = re.compile(r"</?([A-Za-z_:]+)")
_REFERENCE = re.compile(r"""\s(?:link|joint|name|parent|child|class|body)="([^"]*)\"""")
_WORDS = (
    "nan", "NaN", "inf", "-inf", "1e39", "-1e39", "1e38", "3e38", "1e308", "-1e308", "1e160", "1e20", "1e19",
    "1e-320", "1e-30", "1e999", "0", "-0.0", "-1", "", " ", "x", "true", "1,5", "1.5kg", "0x10", "1_5", "\u0663",
    "\uff11", "9" * 400, "0." + "0" * 400 + "1", "1e5e5", "--1", "+", "1 2 3 4 5 6 7", "${1/0}", "${m}", "$(arg x)",
    "&lt;", "a" * 300, "../..",
)  # fmt: skip
_JUNK = (
    '<!DOCTYPE r [<!ENTITY a "b">]>', "<!-- x -->", "<![CDATA[<link/>]]>", "<?pi?>", "text", "&a;", "&#0;", "]]>", "<",
    "<x xmlns='y'/>", "\x00", "\u2028", "<link/>", "<joint/>", "</robot>", "<robot>", "<mujoco/>", "\ufeff",
)  # fmt: skip


def _at(text: str, pattern: re.Pattern[str], dice: random.Random) -> re.Match[str] | None:
    """A random match: the first one after a random place, or else the first of all."""
    return pattern.search(text, dice.randrange(len(text) + 1)) or pattern.search(text)


def _put(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def _number(text: str, dice: random.Random) -> str:
    if not (value := _at(text, _ATTRIBUTE, dice)) or not (numbers := list(_NUMBER.finditer(value[2]))):
        return text
    at = dice.choice(numbers)
    new = dice.choice(_WORDS) if dice.random() < 0.7 else f"{at[0]}e{dice.randint(-60, 60)}"
    return _put(text, value.start(2) + at.start(), value.start(2) + at.end(), new)


def _value(text: str, dice: random.Random) -> str:
    a, b = _at(text, _ATTRIBUTE, dice), _at(text, _ATTRIBUTE, dice)
    return _put(text, a.start(2), a.end(2), b[2] if dice.random() < 0.5 else dice.choice(_WORDS)) if a and b else text


def _attribute(text: str, dice: random.Random) -> str:
    if not (a := _at(text, _ATTRIBUTE, dice)):
        return text
    other = _at(text, _ATTRIBUTE, dice) or a
    new = dice.choice(
        ("", a[0] * 2, f' {other[1]}="{a[2]}"', f' {a[1].upper()}="{a[2]}"', f" {a[1]}={a[2]}", a[0][:-1])
    )
    return _put(text, a.start(), a.end(), new)


def _element(text: str, dice: random.Random) -> str:
    if not (e := _at(text, _ELEMENT, dice)):
        return text
    other = _at(text, _ELEMENT, dice) or e
    return _put(text, e.start(), e.end(), dice.choice(("", e[0] * 2, other[0], e[0] * 40, e[0] + other[0])))


def _rename(text: str, dice: random.Random) -> str:
    if not (tag := _at(text, _TAG, dice)):
        return text
    other = _at(text, _TAG, dice) or tag
    if dice.random() < 0.5:  # all of them, so that tags still match
        return re.sub(rf"(</?){re.escape(tag[1])}\b", rf"\g<1>{other[1]}", text)
    return _put(
        text, tag.start(1), tag.end(1), dice.choice((other[1], tag[1] + "x", "", tag[1].upper(), "x:" + tag[1]))
    )


def _nest(text: str, dice: random.Random) -> str:
    if not (e := _at(text, _ELEMENT, dice)):
        return text
    tag, depth = e[1] or e[2], dice.choice((1, 2, 30, 70, 3000))
    inner = e[0] if dice.random() < 0.5 else ""
    return _put(text, e.start(), e.end(), f"<{tag}>" * depth + inner + f"</{tag}>" * depth)


def _refer(text: str, dice: random.Random) -> str:
    """Makes cycles, second parents, mimics of mimics and doubled names."""
    a, b = _at(text, _REFERENCE, dice), _at(text, _REFERENCE, dice)
    return _put(text, a.start(1), a.end(1), b[1]) if a and b else text


def _junk(text: str, dice: random.Random) -> str:
    at = dice.randrange(len(text) + 1)
    if dice.random() < 0.5 and (tag := _TAG.search(text, at)):
        at = tag.start()
    return _put(text, at, at, dice.choice(_JUNK))


def _slice(text: str, dice: random.Random) -> str:
    start, end = sorted(dice.randrange(len(text) + 1) for _ in range(2))
    choice = dice.randrange(3)
    if choice == 0:
        return text[:start] + text[min(end, start + 40) :]
    return text[:end] + text[start : min(end, start + 3000)] + text[end:] if choice == 1 else text[:end]


_KINDS: tuple[tuple[Callable[[str, random.Random], str], float], ...] = (
    (_number, 8.0), (_value, 3.0), (_attribute, 3.0), (_element, 3.0), (_rename, 2.0), (_nest, 1.0), (_refer, 3.0),
    (_junk, 1.0), (_slice, 1.0),
)  # fmt: skip
_ENCODINGS = ("utf-16", "utf-16-le", "latin-1", "utf-8-sig", "utf-32", "cp037")


def mutate(text: str, dice: random.Random) -> str | bytes:
    """The text with one to three random changes; one time in ten bytes, of another encoding or with bits changed."""
    functions, weights = zip(*_KINDS, strict=True)
    for function in dice.choices(functions, weights, k=dice.randint(1, 3)):
        text = function(text, dice)
    if dice.random() < 0.9:
        return text
    if dice.random() < 0.5:
        return text.encode(dice.choice(_ENCODINGS), errors="replace")
    data = bytearray(text.encode())
    for _ in range(dice.randint(1, 4) if data else 0):
        data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data)
