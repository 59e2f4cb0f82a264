"""XML from untrusted bytes to elements that know their line: size and depth are bounded, document types are refused.

`xmltodict` does the parsing. Our handlers run before its own in the expat parser: they add the line to each start tag
and stop at a document type declaration, so that no entity is ever defined.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from xml.parsers import expat

import xmltodict

from .findings import fail

MAX_BYTES = 8_000_000
MAX_DEPTH = 64

_LINE = "#line"  # no name in XML holds "#"
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_UTF16 = (b"\xff\xfe", b"\xfe\xff", b"<\x00", b"\x00<")


@dataclass(eq=False, slots=True)
class XmlElement:
    """One element: its tag, the line of its start tag (from 1), its attributes, text and children.

    Args:
        tag: The name of the element, with its prefix if it has one.
        line: Line of the start tag, from 1.
        attributes: The attributes by name.
        text: The character data directly inside the element, stripped.
        by_tag: The children by name, in document order.
    """

    tag: str
    line: int
    attributes: dict[str, str]
    text: str
    by_tag: dict[str, list[XmlElement]]

    @property
    def tags(self) -> list[str]:
        """Names of the children, each once."""
        return list(self.by_tag)

    def get(self, attribute: str) -> str | None:
        """Returns the value of an attribute, or None."""
        return self.attributes.get(attribute)

    def has_only(self, attributes: tuple[str, ...], tags: tuple[str, ...]) -> bool:
        """Whether the element has no attributes and children but these, and no text."""
        return self.attributes.keys() <= _set(attributes) and self.by_tag.keys() <= _set(tags) and not self.text

    def count(self, tag: str) -> int:
        """Returns the number of children of that name."""
        return len(self.children(tag))

    def children(self, tag: str) -> Sequence[XmlElement]:
        """Returns the children of that name, in document order."""
        return self.by_tag.get(tag, ())

    def first(self, tag: str) -> XmlElement | None:
        """Returns the first child of that name, or None."""
        return next(iter(self.children(tag)), None)


@cache
def _set(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(names)


class _Refused(Exception):
    """Raised inside expat to stop at a construct that is not accepted."""

    def __init__(self, message: str, line: int) -> None:
        self.message, self.line = message, line


class _Hooks:
    """Run before xmltodict's handlers: add the line to each start tag, bound the depth, refuse document types.

    An instance takes the place of the expat module in `xmltodict.parse`, to get hold of the parser.
    """

    def __init__(self, max_depth: int) -> None:
        self.open: list[tuple[str, int]] = []
        self._max_depth = max_depth

    def ParserCreate(self, encoding: str | None, separator: str | None) -> expat.XMLParserType:
        self._parser = expat.ParserCreate(encoding, separator)
        return self._parser

    def feed(self, data: bytes) -> Generator[bytes]:
        """Yields the document in one piece, and puts our handlers before xmltodict's, which are set by then."""
        parser: Any = self._parser
        self._next_start, self._next_end = parser.StartElementHandler, parser.EndElementHandler
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.StartDoctypeDeclHandler = self._doctype
        yield data

    def _start(self, tag: str, attributes: list[str]) -> None:
        line = self._parser.CurrentLineNumber
        if len(self.open) == self._max_depth:
            raise _Refused(f"elements are nested deeper than {self._max_depth}", line)
        self.open.append((tag, line))
        self._next_start(tag, [*attributes, _LINE, line])

    def _end(self, tag: str) -> None:
        self.open.pop()
        self._next_end(tag)

    def _doctype(self, *_: object) -> None:
        message = "document type declarations (DTD) and entities are refused; nothing that they name was read"
        raise _Refused(message, self._parser.CurrentLineNumber)


