"""The values of a URDF file: numbers, vectors, placements and names, each read once and strictly.

An invalid value becomes a finding, and reading continues with a harmless default, so that all findings of a file
are collected in one pass.
"""

from __future__ import annotations

import math
import re

import numpy as np

from .findings import Findings, Level, did_you_mean
from .placement import placement, rotation_from_rpy, rotation_from_wxyz
from .xml import XmlElement

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INFINITY = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)
_UNSIGNED = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")
_XACRO = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)")
_NO_LIMIT = (float(np.finfo(np.float64).max), 1e16)


def parse_number(text: str, allow_infinite: bool = False) -> float:
    """Returns the number that `text` spells in ASCII decimals; `"inf"` only if it is allowed, and never `"nan"`.

    Raises:
        ValueError: It is no such number; the message completes a sentence that begins with the name of the value.
    """
    stripped = text.strip(" \t\r\n")
    if _NUMBER.fullmatch(stripped):
        value = float(stripped)
        if math.isfinite(value):
            return value
        raise ValueError(f"{stripped!r} overflows: it is larger than every double")
    infinite = _INFINITY.fullmatch(stripped)
    if infinite and allow_infinite:
        return -math.inf if infinite[1] == "-" else math.inf
    raise ValueError(_what_is_wrong(stripped, infinite is not None))


def _what_is_wrong(text: str, infinite: bool) -> str:
    if xacro := _XACRO.search(text):
        return f"is an unexpanded xacro expression {xacro[0]}; run xacro first (load_xacro)"
    if infinite:
        return f"is {text}, must be finite"
    if text.lower().lstrip("+-").startswith("nan"):
        return f"is {text}, not a number"
    if not text:
        return "is empty, expected a number"
    if len(text.split()) > 1:
        return f"{text!r} has {len(text.split())} numbers, expected one"
    if not text.isascii():
        return f"{text!r} is not a number in ASCII digits"
    if "," in text:
        return f"{text!r} is not a number (decimal comma?)"
    if text.lower().lstrip("+-").startswith("0x"):
        return f"{text!r} is not a decimal number"
    return f"{text!r} is not a number"


