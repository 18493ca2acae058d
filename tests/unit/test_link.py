"""One connection to the daemon."""

import json
import socket
from collections.abc import Iterator

import pytest

from pursers_shim.link import Link, Refusal, Welcome, greeting, hello
from pursers_shim.wire import MAX_LINE


@pytest.fixture
def ends() -> Iterator[tuple[Link, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    link = Link(ours)
    with theirs:
        yield link, theirs
    link.close()


def test_hello_resumes_only_what_there_is_to_resume() -> None:
    assert json.loads(hello({"version": "1"}, None)) == {
        "pursers": "hello",
        "protocol": [1, 1],
        "role": "shim",
        "version": "1",
    }
    assert json.loads(hello({}, {"conversation": "c"}))["resume"] == {"conversation": "c"}


def test_a_welcome() -> None:
    value: dict[str, object] = {"pursers": "welcome", "protocol": 1, "conversation": "c", "limits": {"line": 5000}}
    found = greeting(value)
    assert isinstance(found, Welcome)
    assert found.names["conversation"] == "c"
    assert found.line_limit == 5000


@pytest.mark.parametrize("limits", [None, {}, {"line": "x"}, {"line": 0}, {"line": MAX_LINE * 2}, 7])
def test_a_limit_that_says_nothing(limits: object) -> None:
    found = greeting({"pursers": "welcome", "protocol": 1, "limits": limits})
    assert isinstance(found, Welcome)
    assert found.line_limit == MAX_LINE


@pytest.mark.parametrize(
    ("value", "words", "is_final"),
    [
        ({"pursers": "refuse", "code": "x", "text": "Full.", "retryable": True}, "Full.", False),
        ({"pursers": "refuse", "code": "x", "text": "Never.", "retryable": False}, "Never.", True),
        ({"pursers": "welcome", "protocol": 99}, "link protocol", False),
        ({"pursers": "welcome"}, "link protocol", False),
        ({"jsonrpc": "2.0"}, "link protocol", False),
    ],
)
def test_a_refusal(value: dict[str, object], words: str, is_final: bool) -> None:
    found = greeting(value)
    assert isinstance(found, Refusal)
    assert words in found.text
    assert found.is_final is is_final


def test_lines_go_and_come(ends: tuple[Link, socket.socket]) -> None:
    link, theirs = ends
    assert link.receive() == []
    link.send(b"one\n", "1")
    link.send(b"two\n")
    assert link.flush() == ["1"]
    assert theirs.recv(100) == b"one\ntwo\n"
    theirs.sendall(b"three\nfo")
    assert link.receive() == [b"three"]


def test_a_full_socket_takes_the_rest_later(ends: tuple[Link, socket.socket]) -> None:
    link, theirs = ends
    line = b"x" * 2_000_000 + b"\n"
    link.send(line, "big")
    assert link.flush() == []
    assert link.wants_to_write
    got, tags = 0, list[str]()
    while got < len(line):
        got += len(theirs.recv(65536))
        tags += link.flush()
    assert tags == ["big"]
    assert not link.wants_to_write


def test_what_was_written_before_the_end_is_still_read(ends: tuple[Link, socket.socket]) -> None:
    link, theirs = ends
    theirs.sendall(b"last\nunfinished")
    theirs.close()
    link.send(b"too late\n", "t")
    assert link.flush() == []
    assert not link.wants_to_write
    assert link.receive() == [b"last"]
    assert link.receive() is None


def test_a_daemon_that_leaves_gets_nothing_more(ends: tuple[Link, socket.socket]) -> None:
    link, theirs = ends
    link.send(b"queued\n", "q")
    link.is_leaving = True
    link.send(b"new\n", "n")
    assert link.flush() == []
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(10)


def test_questions_are_taken_out_once(ends: tuple[Link, socket.socket]) -> None:
    link, _ = ends
    link.asked = {"1", '"a"'}
    assert {link.pop_asked(), link.pop_asked()} == {1, "a"}
    assert not link.asked
