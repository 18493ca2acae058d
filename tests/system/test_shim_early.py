"""What a host hears from a shim while the daemon is not ready: the handshake in time, and why a call failed."""

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pursers_shim.paths import place
from pursers_shim.resume import EARLY_AFTER
from scripted_daemon import (
    INITIALIZE,
    INITIALIZED,
    Message,
    Peer,
    ScriptedDaemon,
    Shim,
    answer,
    attach,
    call,
    request,
    short_home,
)

IN_TIME = 9.5
"""Seconds, on a busy machine; an answer that waits for a daemon comes after 10 s. How fast it really is: `make bench`."""

MODERN = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


@pytest.fixture
def daemon(home: Path) -> Iterator[ScriptedDaemon]:
    with ScriptedDaemon(home) as daemon:
        yield daemon


def refuse(peer: Peer, retryable: bool) -> None:
    assert peer.read()["pursers"] == "hello"
    peer.send({"pursers": "refuse", "code": "full", "text": "Too many conversations.", "retryable": retryable})
    peer.close()


def legacy_handshake(shim: Shim) -> None:
    """As a host does it: each step after the answer to the one before; all of it in time."""
    begun = time.monotonic()
    initialized = shim.ask(INITIALIZE)
    assert initialized["result"]["protocolVersion"] == "2025-11-25"  # type: ignore[index]
    shim.send(INITIALIZED)
    assert shim.ask(request("p", "ping")) == answer("p")
    listed = shim.ask(request(1, "tools/list"))
    assert "a2a_wait" in [tool["name"] for tool in listed["result"]["tools"]]  # type: ignore[index]
    assert time.monotonic() - begun < IN_TIME


def failure(message: Message) -> dict[str, object]:
    """The error in a tool result."""
    result = message["result"]
    assert isinstance(result, dict)
    assert result["isError"] is True
    error = result["structuredContent"]["error"]
    assert error["code"] == "daemon_unavailable"
    assert error["message"] == result["content"][0]["text"]
    assert isinstance(error, dict)
    return error


# --- the handshake in every state of the daemon ---


def test_no_daemon(home: Path) -> None:
    with Shim(home) as shim:
        legacy_handshake(shim)


def test_a_daemon_that_does_not_answer(home: Path, daemon: ScriptedDaemon) -> None:
    with Shim(home) as shim:
        legacy_handshake(shim)
        daemon.accept()


def test_a_daemon_whose_queue_is_full(home: Path) -> None:
    with ScriptedDaemon(home, backlog=0), Shim(home) as first, Shim(home) as second, Shim(home) as third:
        for shim in (first, second, third):
            legacy_handshake(shim)


@pytest.mark.parametrize("retryable", [True, False])
def test_a_daemon_that_refuses(home: Path, daemon: ScriptedDaemon, retryable: bool) -> None:
    with Shim(home) as shim:
        refuse(daemon.accept(), retryable)
        legacy_handshake(shim)


def test_a_daemon_that_welcomes_and_then_is_slow(home: Path, daemon: ScriptedDaemon) -> None:
    with Shim(home) as shim:
        peer = daemon.accept()
        peer.welcome()
        begun = time.monotonic()
        assert shim.ask(INITIALIZE)["id"] == 0
        assert time.monotonic() - begun < IN_TIME
        # Its own answer comes too late and is swallowed.
        assert peer.read() == INITIALIZE
        shim.send(INITIALIZED, call(1))
        peer.send(answer(0, late=True), answer(1))
        assert shim.read() == answer(1)


def test_a_folder_that_is_not_safe(home: Path, daemon: ScriptedDaemon) -> None:
    os.chmod(daemon.place.folder, 0o755)
    with Shim(home) as shim:
        legacy_handshake(shim)
        error = failure(shim.ask(call(2)))
        assert f"chmod 700 {daemon.place.folder}" in str(error["message"])


def test_a_home_that_cannot_work() -> None:
    with Shim(Path("relative")) as shim:
        legacy_handshake(shim)
        assert "PURSERSD_HOME must be an absolute path" in str(failure(shim.ask(call(2)))["message"])


def test_the_modern_era(home: Path) -> None:
    with Shim(home) as shim:
        begun = time.monotonic()
        discovered = shim.ask(request(0, "server/discover", MODERN))
        assert discovered["result"]["supportedVersions"] == ["2026-07-28"]  # type: ignore[index]
        listed = shim.ask(request(1, "tools/list", MODERN))
        assert listed["result"]["resultType"] == "complete"  # type: ignore[index]
        assert time.monotonic() - begun < IN_TIME


def test_a_pipelined_opening_is_answered_in_order(home: Path) -> None:
    with Shim(home) as shim:
        shim.send(INITIALIZE, INITIALIZED, request(1, "tools/list"), request(2, "ping"))
        assert [shim.read()["id"] for _ in range(3)] == [0, 1, 2]


def test_a_ready_daemon_is_asked_and_not_the_snapshot(home: Path, daemon: ScriptedDaemon) -> None:
    with Shim(home) as shim:
        peer = attach(daemon, shim)
        shim.send(request(1, "tools/list"))
        assert peer.read()["id"] == 1
        assert shim.is_quiet(3 * EARLY_AFTER)
        peer.send(answer(1, tools=["the daemon's own"]))
        assert shim.read() == answer(1, tools=["the daemon's own"])


# --- then the daemon comes ---


