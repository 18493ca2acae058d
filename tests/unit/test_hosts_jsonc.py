"""The editor of JSON with comments: what it reads, what it changes, and that it changes nothing else."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersctl.hosts_jsonc import DEPTH_LIMIT, drop, extras, load, put
from pursersctl.hosts_text import Broken, TooClever

KEYS = ("servers", "pursers")
VALUE = {"command": "/bin/shim", "args": [], "env": {"A": "b"}}

PADS = st.lists(
    st.sampled_from(
        [" ", "\t", "\n", "\r\n", "\n    ", "/* c */", "/* , } \n */", "// c\n", '// "pursers": {\n', "// , ]\r\n"]
    ),
    max_size=3,
).map("".join)
KEY = st.one_of(st.sampled_from(["servers", "a", "b", "//", 'q"\\']), st.text(max_size=4))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
)


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """A value as somebody may have written it."""

    def pad() -> str:
        return draw(PADS)

    if isinstance(value, dict):
        pairs = [
            f"{pad()}{json.dumps(key)}{pad()}:{pad()}{draw(written(inner))}{pad()}" for key, inner in value.items()
        ]
        return "{" + ",".join(pairs) + _comma(draw, pairs) + pad() + "}"
    if isinstance(value, list):
        items = [pad() + draw(written(item)) + pad() for item in value]
        return "[" + ",".join(items) + _comma(draw, items) + pad() + "]"
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


def _comma(draw: st.DrawFn, items: list[str]) -> str:
    return "," if items and draw(st.booleans()) else ""


VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEY, inner, max_size=3)), max_leaves=8
)
OBJECTS = st.dictionaries(KEY.filter(lambda key: key != "servers"), VALUES, max_size=3)
SERVERS = st.dictionaries(KEY.filter(lambda key: key != "pursers"), VALUES, max_size=3)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A text with an object at the top, with or without the object that holds the servers."""
    value = draw(OBJECTS)
    if draw(st.booleans()):
        items = [*value.items(), ("servers", draw(SERVERS))]
        value = dict(draw(st.permutations(items)))
    return draw(PADS) + draw(written(value)) + draw(PADS)


