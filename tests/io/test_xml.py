"""XML from untrusted bytes: encodings, sizes, depths, document types, and what is no XML at all."""

from __future__ import annotations

import pickle
import re
from xml.dom import minidom

import pytest

from rbydyn_jax._errors import ParseError
from rbydyn_jax.io.urdf import read_bytes
from rbydyn_jax.io.xml import MAX_BYTES, XmlElement, parse_xml

from .crane import CRANE, load, refusal

LEGAL = {
    "utf-8": CRANE.encode(),
    "byte order mark": b"\xef\xbb\xbf" + CRANE.encode(),
    "utf-16": CRANE.encode("utf-16"),
    "utf-16 big endian": b"\xfe\xff" + CRANE.encode("utf-16-be"),
    "latin-1": CRANE.replace("?>", ' encoding="iso-8859-1"?>', 1).replace("hook", "h\xf4k").encode("latin-1"),
    "crlf": CRANE.replace("\n", "\r\n").encode(),
    "comments": CRANE.replace("<link", "<!-- a -- -->".replace("-- -", "-") + "<link").encode(),
    "processing instruction": CRANE.replace("<robot", '<?style href="file:///etc/passwd"?><robot', 1).encode(),
    "unicode names": CRANE.replace("hook", "haken \u00fc \u94a9".replace(" ", "_")).encode(),
    "string that claims another encoding": CRANE.replace("?>", ' encoding="utf-16"?>', 1),
    "cdata": CRANE.replace("</robot>", "<![CDATA[  ]]></robot>"),
}

NOT_XML = {
    "empty": (b"", "is empty"),
    "white space": (b" \n\t ", "no XML element"),
    "binary": (b"\xc5" * 100, "not XML (binary data)"),
    "binary with NUL": (b"abc\0\1\2", "not XML (binary data)"),
    "json": (b'{"robot": 1}', "looks like JSON"),
    "text": (b"robot: crane", "first character is not '<'"),
    "git lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "git lfs pull"),
    "gzip": (b"\x1f\x8b\x08\0\0\0", "compressed"),
    "bad utf-8": (CRANE.encode().replace(b"hook", b"h\xffok"), "crane.urdf:9: error: invalid UTF-8 at byte"),
    "cut utf-8": (CRANE.encode() + b"<!-- \xe9", "invalid UTF-8"),
    "NUL": (CRANE.encode().replace(b"hook", b"h\0ok"), "NUL byte"),
    "surrogate": (CRANE.replace("hook", "h\udc80k"), "surrogate"),
    "mismatched": (CRANE.replace("</link>", "</lnk>", 1), "mismatched tag"),
    "unclosed": (CRANE.replace("</robot>", ""), "<robot> of line 2 is still open"),
    "two roots": (CRANE + "<robot/>", "second root element"),
    "same attribute twice": (CRANE.replace('<link name="hook">', '<link name="hook" name="hook">'), "duplicate"),
    "undefined entity": (CRANE.replace("hook", "&hook;"), "undefined entity"),
    "unknown encoding": (CRANE.replace("?>", ' encoding="klingon"?>', 1).encode(), "encoding"),
    "sdf": (b"<sdf version='1.6'/>", "expected <robot>; this is SDF"),
    "mjcf": (b"<mujoco/>", "use load_mjcf"),
}

_BOMB = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 9))
HOSTILE = {
    "billion laughs": f'<!DOCTYPE r [<!ENTITY a0 "x">{_BOMB}]>',
    "external entity": '<!DOCTYPE robot [<!ENTITY e SYSTEM "file:///etc/hostname">]>',
    "external subset": '<!DOCTYPE robot SYSTEM "http://127.0.0.1:1/x.dtd">',
    "parameter entity": '<!DOCTYPE robot [<!ENTITY % p SYSTEM "file:///etc/hostname"> %p;]>',
    "internal entity": '<!DOCTYPE robot [<!ENTITY e "hoist">]>',
    "bare": "<!DOCTYPE robot>",
}


@pytest.mark.parametrize("kind", LEGAL)
def test_legal_encodings_load(kind):
    robot, report = load(LEGAL[kind])
    assert robot.joint_names == ("slew", "hoist")
    assert report == ()


