"""XML from untrusted bytes to elements that know their line: size and depth are bounded, document types are refused.

`xmltodict` does the parsing, through its `expat=` hook: a stand-in for the expat module creates a parser that adds the
line to every start tag, counts the depth and stops at a document type declaration, so that no entity is ever defined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from xml.parsers import expat

import xmltodict

from .findings import fail

MAX_BYTES = 8_000_000
MAX_DEPTH = 64

_LINE = "#line"
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_UTF16 = (b"\xff\xfe", b"\xfe\xff", b"<\x00", b"\x00<")


class XmlElement:
    """One element: its tag, line, attributes, text and children.

    Args:
        tag: The name of the element, with its prefix if it has one.
        node: What xmltodict made of it.
    """

    __slots__ = ("_node", "tag")

    def __init__(self, tag: str, node: dict[str, Any]) -> None:
        self.tag = tag
        self._node = node

    @property
    def line(self) -> int:
        """Line of the start tag, from 1."""
        return self._node["@" + _LINE]

    @property
    def text(self) -> str:
        """The character data directly inside the element, stripped."""
        return "".join(self._node.get("#text", ()))

    @property
    def attributes(self) -> list[str]:
        """Names of the attributes."""
        return [k[1:] for k in self._node if k[0] == "@" and k != "@" + _LINE]

    @property
    def tags(self) -> list[str]:
        """Names of the children, each once."""
        return [k for k in self._node if k[0] not in "@#"]

    def get(self, attribute: str) -> str | None:
        """Returns the value of an attribute, or None."""
        return self._node.get("@" + attribute)

    def has_only(self, attributes: tuple[str, ...], tags: tuple[str, ...]) -> bool:
        """Whether the element has no attributes and children but these, and no text."""
        return self._node.keys() <= _keys(attributes, tags)

    def count(self, tag: str) -> int:
        """Returns the number of children of that name."""
        return len(self._node.get(tag, ()))

    def children(self, tag: str) -> Iterator[XmlElement]:
        """Iterates over the children of that name, in document order."""
        return (XmlElement(tag, node) for node in self._node.get(tag, ()))


@cache
def _keys(attributes: tuple[str, ...], tags: tuple[str, ...]) -> frozenset[str]:
    return frozenset({"@" + _LINE, *("@" + name for name in attributes), *tags})


class _Refused(Exception):
    """Raised inside expat to stop at a construct that is not accepted."""

    def __init__(self, message: str, line: int) -> None:
        self.message, self.line = message, line


class _Parser:
    """An expat parser that adds the line to start tags, bounds the depth and refuses document types."""

    def __init__(self, parser: Any, max_depth: int) -> None:
        self.__dict__.update(_parser=parser, _open=[], _max_depth=max_depth)
        parser.StartDoctypeDeclHandler = self._doctype

    def __setattr__(self, name: str, value: Any) -> None:
        wrap = {"StartElementHandler": self._start, "EndElementHandler": self._end}.get(name)
        setattr(self._parser, name, wrap(value) if wrap else value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_parser"], name)

    def _start(self, handler: Callable[[str, list], None]) -> Callable[[str, list], None]:
        parser, open_tags, max_depth = self._parser, self._open, self._max_depth

        def start(tag: str, attributes: list) -> None:
            line = parser.CurrentLineNumber
            open_tags.append((tag, line))
            if len(open_tags) > max_depth:
                raise _Refused(f"elements are nested deeper than {max_depth}", line)
            handler(tag, [*attributes, _LINE, line])

        return start

    def _end(self, handler: Callable[[str], None]) -> Callable[[str], None]:
        open_tags = self._open

        def end(tag: str) -> None:
            open_tags.pop()
            handler(tag)

        return end

    def _doctype(self, *_: object) -> None:
        message = "document type declarations (DTD) and entities are refused; nothing that they name was read"
        raise _Refused(message, self._parser.CurrentLineNumber)


class _Expat:
    """Stands in for the expat module in `xmltodict.parse`."""

    def __init__(self, max_depth: int) -> None:
        self.max_depth = max_depth
        self.parser: _Parser | None = None

    def ParserCreate(self, encoding: str | None, separator: str | None) -> _Parser:
        self.parser = _Parser(expat.ParserCreate(encoding, separator), self.max_depth)
        return self.parser

    @property
    def open_tag(self) -> str:
        """Says which element was still open where the text went wrong."""
        if self.parser is None or not self.parser._open:
            return ""
        tag, line = self.parser._open[-1]
        return f"; <{tag}> of line {line} is still open"


def parse_xml(data: bytes | str, source: str, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> XmlElement:
    """Parses a document and returns its root element.

    Args:
        data: The document. Bytes may be in UTF-8 or UTF-16 with or without a byte order mark, or in an encoding that
            the XML declaration names; the declaration of a string is not looked at.
        source: Name of the document, for messages.
        max_bytes: Largest size that is accepted [bytes].
        max_depth: Deepest nesting of elements that is accepted.

    Raises:
        ParseError: It is no well-formed XML, too large, too deep, or has a document type declaration.
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
    stand_in = _Expat(max_depth)
    try:
        document = xmltodict.parse(data, encoding=encoding, expat=stand_in, force_list=True)
    except _Refused as error:
        raise fail(error.message, source, error.line) from None
    except expat.ExpatError as error:
        raise fail(_explain(error, stand_in), source, error.lineno) from None
    except (ValueError, LookupError) as error:
        raise fail(f"not XML: {error}", source) from None
    ((tag, (node,)),) = document.items()
    return XmlElement(tag, node)


def _explain(error: expat.ExpatError, stand_in: _Expat) -> str:
    text = expat.ErrorString(error.code) or str(error)
    if error.code == expat.errors.codes[expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]:
        text += " (a second root element, or text after the end)"
    return f"not well-formed XML: {text}, column {error.offset + 1}{stand_in.open_tag}"


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