def code(text: str) -> str:
    """The text without blanks, comments and commas: what an editor must not touch."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[^\s,"/]+|/', text, re.DOTALL)
    return "".join(token for token in tokens if not token.startswith(("//", "/*")))


def comments(text: str) -> list[str]:
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/', text, re.DOTALL)
    return [token for token in tokens if token.startswith("/")]


@given(texts())
def test_what_is_put_is_there_and_nothing_else_changed(text: str) -> None:
    data = load(text)
    after = put(text, KEYS, VALUE)
    assert load(after) == {**data, "servers": {**data.get("servers", {}), "pursers": VALUE}}
    assert comments(after) == comments(text)
    rest = iter(after)
    assert all(char in rest for char in text), "only added to"
    assert extras(after) == extras(text)


@given(texts())
def test_what_is_dropped_is_gone_and_nothing_else_changed(text: str) -> None:
    data = load(text)
    after = drop(put(text, KEYS, VALUE), KEYS)
    assert load(after) == {**data, "servers": data.get("servers", {})}
    assert comments(after) == comments(text)
    if data.get("servers"):
        assert after == text
    elif "servers" in data:
        assert code(after) == code(text)
    else:
        assert code(drop(after, KEYS[:1])) == code(text)


@given(texts(), st.data())
def test_dropping_any_member_leaves_the_others(text: str, data: st.DataObject) -> None:
    value = load(text)
    if value:
        key = data.draw(st.sampled_from(sorted(value)))
        after = drop(text, (key,))
        assert load(after) == {name: inner for name, inner in value.items() if name != key}
        assert list(load(after)) == [name for name in value if name != key]


@given(texts(), VALUES)
def test_setting_a_value_again(text: str, value: Any) -> None:
    before = put(text, KEYS, VALUE)
    after = put(before, (*KEYS, "command"), value)
    assert load(after)["servers"]["pursers"] == {**VALUE, "command": value}
    assert put(after, (*KEYS, "command"), "/bin/shim") == before


@given(VALUES.flatmap(written))
def test_it_reads_what_json_reads(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        return
    assert load(text) == expected


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"a": 1', "line 1, column 8: a comma or } is missing"),
        ('{\n  "a" 1}', "line 2, column 7: a colon is missing"),
        ("{a: 1}", "line 1, column 2: a name in quotes is missing"),
        ('{"a": }', "line 1, column 7: this is no value"),
        ('{"a": NaN}', "this is no value"),
        ('{"a": 01}', "this is no value"),
        ('{"a": "x\ny"}', "a string has no end"),
        ('{"a": "\\x"}', "a string has an unknown escape"),
        ("[1 2]", "a comma or ] is missing"),
        ("{} {}", "something follows the end"),
        ("{ /* }", "a comment has no end"),
        ('{"a": 1,,}', "a name in quotes is missing"),
        ("// only", "the text ends where a value should stand"),
        ("[" * (DEPTH_LIMIT + 1), "nested too deeply"),
    ],
)
def test_what_is_broken_is_told_with_its_place(text: str, where: str) -> None:
    with pytest.raises(Broken, match=re.escape(where)):
        load(text)


def test_something_else_on_the_way_is_refused() -> None:
    with pytest.raises(TooClever, match="servers is not an object"):
        put('{"servers": []}', KEYS, VALUE)
    with pytest.raises(TooClever, match="the top is not an object"):
        put("[]", KEYS, VALUE)


def test_the_last_of_two_equal_names_counts_and_both_go() -> None:
    text = '{"servers": {"pursers": 1, "a": 2, "pursers": 3}}'
    assert load(put(text, KEYS, 4))["servers"]["pursers"] == 4
    assert put(text, KEYS, 4) == text.replace("3", "4")
    assert drop(text, KEYS) == '{"servers": {"a": 2}}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "k": {\n    "v": 1\n  }\n}\n'),
        ("{}", '{\n  "k": {\n    "v": 1\n  }\n}'),
        ('{"a": 1}', '{"a": 1, "k": {"v": 1}}'),
        ('{"a": 1,}', '{"a": 1, "k": {"v": 1},}'),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"k": {\n\t\t"v": 1\n\t}\n}'),
        ('{\r\n "a": 1\r\n}', '{\r\n "a": 1,\r\n "k": {\r\n  "v": 1\r\n }\r\n}'),
        ('{\n  "a": 1 // b\n}', '{\n  "a": 1, // b\n  "k": {\n    "v": 1\n  }\n}'),
        ('{\n  "a": 1,\n  // b\n}', '{\n  "a": 1,\n  "k": {\n    "v": 1\n  },\n  // b\n}'),
        ("{ // b\n}", '{ // b\n  "k": {\n    "v": 1\n  }\n}'),
    ],
)
def test_how_it_looks(before: str, after: str) -> None:
    assert put(before, ("k",), {"v": 1}) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"k": 1}', "{}"),
        ('{\n  "k": 1\n}', "{}"),
        ('{\n  "k": 1,\n}', "{}"),
        ('{"k": 1, "a": 2}', '{"a": 2}'),
        ('{\n  "k": 1,\n  "a": 2\n}', '{\n  "a": 2\n}'),
        ('{\n  "a": 2,\n  "k": 1\n}', '{\n  "a": 2\n}'),
        ('{\n  "a": 2, // b\n  "k": 1 // c\n}', '{\n  "a": 2 // b\n // c\n}'),
        ('{\n  // b\n  "k": 1, "a": 2\n}', '{\n  // b\n  "a": 2\n}'),
        ('{\n  // b\n  "k": 1 }', "{\n  // b\n }"),
    ],
)
def test_how_it_looks_without(before: str, after: str) -> None:
    assert drop(before, ("k",)) == after


def test_a_file_of_some_megabytes_takes_no_minute() -> None:
    text = json.dumps({"projects": {str(i): {"history": ["x" * 80] * 20} for i in range(1500)}}, indent=2)
    assert len(text) > 2_000_000
    assert drop(put(text, KEYS, VALUE), KEYS[:1]) == text