@pytest.mark.parametrize("kind", NOT_XML)
def test_what_is_no_xml_is_refused_in_plain_words(kind):
    data, phrase = NOT_XML[kind]
    error = refusal(data)
    assert phrase in str(error)
    assert str(error).startswith("crane.urdf:")


@pytest.mark.parametrize("kind", HOSTILE)
def test_document_types_are_refused(kind):
    text = CRANE.replace("<robot", HOSTILE[kind] + "\n<robot", 1)
    error = refusal(text)
    assert "entities are refused" in str(error)
    assert error.line == 2


def test_size_is_bounded():
    with pytest.raises(ParseError, match="size limit of 100 bytes"):
        parse_xml(CRANE, "crane.urdf", max_bytes=100)
    big = CRANE.replace('name="crane"', f'name="{"c" * 9_000_000}"')
    assert "exceed the size limit" in str(refusal(big))


def test_a_document_of_the_largest_size_is_read():
    document = b"<a>".ljust(MAX_BYTES - len("</a>")) + b"</a>"
    assert len(document) == MAX_BYTES == 8_000_000
    assert parse_xml(document, "large").text == ""
    with pytest.raises(ParseError, match="8000001 bytes exceed the size limit of 8000000 bytes"):
        parse_xml(document + b" ", "large")


def test_depth_is_bounded():
    assert "nested deeper than 64" in str(refusal("<robot>" + "<a>" * 100_000))
    with pytest.raises(ParseError, match="nested deeper than 64") as refused:
        parse_xml("<a>\n" * 65 + "</a>" * 65, "deep")
    assert refused.value.line == 65
    element = parse_xml("<a>\n" + "<b/>" * 1000 + "<a>\n" * 63 + "</a>" * 64, "deep")
    for line in range(1, 65):
        assert element is not None
        assert (element.tag, element.line) == ("a", line)
        element = element.first("a")
    assert element is None


def test_elements_know_their_line_and_text():
    root = parse_xml("<a>\n<b x='1'/>\n\n<b>word</b><c:d/></a>", "t")
    first, second = root.children("b")
    assert (root.line, first.line, second.line) == (1, 2, 4)
    assert (first.get("x"), first.attributes, second.get("x"), second.text) == ("1", {"x": "1"}, None, "word")
    assert root.tags == ["b", "c:d"]
    assert root.count("b") == 2


def walk(element: XmlElement) -> list[XmlElement]:
    """The element and all below it."""
    return [element, *(below for tag in element.tags for child in element.children(tag) for below in walk(child))]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_each_element_has_the_line_of_its_start_tag(ends):
    text = CRANE.replace("<joint", "<!-- two\nlines -->text\n<![CDATA[\n]]><joint")
    lines = re.sub(r"<(\w+)", r"<\1\n at='?'", text).split("\n")  # each start tag goes on in the next line
    text = ends.join(line.replace("?'", f"{before}'") for before, line in enumerate(lines))
    elements = walk(parse_xml(text, "t"))
    assert len(elements) == len(re.findall(r"<\w", CRANE))
    assert [element.get("at") for element in elements] == [str(element.line) for element in elements]


ELEMENTS = {
    "crane": CRANE,
    "mixed content": "<a> one <b> two </b> three <c/> four <b>five<c> six </c></b>\n</a>",
    "text around comments": "<a>x<!-- <b/> no text -->y<!---->z<b><!-- alone --></b></a>",
    "cdata": "<a>1 <![CDATA[<b x='1'>&amp;]]> 2<b><![CDATA[  ]]></b><b><![CDATA[]]>]]&gt;</b></a>",
    "references": "<a x='&lt;&amp;&quot;&#10;&#x94a9;'>&lt;b/&gt; &#65;&apos;&#x20;</a>",
    "processing instructions": "<?p a?><a>x<?p <b/>?>y<b><?p?></b></a><?p?>",
    "prefixes": "<p:a xmlns:p='urn:1' xmlns='urn:2' p:x='1' x='2'><x p:x='3'/><p:x/><b xmlns:q='3'><q:x/></b></p:a>",
    "attributes named like children": "<a b='1' c='2' a='3'><b>4</b><c b='5'><b/></c><a a='6'>7</a></a>",
    "names of other readers": "<a text='1' line='2' tag='3' _='4'><text>5</text><line/><tag/><_/><attributes/>6</a>",
    "children in turn": "<a><c n='1'/><b n='2'/><c n='3'/><b n='4'><c n='5'/></b><c n='6'/></a>",
    "white space": "<a x=' 1\t2\n3 '>\n \t<b>  \n </b>\u00a0<b>\t1\n2 </b></a>",
    "long text": f"<a>{'word &amp; ' * 20_000}<b/>{'<!-- -->tail' * 20_000}</a>",
}


