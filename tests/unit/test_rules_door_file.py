"""rules/door_file: what the bridge reads we read, what it refuses we refuse in its words, what we write it reads."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import door_state
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.errors import DoorsError
from pursersd.rules.door import SEAT_ROLES, Door, decode
from pursersd.rules.door_file import COORDINATING, parse, serialise
from rig.doors import URL, packed, token

TOKEN = token("k-1", 1900000000)


def entry(**fields: object) -> dict[str, object]:
    known: dict[str, object] = {"u": URL, "b": "b", "r": "worker", "t": TOKEN, "kid": "k-1", "exp": 1900000000}
    return known | {"joined_at": "2026-01-01T00:00:00+00:00", "seat_names_used": ["worker-h-1"]} | fields


def document(*entries: object, version: object = 1) -> str:
    return json.dumps({"schema_version": version, "doors": list(entries)})


BAD = [
    ("", "doors.json is unreadable or invalid"),
    ("{", "doors.json is unreadable or invalid"),
    ("\ufeff{}", "doors.json is unreadable or invalid"),
    ("[]", "doors.json has an unsupported schema"),
    ("{}", "doors.json has an unsupported schema"),
    (document(version=2), "doors.json has an unsupported schema"),
    (document(version="1"), "doors.json has an unsupported schema"),
    ('{"schema_version":1}', "doors.json doors must be a list"),
    ('{"schema_version":1,"doors":{}}', "doors.json doors must be a list"),
    (document("x"), "doors.json contains an invalid entry"),
    (document({}), "doors.json entry has invalid fields"),
    (document(entry(x=1)), "doors.json entry has invalid fields"),
    (document(entry(r="admin")), "door role is not supported"),
    (document(entry(r="named")), "door role is not supported"),
    (document(entry(r="coordinator")), "door role is not supported"),
    (document(entry(u=5)), "door string fields must be non-empty strings"),
    (document(entry(t="x")), "door string contains a malformed token"),
    (document(entry(kid="k-2")), "doors.json token metadata does not match the token"),
    (document(entry(exp=1)), "doors.json token metadata does not match the token"),
    (document(entry(joined_at="")), "doors.json joined_at must be a timestamp"),
    (document(entry(joined_at=5)), "doors.json joined_at must be a timestamp"),
    (document(entry(seat_names_used="a")), "doors.json seat_names_used must be unique strings"),
    (document(entry(seat_names_used=["a", "a"])), "doors.json seat_names_used must be unique strings"),
    (document(entry(seat_names_used=["a", ""])), "doors.json seat_names_used must be unique strings"),
    (document(entry(seat_names_used=["a", 1])), "doors.json seat_names_used must be unique strings"),
    (document(entry(), entry(r=" Worker ")), "doors.json has duplicate board/role entries"),
    (document(entry(), entry(b="c", r="x")), "door role is not supported"),
]


def ours(text: str) -> list[dict[str, Any]] | str:
    try:
        written = serialise(parse(text))
    except DoorsError as refused:
        return str(refused)
    doors: list[dict[str, Any]] = json.loads(written)["doors"]
    return doors


def the_bridges(path: Path, text: str) -> list[dict[str, Any]] | str:
    path.write_text(text)
    try:
        found: list[dict[str, Any]] = door_state.load(path)["doors"]
    except ValueError as refused:
        return str(refused)
    return sorted(found, key=lambda door: (door["b"], door["r"]))


@pytest.mark.parametrize(("text", "words"), BAD)
def test_a_bad_file_is_refused_in_the_words_of_the_bridge(tmp_path: Path, text: str, words: str) -> None:
    assert ours(text) == words == the_bridges(tmp_path / "doors.json", text)


@pytest.mark.parametrize(
    "text",
    [
        document(),
        document(entry()),
        document(entry(), entry(r="reviewer"), entry(b="a"), version=1.0),
        document(entry(r=" WORKER", b=" b ", seat_names_used=[])),
        '{"schema_version":true,"doors":[],"more":1}',
    ],
)
def test_a_good_file_says_the_same_to_both(tmp_path: Path, text: str) -> None:
    assert ours(text) == the_bridges(tmp_path / "doors.json", text)


def test_what_breaks_the_reader_of_the_bridge_is_refused_too() -> None:
    with pytest.raises(DoorsError, match="unreadable or invalid"):
        parse("[" * 100_000)


def test_a_file_is_written_letter_for_letter_as_the_bridge_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "doors.json"
    for board, role in (("b", "worker"), ("a", "worker"), ("b", "reviewer")):
        door_state.store(path, packed(b=board, r=role, t=TOKEN))
    door_state.reserve_name(path, "b", "worker", "somebody")
    text = path.read_text()
    assert serialise(parse(text)) == text


def test_coordinating_roles_have_a_file_of_their_own() -> None:
    door = replace(decode(packed(r="named")), role="coordinator", joined_at="now")
    text = serialise([door])
    assert parse(text, COORDINATING) == (door,)
    with pytest.raises(DoorsError, match="door role is not supported"):
        parse(text)


names = st.lists(st.text(min_size=1, max_size=9), unique=True, max_size=3).map(tuple)
words = st.text(min_size=1, max_size=9).filter(lambda word: word == word.strip())
doors = st.lists(
    st.builds(
        lambda url, board, role, kid, exp, joined_at, names: replace(
            decode(packed(url, board, role, token(kid, exp))), joined_at=joined_at, seat_names_used=names
        ),
        words,
        words,
        st.sampled_from(SEAT_ROLES),
        words,
        st.integers(),
        words,
        names,
    ),
    unique_by=lambda door: (door.board, door.role),
    max_size=4,
)


@given(doors)
def test_what_is_written_is_what_is_read(stored: list[Door]) -> None:
    assert parse(serialise(stored)) == tuple(sorted(stored, key=lambda door: (door.board, door.role)))


@given(
    st.text(max_size=60)
    | st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), st.lists).map(json.dumps)
)
def test_no_text_breaks_the_reader(text: str) -> None:
    assert isinstance(ours(text), str | list)
