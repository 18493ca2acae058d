"""The loop of the shim inside this process, with waits that are short: what happens when a daemon stays away."""

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pursers_shim import relay, resume
from pursers_shim.dial import Dialer
from pursers_shim.early import Early
from pursers_shim.exchange import Exchange
from pursers_shim.host import Host
from pursers_shim.relay import Relay
from scripted_daemon import (
    CEILING,
    LineReader,
    Message,
    ScriptedDaemon,
    answer,
    call,
    request,
    short_home,
    until,
)

FACTS: dict[str, object] = {"version": "0", "pid": 1}


class Running(LineReader):
    """A relay in a thread; the test is its host."""

    def __init__(self, home: Path) -> None:
        stdin, self._input = os.pipe()
        output, stdout = os.pipe()
        wake, self._wake = os.pipe()
        super().__init__(output)
        self._descriptors = [stdin, output, stdout, wake, self._wake]
        environ = {"PURSERSD_HOME": str(home), "PURSERSD_AUTOSTART": "0"}
        host = Host(stdin, stdout)
        early = Early()
        self.relay = Relay(host, Dialer(environ), Exchange(host, early.answer, early.unavailable), FACTS, wake)
        self._thread = threading.Thread(target=self.relay.run)
        self._thread.start()

    def send(self, *messages: Message) -> None:
        os.write(self._input, b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def wake(self) -> None:
        os.write(self._wake, b"\0")

    def end_input(self) -> None:
        os.close(self._input)
        self._input = -1

    def has_ended(self, ceiling: float = 30.0) -> bool:
        self._thread.join(ceiling)
        return not self._thread.is_alive()

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.wake()
        ended = self.has_ended()
        for fd in (*self._descriptors, *([self._input] if self._input >= 0 else [])):
            os.close(fd)
        assert ended


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "START_GRACE", 0.3)
    monkeypatch.setattr(resume, "RESUME_GRACE", 0.8)
    monkeypatch.setattr(resume, "HOPELESS_GRACE", 0.05)
    monkeypatch.setattr(resume, "EARLY_AFTER", 0.05)


def outcome(message: Message) -> object:
    result = message["result"]
    assert isinstance(result, dict)
    assert result["isError"] is True
    return result["structuredContent"]["error"]["outcome"]


def test_a_call_is_given_up_after_the_start_grace_and_a_later_one_works(home: Path) -> None:
    with Running(home) as running:
        begun = time.monotonic()
        running.send(call(1), request(2, "resources/list"))
        assert outcome(running.read()) == "not_sent"
        assert running.read()["error"]["code"] == -32000  # type: ignore[index]
        assert time.monotonic() - begun > 0.25
        with ScriptedDaemon(home) as daemon:
            peer = daemon.accept()
            peer.welcome()
            running.send(call(3))
            # The first two were never sent, so the daemon has nothing to be told of them.
            assert peer.read() == call(3)
            peer.send(answer(3))
            assert running.read() == answer(3)


def test_a_call_that_had_been_sent_waits_longer_and_its_outcome_is_unknown(home: Path) -> None:
    with ScriptedDaemon(home) as daemon, Running(home) as running:
        peer = daemon.accept()
        peer.welcome()
        running.send(call(1))
        assert peer.read() == call(1)
        lost = time.monotonic()
        daemon.close()
        os.unlink(daemon.place.socket)
        until(lambda: "Relay None" in repr(running.relay))
        running.send(call(2))
        second, first = running.read(), running.read()
        assert (second["id"], outcome(second)) == (2, "not_sent")
        assert (first["id"], outcome(first)) == (1, "unknown")
        assert time.monotonic() - lost > 0.7


@pytest.mark.parametrize("told", ["by the one that went", "by one that refused us"])
def test_while_another_daemon_is_promised_a_new_call_waits_longer(home: Path, told: str) -> None:
    with ScriptedDaemon(home) as daemon, Running(home) as running:
        peer = daemon.accept()
        if told == "by the one that went":
            peer.welcome()
            peer.send({"jsonrpc": "2.0", "method": "pursers/drain", "params": {"reason": "restart"}})
        else:
            peer.read()
            peer.send({"pursers": "refuse", "code": "draining", "text": "It leaves.", "retryable": True})
        began = time.monotonic()
        daemon.close()
        os.unlink(daemon.place.socket)
        until(lambda: "Relay None" in repr(running.relay))
        running.send(call(1))
        assert outcome(running.read()) == "not_sent"
        assert time.monotonic() - began > 0.5


def test_what_was_given_up_is_cancelled_on_the_next_link(home: Path) -> None:
    with Running(home) as running:
        with ScriptedDaemon(home) as daemon:
            peer = daemon.accept()
            peer.welcome()
            running.send(call(1))
            assert peer.read() == call(1)
        assert outcome(running.read()) == "unknown"
        with ScriptedDaemon(home) as daemon:
            peer = daemon.accept()
            hello = peer.welcome()
            assert hello["resume"]["pending"] == []  # type: ignore[index]
            told = peer.read()
            assert told["method"] == "notifications/cancelled"
            assert told["params"]["requestId"] == 1  # type: ignore[index]
            # Should it come all the same, its answer goes nowhere.
            peer.send(answer(1))
            running.send(call(2))
            assert peer.read() == call(2)
            peer.send(answer(2))
            assert running.read() == answer(2)


def test_where_only_a_person_can_help_a_call_does_not_wait_long(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "START_GRACE", 60.0)
    os.mkdir(home / "run", 0o755)
    os.chmod(home / "run", 0o755)
    with Running(home) as running:
        running.send(call(1))
        assert "chmod 700" in str(running.read(2))


def test_a_request_that_a_slow_daemon_has_is_not_given_up(home: Path) -> None:
    with ScriptedDaemon(home) as daemon, Running(home) as running:
        peer = daemon.accept()
        peer.welcome()
        running.send(call(1))
        assert peer.read() == call(1)
        assert running.is_quiet(1.0)
        peer.send(answer(1))
        assert running.read() == answer(1)


def test_a_byte_in_the_wake_descriptor_ends_it(home: Path) -> None:
    with Running(home) as running:
        running.send(call(1))
        running.wake()
        assert running.has_ended(CEILING)


def test_the_end_of_input_ends_it_and_closes_the_link(home: Path) -> None:
    with ScriptedDaemon(home) as daemon, Running(home) as running:
        peer = daemon.accept()
        peer.welcome()
        running.send(call(1))
        assert peer.read() == call(1)
        running.end_input()
        assert running.has_ended(CEILING)
        assert peer.line() is None


def test_it_describes_itself(home: Path) -> None:
    with ScriptedDaemon(home) as daemon, Running(home) as running:
        peer = daemon.accept()
        peer.welcome()
        running.send(call(1))
        assert peer.read() == call(1)
        assert "1 pending" in repr(running.relay)
        assert "welcome=True" in repr(running.relay)


def test_a_queue_beyond_the_limit_stops_the_reading(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "QUEUE_LIMIT", 1000)
    monkeypatch.setattr(resume, "START_GRACE", 60.0)
    calls = [call(n, text="x" * 300) for n in range(5)]
    with Running(home) as running:
        running.send(*calls)
        until(lambda: "5 pending" in repr(running.relay))
        running.send(request("ping", "ping"))
        assert running.is_quiet(0.3)  # nobody has read it, else it had its early answer
        with ScriptedDaemon(home) as daemon:
            peer = daemon.accept()
            peer.welcome()
            assert [peer.read() for _ in range(6)] == [*calls, request("ping", "ping")]