def _element(tag: str, node: dict[str, Any]) -> XmlElement:
    """Returns an element from what xmltodict made of it: "@name" is an attribute, "name" a list of children."""
    element = XmlElement(tag, node.pop("@" + _LINE), {}, "".join(node.pop("#text", ())), {})
    for key, value in node.items():
        if key[0] == "@":
            element.attributes[key[1:]] = value
        else:
            element.by_tag[key] = [_element(key, child) for child in value]
    return element


def parse_xml(data: bytes | str, source: str, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> XmlElement:
    """Parses a document and returns its root element.

    Args:
        data: The document. Bytes may be in UTF-8 or UTF-16 with or without a byte order mark, or in an encoding that
            the XML declaration names; the declaration of a string is not looked at.
        source: Name of the document, for messages.
        max_bytes: Largest size that is accepted [bytes].
        max_depth: Deepest nesting of elements that is accepted.

    Raises:
        ParseError: It is not well-formed XML, is too large, too deep, or has a document type declaration.
    """
    encoding = None
    if isinstance(data, str):
        encoding = "utf-8"
        try:
            data = data.encode(encoding)
        except UnicodeEncodeError as error:
            raise fail(f"character {error.start} of the text is half of a surrogate pair", source) from None
    if len(data) > max_bytes:
        raise fail(f"{len(data)} bytes exceed the size limit of {max_bytes} bytes", source)
    _check_bytes(data, source, encoding)
    hooks = _Hooks(max_depth)
    try:
        document = xmltodict.parse(hooks.feed(data), encoding, hooks, force_list=True)
    except _Refused as error:
        raise fail(error.message, source, error.line) from None
    except expat.ExpatError as error:
        raise fail(_explain(error, hooks.open), source, error.lineno) from None
    except (ValueError, LookupError) as error:
        raise fail(f"not XML: {error}", source) from None
    tag, (root,) = document.popitem()  # taken out: the parser and its handlers hold each other until they are collected
    return _element(tag, root)


def _explain(error: expat.ExpatError, unfinished: list[tuple[str, int]]) -> str:
    text = expat.ErrorString(error.code) or str(error)
    if error.code == expat.errors.codes[expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]:
        text += " (a second root element, or text after the end)"
    where = "; <{}> of line {} is still open".format(*unfinished[-1]) if unfinished else ""
    return f"not well-formed XML: {text}, column {error.offset + 1}{where}"


def _check_bytes(data: bytes, source: str, encoding: str | None) -> None:
    """Says in plain words what is wrong with a file that is no XML text at all."""
    start = data[:200].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not data:
        raise fail("the file is empty", source)
    if not start and not data.strip():
        raise fail("the file has no XML element, only white space", source)
    if start.startswith(b"version https://git-lfs"):
        raise fail("this is a Git LFS pointer, not the file itself; run: git lfs pull", source, 1)
    if start[:2] == b"\x1f\x8b" or start[:4] in (b"PK\x03\x04", b"BZh9", b"\xfd7zX"):
        raise fail("not XML: the file is compressed; unpack it first", source)
    if start[:1] in (b"{", b"["):
        raise fail("not XML: this looks like JSON", source, 1)
    if data.startswith(_UTF16) and encoding is None:
        return
    declared = _DECLARED.match(data.removeprefix(b"\xef\xbb\xbf"))
    if declared is None or declared[1].lower() in (b"utf-8", b"utf8", b"us-ascii"):
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            kind = "invalid UTF-8" if start[:1] == b"<" else "not XML (binary data): invalid UTF-8"
            raise fail(f"{kind} at byte {error.start}", source, line) from None
    nul = data.find(b"\0")
    if nul >= 0:
        kind = "NUL byte in the file" if start[:1] == b"<" else "not XML (binary data): NUL byte"
        raise fail(f"{kind} at byte {nul}", source, data.count(b"\n", 0, nul) + 1)
    if start and start[:1] != b"<":
        line = data.count(b"\n", 0, len(data) - len(data.lstrip())) + 1
        raise fail("not XML: the first character is not '<'", source, line)
