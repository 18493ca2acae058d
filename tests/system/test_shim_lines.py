"""Lines that a host should not send: each is answered by the shim, and nothing else is disturbed."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripted_daemon import Peer, ScriptedDaemon, Shim, answer, attach, call, request, short_home

MIB = 1024 * 1024


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


@pytest.fixture
def ends(home: Path) -> Iterator[tuple[Shim, Peer]]:
    """A shim with a wait in progress, and its daemon."""
    with ScriptedDaemon(home) as daemon, Shim(home) as shim:
        peer = attach(daemon, shim)
        shim.send(call("wait"))
        assert peer.read() == call("wait")
        yield shim, peer


def undisturbed(shim: Shim, peer: Peer) -> None:
    """The wait still ends as it should, new calls pass, and nothing else was passed on."""
    shim.send(call("after"))
    assert peer.read() == call("after")
    peer.send(answer("after"), answer("wait"))
    assert [shim.read(), shim.read()] == [answer("after"), answer("wait")]


@pytest.mark.parametrize(
    ("line", "code", "identity", "words"),
    [
        (b"hello", -32700, None, "one line of JSON"),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"', -32700, None, "one line of JSON"),
        (b'{"jsonrpc":"2.0","id":1,"method":"a\0b"}', -32700, None, "NUL"),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xc3\x28"}', -32700, None, "UTF-8"),
        (b"17", -32600, None, "JSON object"),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None, "one message per line"),
        (b'{"jsonrpc":"2.0","id":3}', -32600, 3, "neither method nor result"),
        (b'{"jsonrpc":"2.0"}', -32600, None, "neither method nor result"),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None, "string or an integer"),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None, "string or an integer"),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None, "string or an integer"),
        (b'{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', -32600, None, "string or an integer"),
        (b'{"jsonrpc":"2.0","id":"wait","method":"ping"}', -32600, None, '"wait"'),
        (b'{"jsonrpc":"2.0","id":5,"method":"pursers/delivered"}', -32601, 5, "not a method"),
    ],
)
def test_a_bad_line_is_answered(ends: tuple[Shim, Peer], line: bytes, code: int, identity: object, words: str) -> None:
    shim, peer = ends
    shim.raw(line + b"\n")
    found = shim.read()
    assert found["id"] == identity
    assert found["error"]["code"] == code  # type: ignore[index]
    assert words in found["error"]["message"]  # type: ignore[index]
    undisturbed(shim, peer)


def test_blank_lines_and_carriage_returns_are_nothing(ends: tuple[Shim, Peer]) -> None:
    shim, peer = ends
    shim.raw(b"\n \t\n\r\n")
    shim.raw(json.dumps(request(1, "ping")).encode() + b"\r\n")
    assert peer.read() == request(1, "ping")
    peer.send(answer(1))
    assert shim.read() == answer(1)
    undisturbed(shim, peer)


@pytest.mark.parametrize("form", ["id first", "id last", "no message"])
def test_a_line_of_seventeen_mib_is_skipped(ends: tuple[Shim, Peer], form: str) -> None:
    shim, peer = ends
    stuff = "x" * (17 * MIB)
    line = {
        "id first": json.dumps(call(8, text=stuff)),
        "id last": '{"method":"tools/call","params":{"text":"' + stuff + '"},"jsonrpc":"2.0","id":"8"}',
        "no message": stuff,
    }[form]
    shim.raw(line.encode() + b"\n")
    found = shim.read()
    assert found["id"] == {"id first": 8, "id last": "8", "no message": None}[form]
    assert found["error"]["code"] == -32600  # type: ignore[index]
    assert "16777216 bytes" in found["error"]["message"]  # type: ignore[index]
    undisturbed(shim, peer)


def test_a_stream_without_any_newline_costs_little_memory(ends: tuple[Shim, Peer]) -> None:
    shim, peer = ends

    def resident() -> int:
        status = Path(f"/proc/{shim.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0])

    before = resident()
    for _ in range(64):
        shim.raw(b"x" * MIB)
    shim.raw(b"\n")
    assert shim.read()["error"]["code"] == -32600  # type: ignore[index]
    assert resident() - before < 48 * 1024
    undisturbed(shim, peer)


def test_the_id_of_an_answered_request_is_free_again(ends: tuple[Shim, Peer]) -> None:
    shim, peer = ends
    for _ in range(2):
        shim.send(request(1, "ping"))
        assert peer.read() == request(1, "ping")
        peer.send(answer(1))
        assert shim.read() == answer(1)
    undisturbed(shim, peer)


def test_a_last_line_without_newline_counts(home: Path) -> None:
    with ScriptedDaemon(home) as daemon, Shim(home) as shim:
        peer = attach(daemon, shim)
        shim.raw(json.dumps(request(1, "ping")).encode())
        shim.end_input()
        assert peer.read() == request(1, "ping")
        peer.send(answer(1))
        assert shim.read() == answer(1)
        assert shim.ended() == (0, "")


def test_a_request_before_the_handshake_is_the_daemons_to_answer(home: Path) -> None:
    with ScriptedDaemon(home) as daemon, Shim(home) as shim:
        peer = daemon.accept()
        peer.welcome()
        shim.send(call(1))
        assert peer.read() == call(1)
        refusal = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "first initialize"}}
        peer.send(refusal)
        assert shim.read() == refusal


@pytest.mark.parametrize("waits", [True, False])
def test_a_daemon_with_a_lower_limit_is_respected(home: Path, waits: bool) -> None:
    with ScriptedDaemon(home) as daemon, Shim(home) as shim:
        peer = daemon.accept()
        if waits:
            # An answer proves that the shim has read what came before it.
            shim.send(call(1, text="x" * 2000), call(2))
            shim.raw(b"junk\n")
            assert shim.read()["error"]["code"] == -32700  # type: ignore[index]
        peer.welcome(limits={"line": 1000})
        if not waits:
            shim.send(request("p", "ping"))
            assert peer.read()["id"] == "p"
            shim.send(call(1, text="x" * 2000), call(2))
        found = shim.read()
        assert found["id"] == 1
        assert "1000 bytes" in found["error"]["message"]  # type: ignore[index]
        assert peer.read() == call(2)


def test_five_thousand_bad_lines_and_an_unread_stderr_hold_nothing_up(ends: tuple[Shim, Peer]) -> None:
    shim, peer = ends
    for _ in range(50):
        shim.raw(b"junk\n" * 100)
        for _ in range(100):
            assert shim.read()["error"]["code"] == -32700  # type: ignore[index]
    undisturbed(shim, peer)
    shim.end_input()
    assert shim.ended() == (0, "")