def test_after_an_early_answer_the_daemon_gets_the_handshake_and_the_calls(home: Path) -> None:
    with Shim(home) as shim:
        legacy_handshake(shim)
        shim.send(call(2))
        with ScriptedDaemon(home) as daemon:
            peer = daemon.accept()
            hello = peer.welcome()
            assert "resume" not in hello
            replayed = peer.read()
            assert replayed == INITIALIZE | {"id": replayed["id"]}
            assert peer.read() == INITIALIZED
            assert peer.read() == call(2)
            peer.send(answer(replayed["id"], second=True), answer(2))
            assert shim.read() == answer(2)
            assert peer.read()["method"] == "pursers/delivered"
            # From here on it is a plain relay.
            shim.send(request(3, "tools/list"))
            assert peer.read() == request(3, "tools/list")
            peer.send(answer(3, tools=[]))
            assert shim.read() == answer(3, tools=[])


def test_a_stopped_daemon_that_goes_on_serves_the_same_link(home: Path, daemon: ScriptedDaemon) -> None:
    with Shim(home) as shim:
        legacy_handshake(shim)
        shim.send(call(2))
        peer = daemon.accept()
        peer.welcome()
        assert [peer.read()["method"] for _ in range(3)] == ["initialize", "notifications/initialized", "tools/call"]
        daemon.listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            daemon.listener.accept()


def test_a_daemon_that_was_full_is_asked_again(home: Path, daemon: ScriptedDaemon) -> None:
    with Shim(home) as shim:
        for _ in range(3):
            refuse(daemon.accept(), retryable=True)
        peer = attach(daemon, shim)
        shim.send(call(1))
        assert peer.read() == call(1)


def test_a_refusal_for_good_fails_calls_at_once_and_is_tried_again_for_the_next(
    home: Path, daemon: ScriptedDaemon
) -> None:
    with Shim(home) as shim:
        shim.send(call(1))
        peer = daemon.accept()
        begun = time.monotonic()
        refuse(peer, retryable=False)
        assert "Too many conversations." in str(failure(shim.read())["message"])
        assert time.monotonic() - begun < IN_TIME
        daemon.listener.settimeout(0.5)
        with pytest.raises(TimeoutError):  # nothing is wanted, so nobody asks
            daemon.listener.accept()
        daemon.listener.settimeout(10)
        shim.send(call(2))
        peer = daemon.accept()
        peer.welcome()
        assert peer.read() == call(2)
        peer.send(answer(2))
        assert shim.read() == answer(2)


def test_what_is_not_the_daemon_is_asked_again(home: Path, daemon: ScriptedDaemon) -> None:
    with Shim(home) as shim:
        for rubbish in (b"HTTP/1.1 400 Bad Request\r\n", b'{"pursers":"welcome","protocol":99}\n', b"{}\n"):
            peer = daemon.accept()
            peer.read()
            peer.connection.sendall(rubbish)
            peer.close()
        attach(daemon, shim)


# --- a call that nobody takes ---


def test_a_call_waits_ten_seconds_for_a_daemon_and_then_says_what_is_wrong(home: Path) -> None:
    # All the slow cases wait side by side.
    with (
        short_home() as other,
        ScriptedDaemon(other) as stopped,
        Shim(home) as absent,
        Shim(other) as busy,
        Shim(home) as modern,
        ThreadPoolExecutor(4) as pool,
    ):
        begun = time.monotonic()
        legacy_handshake(absent)
        answers = [
            pool.submit(absent.ask, call(2), 60),
            pool.submit(busy.ask, call(2), 60),
            pool.submit(modern.ask, request(2, "tools/call", {"name": "t", "arguments": {}, **MODERN}), 60),
        ]
        first, second, third = (found.result() for found in answers)
        assert time.monotonic() - begun > 9.5
        error = failure(first)
        assert error["retryable"] is True
        assert error["outcome"] == "not_sent"
        assert error["action"] == "Start it with: pursersctl start"
        assert place({"PURSERSD_HOME": str(home)}).socket in str(error["message"])
        assert "PURSERSD_AUTOSTART=0" in str(error["message"])
        error = failure(second)
        assert f"process {os.getpid()}" in str(error["message"])
        assert "does not answer" in str(error["message"])
        assert "pursersctl status" in str(error["action"])
        assert third["result"]["resultType"] == "complete"  # type: ignore[index]
        # The shim goes on trying, and what it answered itself is not asked of the daemon.
        peer = stopped.accept()
        peer.welcome()
        assert busy.is_quiet(0.05)
        busy.send(call(3))
        assert peer.read() == call(3)


@pytest.mark.parametrize("kind", ["link", "file"])
def test_something_else_at_the_place_is_told_soon_and_left_alone(home: Path, kind: str) -> None:
    run = home / "run"
    if kind == "link":
        (home / "elsewhere").mkdir(mode=0o700)
        run.symlink_to(home / "elsewhere")
    else:
        run.mkdir(mode=0o700)
        (run / "pursersd.sock").write_text("mine")
    with Shim(home, PURSERSD_AUTOSTART="1") as shim:
        begun = time.monotonic()
        error = failure(shim.ask(call(1)))
        assert time.monotonic() - begun < IN_TIME
        assert ("symbolic link" if kind == "link" else "not a socket") in str(error["message"])
    if kind == "file":
        assert (run / "pursersd.sock").read_text() == "mine"


def test_other_requests_get_an_error_with_the_same_text(home: Path, daemon: ScriptedDaemon) -> None:
    with Shim(home) as shim:
        shim.send(request(1, "resources/list"))
        refuse(daemon.accept(), retryable=False)
        error = shim.read()["error"]
        assert isinstance(error, dict)
        assert error["code"] == -32000
        assert "Too many conversations." in json.dumps(error)