def shown(element: XmlElement) -> tuple:
    """What an element holds, all below it too."""
    children = [(tag, [shown(child) for child in element.children(tag)]) for tag in element.tags]
    return element.tag, list(element.attributes.items()), element.text, children


def shown_by_minidom(element: minidom.Element) -> tuple:
    """The same of an element of the standard library's DOM."""
    children: dict[str, list[tuple]] = {}
    text = ""
    for node in element.childNodes:
        if isinstance(node, minidom.Text):
            text += node.data
        elif isinstance(node, minidom.Element):
            children.setdefault(node.tagName, []).append(shown_by_minidom(node))
    return element.tagName, list(element.attributes.items()), text.strip(), list(children.items())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("kind", ELEMENTS)
def test_elements_are_those_of_the_standard_library(kind, encoding):
    data = ELEMENTS[kind].encode(encoding)
    root = minidom.parseString(data).documentElement
    assert root is not None
    assert shown(parse_xml(data, "t")) == shown_by_minidom(root)


def test_an_attribute_is_no_child_and_text_is_neither():
    root = parse_xml("<a b='1'><c/></a>", "t")
    assert (root.first("b"), root.get("c")) == (None, None)
    assert root.has_only(("b",), ("c",))
    assert not root.has_only(("c",), ("b",))
    assert not root.has_only((), ("b", "c"))
    assert not parse_xml("<a>b</a>", "t").has_only(("b",), ("b",))


def test_prefixes_need_no_declaration():
    root = parse_xml("<x:a y:b='1'><x:c/><c/></x:a>", "t")
    assert (root.tag, root.attributes, root.tags) == ("x:a", {"y:b": "1"}, ["x:c", "c"])


@pytest.mark.parametrize(
    ("text", "line", "still_open"),
    [
        ("<a>\n<b/>\n<c>\n</a>", 4, "<c> of line 3 is still open"),
        ("<a>\n<b>\n</b>\n<c/>", 4, "<a> of line 1 is still open"),
        ("<a>\n<b>\n<c x='1' x='2'/></b></a>", 3, "<b> of line 2 is still open"),
        ("<a>\n<b>\n<c x='1", 3, "<b> of line 2 is still open"),
    ],
)
def test_the_innermost_open_element_is_named(text, line, still_open):
    with pytest.raises(ParseError) as refused:
        parse_xml(text, "t")
    assert refused.value.line == line
    assert str(refused.value).endswith(still_open)


def test_nothing_is_open_behind_the_root():
    with pytest.raises(ParseError) as refused:
        parse_xml("<a>\n</a>\n<b/>", "t")
    assert refused.value.line == 3
    assert "still open" not in str(refused.value)


def test_error_of_a_file_names_line_and_survives_pickling():
    error = refusal(CRANE.replace("</link>", "</lnk>", 1))
    assert (error.source, error.line) == ("crane.urdf", 5)
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert copy.findings == error.findings


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ParseError, match=r"gone\.urdf: error: no such file"):
        read_bytes(tmp_path / "gone.urdf")
    with pytest.raises(ParseError, match="cannot be read"):
        read_bytes(tmp_path)
    file = tmp_path / "big.urdf"
    file.write_bytes(b"x" * 11)
    with pytest.raises(ParseError, match="size limit of 10 bytes"):
        read_bytes(file, max_bytes=10)
    assert read_bytes(file, max_bytes=11) == b"x" * 11
