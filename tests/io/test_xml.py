"""XML from untrusted bytes: encodings, sizes, depths, document types, and what is no XML at all."""

from __future__ import annotations

import pickle

import pytest

from rbydyn_jax._errors import ParseError
from rbydyn_jax.io.urdf import read_bytes
from rbydyn_jax.io.xml import parse_xml

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


def test_depth_is_bounded():
    assert "nested deeper than 64" in str(refusal("<robot>" + "<a>" * 100_000))
    assert parse_xml("<a>" * 64 + "</a>" * 64, "deep").tag == "a"


def test_elements_know_their_line_and_text():
    root = parse_xml("<a>\n<b x='1'/>\n\n<b>word</b><c:d/></a>", "t")
    first, second = root.children("b")
    assert (root.line, first.line, second.line) == (1, 2, 4)
    assert (first.get("x"), first.attributes, second.get("x"), second.text) == ("1", {"x": "1"}, None, "word")
    assert root.tags == ["b", "c:d"]
    assert root.count("b") == 2


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
