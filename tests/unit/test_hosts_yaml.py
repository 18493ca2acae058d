"""The editor of Goose's YAML: what it reads, what it changes, and that it changes nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersctl.hosts_text import Broken, TooClever
from pursersctl.hosts_yaml import drop, load, put

KEYS = ("extensions", "pursers")
VALUE = {
    "type": "stdio",
    "enabled": True,
    "cmd": "/bin/shim",
    "args": [],
    "timeout": 300,
    "envs": {"A": "b c", "N": "600"},
}

BLANKS = st.sampled_from(["", "\n", "# c\n", "  # pursers:\n", "\n\n"])
VALUES = st.sampled_from(
    [" x", " 'it''s # no'", ' "a: \\"b\\"" # c', "", " ~", " |\n{}  pursers:\n{}    cmd: text\n\n{}  # text",
     " >-\n{}  x\n{}  y",     "\n{}- a\n{}- b: c\n{}  d: e", "\n{}  - a\n{}  -  b", "\n{}  a: 1\n{}  b:\n{}    c: 2", " [a, 'b']",
     " {{a: 1,\n{}  b: [2]}}", " a\n{}  b"]
)  # fmt: skip
NAMES = ["GOOSE_MODEL", "'quoted: key'", '"double"', "with space", "a.b/c", "<<"]


@st.composite
def block(draw: st.DrawFn, indent: int, names: list[str]) -> str:
    """Keys at an indentation, with whatever values."""
    lines = []
    for name in draw(st.lists(st.sampled_from(names), unique=True, max_size=3)):
        value = draw(VALUES).replace("{{", "{").replace("}}", "}").replace("{}", " " * indent)
        lines.append(f"{draw(BLANKS)}{' ' * indent}{name}:{value}\n")
    return "".join(lines)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A text as somebody may have written it, with or without extensions."""
    width = draw(st.integers(1, 4))
    inside = draw(block(width, ["developer", "'github'", "other-one"]))
    head = draw(st.sampled_from(["extensions:\n", "extensions:   # mine\n"]))
    middle = draw(st.sampled_from(["", "extensions:\n", "extensions: {}\n", "extensions: {} # none\n", head + inside]))
    text = draw(BLANKS) + draw(block(0, NAMES[:3])) + middle + draw(block(0, NAMES[3:])) + draw(BLANKS)
    text = draw(st.sampled_from(["", "---\n"])) + text
    if "|" not in text and draw(st.booleans()):  # the end of such a text is part of it
        text = text.rstrip("\n")
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def lines_of(text: str) -> list[str]:
    return text.replace("\r\n", "\n").split("\n")


def has_extensions(text: str) -> bool:
    return bool(load(text).get("extensions"))


@given(texts())
def test_what_is_put_is_there_and_nothing_else_changed(text: str) -> None:
    data = load(text)
    after = put(text, KEYS, VALUE)
    found = load(after)
    assert found["extensions"].pop("pursers") == VALUE
    assert found == {**data, "extensions": data.get("extensions") or {}}
    rest = iter(lines_of(after))
    assert all(line in rest for line in lines_of(text) if line.strip() and "{}" not in line), "only added to"
    assert "\r\n" not in text or "\n" not in after.replace("\r\n", "")


@given(texts())
def test_what_is_dropped_is_gone_and_nothing_else_changed(text: str) -> None:
    after = drop(put(text, KEYS, VALUE), KEYS)
    if has_extensions(text):
        assert after.rstrip("\r\n") == text.rstrip("\r\n")
    elif "extensions" in load(text):
        assert after.replace(" {}", "").rstrip("\r\n") == text.replace(" {}", "").rstrip("\r\n")
    else:
        assert drop(after, KEYS[:1]).rstrip("\r\n") == text.rstrip("\r\n")


@given(texts())
def test_setting_a_value_again(text: str) -> None:
    before = put(text, KEYS, VALUE)
    assert put(before, (*KEYS, "cmd"), "/other") == before.replace("cmd: /bin/shim", "cmd: /other")
    assert load(put(before, (*KEYS, "bundled"), None))["extensions"]["pursers"] == {**VALUE, "bundled": None}
    assert load(put(before, (*KEYS, "args"), ["-x", "a b"]))["extensions"]["pursers"] == {
        **VALUE,
        "args": ["-x", "a b"],
    }


@pytest.mark.parametrize(
    "value", ["yes", "1", "1.5", "a: b", "# c", "", " x", "ü", '"', "- a", "null", "~", "/a/b-c", "@x", "a\nb"]
)
def test_texts_stay_texts(value: str) -> None:
    entry: dict[str, Any] = {"cmd": value, "args": [value], "envs": {"A": value}}
    assert load(put("", KEYS, entry))["extensions"]["pursers"] == entry


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("extensions:\n\ta:\n", "line 2: a tab where YAML wants blanks"),
        ("- a\n", "line 1: a key and a colon should stand here"),
        ("a: 1\n---\nb: 2\n", "line 2: a key and a colon should stand here"),
        ("%YAML 1.2\n---\na: 1\n", "line 1: a key and a colon should stand here"),
        ("a: 1\na: 2\n", "a key stands there twice"),
        ("just text\n", "line 1: a key and a colon should stand here"),
        ("{a: 1}\n", "line 1: a key and a colon should stand here"),
    ],
)
def test_what_it_does_not_understand_is_told(text: str, error: str) -> None:
    with pytest.raises((Broken, TooClever)) as caught:
        put(text, KEYS, VALUE)
    assert error in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "extensions: &x\n  a: 1\n",
        "extensions: [a]\n",
        "extensions: {a: {cmd: b}}\n",
        "extensions: *x\n",
        "extensions:\n- a\n",
    ],
)
def test_forms_that_it_does_not_edit_are_refused(text: str) -> None:
    with pytest.raises((Broken, TooClever)):
        put(text, KEYS, VALUE)


def test_the_end_of_a_text_may_look_like_a_comment() -> None:
    text = "extensions:\n developer: |\n   a\n\n   # text\nb: 1\n"
    assert put(text, KEYS, {"cmd": "/x"}) == text.replace("b: 1", " pursers:\n   cmd: /x\nb: 1")
    assert drop(text, ("extensions", "developer")) == "extensions: {}\nb: 1\n"


def test_how_it_looks() -> None:
    assert put(
        "a: 1\nextensions:\n    b:\n        cmd: c\nd: 2\n", KEYS, {"cmd": "/x", "args": ["-y"], "envs": {}}
    ) == (
        "a: 1\nextensions:\n    b:\n        cmd: c\n"
        '    pursers:\n      cmd: /x\n      args:\n      - "-y"\n      envs: {}\nd: 2\n'
    )
