"""The link protocol's own words: lines, versions, what a shim tells about its host."""

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursers_shim import wire
from pursers_shim.wire import Lines, LineTooLong


@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=8), st.integers(1, 50))
def test_lines_do_not_depend_on_how_the_bytes_are_cut(lines: list[bytes], step: int) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    reader = Lines()
    got: list[bytes | LineTooLong] = []
    for at in range(0, len(stream), step):
        got += reader.feed(stream[at : at + step])
    assert got == lines
    assert reader.rest() == b""


def test_only_the_newline_ends_a_line() -> None:
    text = "a\u2028b\x85c\rd\x0be".encode()
    assert Lines().feed(text + b"\n") == [text]


def test_what_follows_the_last_newline_is_the_rest() -> None:
    reader = Lines()
    assert reader.feed(b"one\ntwo") == [b"one"]
    assert reader.rest() == b"two"


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_line_at_the_limit_passes_and_one_above_is_marked(step: int) -> None:
    reader = Lines(limit=100)
    stream = b"x" * 100 + b"\n" + b"<" + b"y" * 99 + b">\n" + b"next\n"
    got: list[bytes | LineTooLong] = []
    for at in range(0, len(stream), step):
        got += reader.feed(stream[at : at + step])
    first, second, third = got
    assert first == b"x" * 100
    assert third == b"next"
    assert isinstance(second, LineTooLong)
    assert second.head.startswith(b"<y")
    assert second.tail.endswith(b"y>")


def test_a_line_without_end_is_not_kept() -> None:
    reader = Lines(limit=1000)
    for _ in range(2000):
        assert reader.feed(b"z" * 1000) == []
    last = reader.rest()
    assert isinstance(last, LineTooLong)
    assert len(last.head) <= Lines.HEAD
    assert len(last.tail) <= Lines.TAIL


@given(st.text(st.characters(), max_size=20))
def test_encoded_text_comes_back(text: str) -> None:
    line = wire.encode({"text": text})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"text": text}


def test_lone_surrogates_still_make_valid_utf8() -> None:
    line = wire.encode({"text": "a\ud800b"})
    assert json.loads(line.decode()) == {"text": "a\ud800b"}


def test_a_notification_is_json_rpc() -> None:
    sent = json.loads(wire.notification(wire.DELIVERED, {"id": "1"}))
    assert sent == {"jsonrpc": "2.0", "method": "pursers/delivered", "params": {"id": "1"}}


@pytest.mark.parametrize(
    ("theirs", "agreed"),
    [
        ((1, 1), 1),
        ([1, 9], 1),
        ([0, 1], 1),
        ([2, 3], None),
        ([0, 0], None),
        (None, None),
        ([1], None),
        (["a", 1], None),
    ],
)
def test_versions_agree_on_the_newest_common_one(theirs: object, agreed: int | None) -> None:
    assert wire.agreed_protocol(theirs) == agreed


def test_only_the_listed_environment_leaves_the_shim() -> None:
    environ = {
        "ONBOARD_BOARD_ID": "b",
        "PURSERS_ROLE": "worker",
        "CLAUDE_CODE_SESSION_ID": "s",
        "PURSERSD_HOME": "/x",
        "AWS_SECRET_ACCESS_KEY": "no",
        "PATH": "/bin",
    }
    assert set(wire.relayed_environment(environ)) == {"ONBOARD_BOARD_ID", "PURSERS_ROLE", "CLAUDE_CODE_SESSION_ID"}


def test_bytes_that_are_no_text_do_not_spoil_the_hello() -> None:
    environ = {"PURSERS_ROLE": os.fsdecode(b"wor\xffker")}
    assert wire.relayed_environment(environ) == {"PURSERS_ROLE": "wor\ufffdker"}


def test_a_process_start_tells_two_processes_apart() -> None:
    mine = wire.process_start(os.getpid())
    assert mine is not None
    assert mine == wire.process_start(os.getpid())
    assert wire.process_start(1) != mine
    assert wire.process_start(2**22 + 1) is None
