"""The editor of TOML: what it reads, what it changes, and that it changes nothing else."""

import copy
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersctl.hosts_text import Broken, TooClever
from pursersctl.hosts_toml import drop, load, put

KEYS = ("mcp_servers", "pursers")
VALUE = {"command": "/bin/shim", "required": True, "tool_timeout_sec": 620, "env_vars": ["A", "B"], "env": {"C": 'd"e'}}

BLANKS = st.sampled_from(["", "\n", "# c\n", "\n# [mcp_servers.pursers]\n\n", "   \n"])
VALUES = st.sampled_from(
    ["1", '"x"', "'y # z'", '"""\n[mcp_servers.pursers]\ncommand = "no"\n"""', "'''\n# '''", "[1, 2]",
     "[\n  'a', # one\n  'b',\n]", "{ a = 1, 'b' = [2] }", "2026-01-02", "true # c", '"\\" ]"', "[[1], [2]]", '"""a\\"""b"""']
)  # fmt: skip
NAMES = st.sampled_from(
    ["mcp_servers.a", 'mcp_servers."b.c"', "mcp_servers.'d'", "tui", "profiles.p", "mcp_servers.a2.env"]
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A text as somebody may have written it: tables in any order, with whatever values and comments."""
    lines = [draw(BLANKS)]
    lines += [f"top{i} = {draw(VALUES)}\n{draw(BLANKS)}" for i in range(draw(st.integers(0, 2)))]
    for name in draw(st.lists(NAMES, unique=True, max_size=5)):
        lines.append(f"[ {name} ] # h\n" if draw(st.booleans()) else f"[{name}]\n")
        lines += [f"k{i}={draw(VALUES)}\n{draw(BLANKS)}" for i in range(draw(st.integers(0, 3)))]
        if draw(st.booleans()):
            lines.append(f"[[list.{'x' * draw(st.integers(1, 3))}]]\nv = {draw(VALUES)}\n")
    text = "".join(lines)
    text = text if draw(st.booleans()) else text.rstrip("\n")
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def with_entry(text: str, value: Any) -> Any:
    data = copy.deepcopy(tomllib.loads(text))
    data.setdefault("mcp_servers", {})["pursers"] = value
    return data


@given(texts())
def test_what_is_put_is_there_and_nothing_else_changed(text: str) -> None:
    after = put(text, KEYS, VALUE)
    assert tomllib.loads(after) == with_entry(text, VALUE)
    assert after.startswith(text)
    assert "\r\n" not in text or "\n" not in after.replace("\r\n", "")


@given(texts())
def test_what_is_dropped_is_gone_and_nothing_else_changed(text: str) -> None:
    after = drop(put(text, KEYS, VALUE), KEYS)
    assert after.rstrip("\r\n") == text.rstrip("\r\n")
    assert tomllib.loads(after) == tomllib.loads(text)


@given(texts(), BLANKS)
def test_what_stands_behind_it_stays(text: str, behind: str) -> None:
    behind = f"\n# about the next\n[behind]\nx = 1\n{behind}"
    after = drop(put(text, KEYS, VALUE) + behind, KEYS)
    assert after.endswith(behind)
    assert after.removesuffix(behind).rstrip("\r\n") == text.rstrip("\r\n")


@given(texts())
def test_setting_a_value_again(text: str) -> None:
    before = put(text, KEYS, VALUE)
    after = put(before, (*KEYS, "command"), "/other")
    assert after == before.replace('"/bin/shim"', '"/other"')
    more = put(before, (*KEYS, "enabled"), True)
    assert tomllib.loads(more) == with_entry(text, {**VALUE, "enabled": True})
    inner = put(before, (*KEYS, "env", "F"), "g")
    assert tomllib.loads(inner) == with_entry(text, {**VALUE, "env": {"C": 'd"e', "F": "g"}})
    assert drop(more, (*KEYS, "enabled")) == before


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers = {}\n",
        "mcp_servers = { a = { command = 'x' } } # c\n",
        "mcp_servers.a.command = 'x'\n[tui]\ny = 1\n",
        "[mcp_servers]\n[tui]\ny = 1\n",
        "[mcp_servers]\na = { command = 'x' }\n",
    ],
)
def test_servers_in_other_forms(text: str) -> None:
    after = put(text, KEYS, VALUE)
    assert tomllib.loads(after) == with_entry(text, VALUE)
    assert drop(after, KEYS) == text


def test_an_entry_of_dotted_keys_goes_as_well() -> None:
    text = "[mcp_servers]\na.command = 'x'\npursers.command = 'y'\npursers.env.Z = 'z'\nb.command = 'w'\n"
    assert drop(text, KEYS) == "[mcp_servers]\na.command = 'x'\nb.command = 'w'\n"


def test_how_it_looks() -> None:
    assert put('model = "m"\n', KEYS, VALUE) == (
        'model = "m"\n\n[mcp_servers.pursers]\ncommand = "/bin/shim"\nrequired = true\ntool_timeout_sec = 620\n'
        'env_vars = ["A", "B"]\n\n[mcp_servers.pursers.env]\nC = "d\\"e"\n'
    )
    assert put("", ("mcp_servers", "a b"), {"x": 1}) == '[mcp_servers."a b"]\nx = 1\n'


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(Broken, match="line 2"):
        load("a = 1\na = 2\n")
    with pytest.raises(TooClever):
        put("mcp_servers = 1\n", KEYS, VALUE)
    assert drop("a = 1\n", KEYS) == "a = 1\n"
