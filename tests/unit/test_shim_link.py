"""The shim's link: what still goes out when the daemon said that it leaves."""

import socket
from collections.abc import Iterator

import pytest

from pursers_shim.link import LAST_WORD, Link


@pytest.fixture
def ends() -> Iterator[tuple[Link, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        yield Link(ours), theirs


def test_an_answer_of_the_host_that_crosses_the_news_of_the_leave_is_sent(ends: tuple[Link, socket.socket]) -> None:
    link, daemon = ends
    link.send(b"request\n", "1")
    link.send(b"the human's answer\n", LAST_WORD, is_last_word=True)
    link.send(b"report\n", "delivered 1", is_last_word=True)
    link.leave(lingers=True)
    link.send(b"another request\n", "2")
    link.send(b"drained\n", is_last_word=True)
    assert link.flush() == [LAST_WORD]
    assert daemon.recv(1000) == b"the human's answer\ndrained\n"


def test_a_daemon_that_does_not_linger_is_told_nothing(ends: tuple[Link, socket.socket]) -> None:
    link, daemon = ends
    link.send(b"the human's answer\n", LAST_WORD, is_last_word=True)
    link.leave(lingers=False)
    assert (link.flush(), link.wants_to_write) == ([], False)
    assert link.outbox.size == 0
    with pytest.raises(BlockingIOError):
        daemon.recv(1000)