class Scope:
    """Reads the values of one link, joint or other element, and reports what is wrong with them.

    Args:
        findings: Where remarks go.
        element: Name of the element in messages, such as ``"joint 'elbow'"``.
    """

    def __init__(self, findings: Findings, element: str) -> None:
        self.findings = findings
        self.element = element

    def add(self, level: Level, line: int, message: str) -> None:
        """Adds a remark on this element."""
        self.findings.add(level, message, self.element, line)

    def only(self, xml: XmlElement, tag: str) -> XmlElement | None:
        """Returns the one child of that name, or None; a second one is an error."""
        count = xml.count(tag)
        if count > 1:
            self.add("error", xml.line, f"<{tag}> given {count} times, expected once")
        return xml.first(tag)

    def known(self, xml: XmlElement, attributes: tuple[str, ...], tags: tuple[str, ...] = ()) -> None:
        """Warns of attributes and children that are not used, and of text where none belongs."""
        if xml.has_only(attributes, tags):
            return
        unknown = [a for a in xml.attributes if a not in attributes and ":" not in a and a != "xmlns"]
        if unknown:
            shown = ", ".join(unknown[:3]) + (f" and {len(unknown) - 3} more" if len(unknown) > 3 else "")
            hint = did_you_mean(unknown[0], attributes)
            self.add("warning", xml.line, f"unknown attribute {shown} of <{xml.tag}> is ignored{hint}")
        for tag in xml.tags:
            if tag not in tags:
                self._unknown_tag(xml.children(tag)[0], tags)
        if xml.text:
            self.add("warning", xml.line, f"stray text {xml.text[:30]!r} in <{xml.tag}> is ignored")

    def _unknown_tag(self, child: XmlElement, tags: tuple[str, ...]) -> None:
        prefix, colon, _ = child.tag.partition(":")
        if prefix == "xacro" and colon:
            self.add(
                "warning",
                child.line,
                f"unexpanded xacro element <{child.tag}> is ignored; run xacro first (load_xacro)",
            )
        elif not colon:
            self.add("warning", child.line, f"unknown tag <{child.tag}> is ignored{did_you_mean(child.tag, tags)}")

    def name(self, xml: XmlElement, attribute: str, what: str) -> str | None:
        """Returns a name as it is written, or None after an error if there is none."""
        text = xml.get(attribute)
        if text is None:
            hint = did_you_mean(attribute, xml.attributes) if xml.attributes else ""
            self.add("error", xml.line, f"{what} has no {attribute} attribute{hint}")
        elif not text.strip():
            self.add("error", xml.line, f"{what} has an empty {attribute}")
        elif xacro := _XACRO.search(text):
            self.add(
                "error",
                xml.line,
                f"{what} is an unexpanded xacro expression {xacro[0]}; run xacro first (load_xacro)",
            )
        else:
            return text
        return None

    def number(
        self,
        xml: XmlElement,
        attribute: str,
        what: str,
        default: float | None = None,
        infinite: bool = False,
    ) -> float:
        """Returns a number [as written]; a wrong one is an error, and so is a missing one without a `default`."""
        text = xml.get(attribute)
        if text is None:
            if default is not None:
                return default
            self.add("error", xml.line, f"<{xml.tag}> has no {attribute}{did_you_mean(attribute, xml.attributes)}")
            return 0.0
        try:
            return parse_number(text, infinite)
        except ValueError as error:
            self.add("error", xml.line, f"{what} {error}")
            return 0.0 if default is None else default

    def limit(self, xml: XmlElement, attribute: str, default: float) -> float:
        """Returns a limit; "inf", the largest double, which the RB-Y1 tools write, and 1e16, which SDFormat does, mean
        that there is none."""
        value = self.number(xml, attribute, f"limit {attribute}", default, infinite=True)
        return math.copysign(math.inf, value) if abs(value) in _NO_LIMIT else value

    def vector(
        self, xml: XmlElement, attribute: str, what: str, size: int, default: list[float] | None = None
    ) -> list[float] | None:
        """Returns `size` finite numbers separated by white space; None after an error."""
        text = xml.get(attribute)
        if text is None:
            if default is None:
                self.add("error", xml.line, f"<{xml.tag}> has no {attribute}{did_you_mean(attribute, xml.attributes)}")
            return default
        words = text.split()
        if len(words) != size or "$" in text:
            if _XACRO.search(text):
                self.add("error", xml.line, f"{what} {_what_is_wrong(text, False)}")
            elif "," in text:
                self.add("error", xml.line, f"{what} {text!r} uses commas; separate the numbers by blanks")
            else:
                self.add("error", xml.line, f"{what} needs {size} numbers, got {len(words)}: {text!r}")
            return None
        try:
            return [parse_number(word) for word in words]
        except ValueError as error:
            self.add("error", xml.line, f"{what} {error}")
            return None

    def unsigned(self, xml: XmlElement, attribute: str, what: str) -> int:
        """Returns a bit mask: a decimal or hexadecimal number without sign; 0 if it is missing."""
        text = (xml.get(attribute) or "0").strip()
        if _UNSIGNED.fullmatch(text) and len(text) < 20 and int(text, 0 if text[:2] in ("0x", "0X") else 10) < 2**32:
            return int(text, 0 if text[:2] in ("0x", "0X") else 10)
        self.add("error", xml.line, f"{what} {attribute} {text!r} is not an unsigned number of 32 bits")
        return 0

    def origin(self, xml: XmlElement, what: str) -> np.ndarray:
        """Returns the placement (4, 4) of the `<origin>` child of `xml`; the identity if there is none."""
        element = self.only(xml, "origin")
        if element is None:
            return placement()
        self.known(element, ("xyz", "rpy", "quat_xyzw"))
        return self.pose(element, what)

    def pose(self, xml: XmlElement, what: str) -> np.ndarray:
        """Returns the placement (4, 4) of the attributes `xyz` and `rpy` (or `quat_xyzw`) of `xml`."""
        zero = [0.0, 0.0, 0.0]
        xyz = self.vector(xml, "xyz", f"{what} xyz", 3, zero) or zero
        if xml.get("quat_xyzw") is not None:
            if xml.get("rpy") is not None:
                self.add("error", xml.line, f"{what} has both rpy and quat_xyzw, expected one of them")
            x, y, z, w = self.vector(xml, "quat_xyzw", f"{what} quat_xyzw", 4) or [0.0, 0.0, 0.0, 1.0]
            if x * x + y * y + z * z + w * w < 1e-12:
                self.add("error", xml.line, f"{what} quat_xyzw has zero length")
                return placement(xyz)
            return placement(xyz, rotation_from_wxyz((w, x, y, z)))
        rpy = self.vector(xml, "rpy", f"{what} rpy", 3, zero) or zero
        return placement(xyz, rotation_from_rpy(rpy) if any(rpy) else None)
