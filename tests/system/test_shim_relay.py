"""A shim process between a scripted host and a scripted daemon: the plain relay, and what happens to its link."""

import contextlib
import json
import os
import select
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pursers_shim import __version__
from pursers_shim.wire import process_start
from scripted_daemon import (
    CEILING,
    INITIALIZE,
    INITIALIZED,
    Peer,
    ScriptedDaemon,
    Shim,
    answer,
    attach,
    call,
    request,
    short_home,
)


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


@pytest.fixture
def daemon(home: Path) -> Iterator[ScriptedDaemon]:
    with ScriptedDaemon(home) as daemon:
        yield daemon


@pytest.fixture
def shim(home: Path, daemon: ScriptedDaemon) -> Iterator[Shim]:
    with Shim(home) as shim:
        yield shim


def reattached(daemon: ScriptedDaemon, epoch: int = 1) -> tuple[Peer, dict[str, object]]:
    """The next link after the replay of the handshake, and its hello."""
    peer = daemon.accept()
    hello = peer.welcome(epoch=epoch, link_epoch=2)
    replayed = peer.read()
    assert replayed == INITIALIZE | {"id": replayed["id"]}
    peer.send(answer(replayed["id"], protocolVersion="2025-11-25"))
    assert peer.read() == INITIALIZED
    return peer, hello


# --- hello ---


def test_hello_says_who_and_where_we_are(home: Path, daemon: ScriptedDaemon) -> None:
    with Shim(home, PURSERS_ROLE="worker", ONBOARD_CENTRAL_TOKEN="t", SECRET="no") as shim:
        hello = daemon.accept().read()
        pid = shim.process.pid
        assert hello == {
            "pursers": "hello",
            "protocol": [1, 1],
            "role": "shim",
            "version": __version__,
            "pid": pid,
            "started": process_start(pid),
            "ppid": os.getpid(),
            "parent_started": process_start(os.getpid()),
            "cwd": os.getcwd(),
            "env": {"HOME": os.environ["HOME"], "PURSERS_ROLE": "worker", "ONBOARD_CENTRAL_TOKEN": "t"},
        }


def test_nothing_follows_hello_before_the_welcome(daemon: ScriptedDaemon, shim: Shim) -> None:
    shim.send(INITIALIZE)
    peer = daemon.accept()
    assert peer.read()["pursers"] == "hello"
    assert peer.is_quiet(0.05)


# --- plain relay ---


def test_lines_pass_unchanged_in_both_directions(daemon: ScriptedDaemon, shim: Shim) -> None:
    peer = attach(daemon, shim)
    asked = b'{ "id" : "a\\u00e9" , "method":"tools/call","jsonrpc":"2.0","params":{"n":1.50,"u":"\xe2\x80\xa8"} }'
    shim.raw(asked + b"\n")
    assert peer.line() == asked
    told = b'{"result":{"content":[] },  "id":"a\\u00e9","jsonrpc":"2.0"}'
    peer.connection.sendall(told + b"\n")
    assert shim.line() == told


def test_ids_of_two_types_do_not_mix(daemon: ScriptedDaemon, shim: Shim) -> None:
    peer = attach(daemon, shim)
    shim.send(call(1), call("1"))
    assert [peer.read()["id"], peer.read()["id"]] == [1, "1"]
    peer.send(answer("1", which="text"), answer(1, which="number"))
    assert shim.read() == answer("1", which="text")
    assert shim.read() == answer(1, which="number")


def test_notifications_pass_and_those_of_the_link_do_not(daemon: ScriptedDaemon, shim: Shim) -> None:
    peer = attach(daemon, shim)
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 0, "progress": 1}}
    peer.send({"jsonrpc": "2.0", "method": "pursers/something-new", "params": {}}, progress)
    assert shim.read() == progress
    forged = {"jsonrpc": "2.0", "method": "pursers/delivered", "params": {"id": 1}}
    plain = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
    shim.send(forged, plain)
    assert peer.read() == plain


def test_a_line_of_the_daemon_that_is_no_message_does_not_reach_the_host(daemon: ScriptedDaemon, shim: Shim) -> None:
    peer = attach(daemon, shim)
    peer.connection.sendall(b"Traceback\n\n[]\n17\n" + json.dumps(answer(99)).encode() + b"\n")
    shim.send(request(5, "ping"))
    assert peer.read()["id"] == 5
    peer.send(answer(5))
    assert shim.read() == answer(5)


def test_an_answer_passes_once(daemon: ScriptedDaemon, shim: Shim) -> None:
    peer = attach(daemon, shim)
    shim.send(request(5, "ping"), request(6, "ping"))
    peer.send(answer(5, first=True), answer(5, first=False), answer(6))
    assert [shim.read(), shim.read()] == [answer(5, first=True), answer(6)]


def test_delivery_of_a_tool_answer_is_reported(daemon: ScriptedDaemon, shim: Shim) -> None:
    peer = attach(daemon, shim)
    shim.send(request(1, "tools/list"), call("c"))
    assert [peer.read()["id"], peer.read()["id"]] == [1, "c"]
    peer.send(answer(1), answer("c"))
    assert [shim.read()["id"], shim.read()["id"]] == [1, "c"]
    assert peer.read() == {"jsonrpc": "2.0", "method": "pursers/delivered", "params": {"id": "c"}}
    assert peer.is_quiet(0.05)


def test_a_cancelled_request_gets_no_answer(daemon: ScriptedDaemon, shim: Shim) -> None:
    peer = attach(daemon, shim)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    shim.send(call(7), cancel, cancel, {**cancel, "params": {"requestId": "7"}}, {**cancel, "params": {}})
    assert peer.read() == call(7)
    assert peer.read() == cancel
    peer.send(answer(7))
    shim.send(request(8, "ping"))
    assert peer.read()["id"] == 8
    peer.send(answer(8))
    assert shim.read() == answer(8)


def test_a_question_of_the_daemon_is_answered_by_the_host(daemon: ScriptedDaemon, shim: Shim) -> None:
    peer = attach(daemon, shim)
    question = request(0, "elicitation/create", {"message": "?"})
    peer.send(question)
    assert shim.read() == question
    shim.send(answer(1, action="unasked"), answer(0, action="accept"), answer(0, action="again"))
    assert peer.read() == answer(0, action="accept")
    shim.send(request(5, "ping"))
    assert peer.read()["id"] == 5


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 1 << 20, 16 * 1024 * 1024 - 200])
def test_large_lines_pass_in_both_directions(daemon: ScriptedDaemon, shim: Shim, size: int) -> None:
    peer = attach(daemon, shim)
    big = call(1, text="x" * size)
    shim.send(big)
    assert peer.read() == big
    peer.send(answer(1, text="y" * size))
    assert shim.read() == answer(1, text="y" * size)


def test_an_answer_above_the_limit_becomes_an_error(daemon: ScriptedDaemon, shim: Shim) -> None:
    peer = attach(daemon, shim)
    shim.send(call(1))
    assert peer.read() == call(1)
    peer.send(answer(1, text="y" * (17 * 1024 * 1024)))
    error = shim.read()["error"]
    assert isinstance(error, dict)
    assert "longer than" in error["message"]
    shim.send(request(2, "ping"))
    assert peer.read()["id"] == 2


def resident_kib(pid: int) -> int:
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1])


def push_until_stuck(fd: int, stream: bytes) -> int:
    """Write until nothing is taken any more; how much was taken."""
    os.set_blocking(fd, False)
    taken = 0
    while taken < len(stream) and select.select([], [fd], [], 0.3)[1]:
        taken += os.write(fd, stream[taken : taken + 65536])
    os.set_blocking(fd, True)
    return taken


CALLS = [call(n, text="x" * 100_000) for n in range(100, 300)]


def test_a_daemon_that_does_not_read_holds_the_host_back(daemon: ScriptedDaemon, shim: Shim) -> None:
    peer = attach(daemon, shim)
    assert shim.process.stdin is not None
    before = resident_kib(shim.process.pid)
    stream = b"".join(json.dumps(c).encode() + b"\n" for c in CALLS)
    taken = push_until_stuck(shim.process.stdin.fileno(), stream)
    assert taken < 4 * 1024 * 1024
    assert resident_kib(shim.process.pid) - before < 8 * 1024
    # The other direction still moves.
    peer.send(request("q", "roots/list"))
    assert shim.read()["id"] == "q"
    with ThreadPoolExecutor(1) as pool:
        rest = pool.submit(shim.raw, stream[taken:])
        assert [peer.read() for _ in CALLS] == CALLS
        rest.result()


def test_a_host_that_does_not_read_holds_the_daemon_back(daemon: ScriptedDaemon, shim: Shim) -> None:
    peer = attach(daemon, shim)
    notes = [{"jsonrpc": "2.0", "method": "n", "params": {"n": n, "text": "y" * 100_000}} for n in range(200)]
    before = resident_kib(shim.process.pid)
    stream = b"".join(json.dumps(n).encode() + b"\n" for n in notes)
    taken = push_until_stuck(peer.connection.fileno(), stream)
    assert taken < 4 * 1024 * 1024
    assert resident_kib(shim.process.pid) - before < 8 * 1024
    # The host may still speak: its requests go out.
    shim.send(request("q", "ping"))
    assert peer.read()["id"] == "q"
    with ThreadPoolExecutor(1) as pool:
        rest = pool.submit(peer.connection.sendall, stream[taken:])
        assert [shim.read() for _ in notes] == notes
        rest.result()


def test_a_host_that_reads_no_refusal_is_not_heard_for_ever(home: Path, shim: Shim) -> None:
    assert shim.process.stdin is not None
    before = resident_kib(shim.process.pid)
    taken = push_until_stuck(shim.process.stdin.fileno(), b"junk\n" * 400_000)
    assert taken < 1_000_000
    assert resident_kib(shim.process.pid) - before < 32 * 1024


# --- the link is lost ---


def test_a_pending_call_survives_the_loss_of_the_link_and_is_answered_once(daemon: ScriptedDaemon, shim: Shim) -> None:
    first = attach(daemon, shim)
    shim.send(call(7, timeout_s=60), call("7"))
    assert [first.read()["id"], first.read()["id"]] == [7, "7"]
    first.send(answer("7"))
    assert shim.read() == answer("7")
    first.read()  # delivered
    first.close()
    second, hello = reattached(daemon)
    resume = hello["resume"]
    assert isinstance(resume, dict)
    [pending] = resume.pop("pending")
    assert resume.pop("idle_s") >= 0
    assert resume == {"conversation": "c-1", "daemon_epoch": 1, "link_epoch": 1}
    assert pending["id"] == 7
    assert 0 <= pending["age_s"] < 60
    assert second.read() == call(7, timeout_s=60)
    second.send(answer(7, events=[1]), answer(7, events=[2]))
    assert shim.read() == answer(7, events=[1])
    assert second.read()["method"] == "pursers/delivered"
    shim.send(request(8, "ping"))
    second.send(answer(8)) if second.read()["id"] == 8 else None
    assert shim.read() == answer(8)


def next_call(peer: Peer) -> dict[str, object]:
    """The next line that is not a report."""
    while (message := peer.read())["method"] == "pursers/delivered":
        pass
    return message


def test_many_losses_lose_and_double_nothing(daemon: ScriptedDaemon, shim: Shim) -> None:
    peer = attach(daemon, shim)
    for number in range(10, 30):
        shim.send(call(number))
        assert next_call(peer) == call(number)
        if number % 2:
            peer.send(answer(number))
        peer.close()
        peer, _ = reattached(daemon)
        # An answer that was in the socket before the loss counts, whether or not its delivery could be reported there.
        if number % 2 == 0:
            assert next_call(peer) == call(number)
            peer.send(answer(number))
    assert [shim.read()["id"] for _ in range(10, 30)] == list(range(10, 30))
    assert shim.is_quiet(0.05)


def test_what_came_during_the_outage_was_not_sent_before(home: Path, daemon: ScriptedDaemon, shim: Shim) -> None:
    attach(daemon, shim)
    daemon.close()
    os.unlink(daemon.place.socket)
    note = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
    shim.send(
        call(1), note, call(2), {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    )
    with ScriptedDaemon(home) as next_daemon:
        peer, hello = reattached(next_daemon, epoch=2)
        assert isinstance(hello["resume"], dict)
        assert hello["resume"]["pending"] == []
        assert [peer.read(), peer.read()] == [note, call(2)]
        peer.send(answer(2))
        assert shim.read() == answer(2)


def test_a_call_that_was_cancelled_during_the_outage_is_cancelled_on_the_next_link(
    daemon: ScriptedDaemon, shim: Shim
) -> None:
    first = attach(daemon, shim)
    shim.send(call(1))
    assert first.read() == call(1)
    first.close()
    second = daemon.accept()
    shim.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}, request(2, "ping"))
    second.welcome()
    assert [second.read()["method"], second.read()["method"]] == ["initialize", "notifications/initialized"]
    rest = [second.read(), second.read()]
    assert {str(line["method"]) for line in rest} == {"ping", "notifications/cancelled"}
    assert {"requestId": 1, "reason": "answered without you"} in [line.get("params") for line in rest]


def test_a_question_of_a_lost_link_is_withdrawn_and_its_answer_goes_nowhere(daemon: ScriptedDaemon, shim: Shim) -> None:
    first = attach(daemon, shim)
    first.send(request(3, "elicitation/create", {"message": "?"}))
    assert shim.read()["id"] == 3
    first.close()
    withdrawn = shim.read()
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"] == {"requestId": 3, "reason": "connection lost"}
    second, _ = reattached(daemon)
    shim.send(answer(3, action="accept"), request(4, "ping"))
    assert second.read()["id"] == 4


def test_a_line_that_was_cut_by_the_loss_is_not_passed_on(daemon: ScriptedDaemon, shim: Shim) -> None:
    first = attach(daemon, shim)
    shim.send(call(1))
    first.read()
    first.connection.sendall(json.dumps(answer(1)).encode()[:-3])
    first.close()
    second, _ = reattached(daemon)
    assert second.read() == call(1)
    second.send(answer(1, whole=True))
    assert shim.read() == answer(1, whole=True)


def test_an_initialize_that_was_cut_off_is_answered_by_the_next_link(daemon: ScriptedDaemon, shim: Shim) -> None:
    first = daemon.accept()
    first.welcome()
    shim.send(INITIALIZE, INITIALIZED, request(1, "tools/list"))
    assert [first.read()["method"] for _ in range(3)] == ["initialize", "notifications/initialized", "tools/list"]
    first.close()
    second = daemon.accept()
    second.welcome(link_epoch=2)
    assert [second.read(), second.read(), second.read()] == [INITIALIZE, INITIALIZED, request(1, "tools/list")]
    second.send(answer(0), answer(1))
    assert [shim.read(), shim.read()] == [answer(0), answer(1)]


def test_the_modern_era_has_nothing_to_replay(daemon: ScriptedDaemon, shim: Shim) -> None:
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    first = daemon.accept()
    first.welcome()
    shim.send(request(0, "server/discover", meta))
    assert first.read()["id"] == 0
    first.send(answer(0))
    assert shim.read() == answer(0)
    shim.send(request(1, "tools/call", {"name": "t", **meta}))
    assert first.read()["id"] == 1
    first.close()
    second = daemon.accept()
    second.welcome()
    assert second.read() == request(1, "tools/call", {"name": "t", **meta})


# --- the daemon's own messages ---


def drain(reason: str, **limit: float) -> dict[str, object]:
    return {"jsonrpc": "2.0", "method": "pursers/drain", "params": {"reason": reason, **limit}}


DRAINED = {"jsonrpc": "2.0", "method": "pursers/drained", "params": {}}


@pytest.mark.parametrize("reason", ["restart", "idle"])
def test_a_daemon_that_leaves_gets_no_new_line_and_the_next_one_gets_them_all(
    daemon: ScriptedDaemon, shim: Shim, reason: str
) -> None:
    first = attach(daemon, shim)
    shim.send(call(1), call(2))
    assert [first.read()["id"], first.read()["id"]] == [1, 2]
    first.send(drain(reason), answer(2))
    assert shim.read() == answer(2)
    shim.send(call(3))
    assert first.is_quiet(0.05)
    first.close()
    second, hello = reattached(daemon, epoch=2)
    assert isinstance(hello["resume"], dict)
    assert [pending["id"] for pending in hello["resume"]["pending"]] == [1]
    got = [second.read() for _ in range(3)]
    assert {"jsonrpc": "2.0", "method": "pursers/delivered", "params": {"id": 2}} in got
    assert [line for line in got if line["method"] == "tools/call"] == [call(1), call(3)]
    second.send(answer(1), answer(3))
    assert [shim.read(), shim.read()] == [answer(1), answer(3)]


def test_a_line_that_a_leaving_daemon_has_not_read_goes_to_the_next_one_only(
    daemon: ScriptedDaemon, shim: Shim
) -> None:
    first = attach(daemon, shim)
    big = call(1, text="x" * 900_000)
    shim.send(big)
    assert select.select([first.connection], [], [], CEILING)[0]  # it has begun to come
    first.send(drain("restart"))
    assert shim.ask(request("p", "ping"))["id"] == "p"  # answered early: it knows that the daemon leaves
    got = bytearray()
    first.connection.settimeout(0.2)
    with contextlib.suppress(TimeoutError):
        while data := first.connection.recv(1 << 20):
            got += data
    assert 0 < len(got) < 900_000
    assert b"\n" not in got
    first.close()
    second, hello = reattached(daemon, epoch=2)
    assert hello["resume"]["pending"] == []  # type: ignore[index]
    assert second.read() == big


def test_a_stopped_daemon_ends_the_calls_at_once_with_the_command_that_helps(
    daemon: ScriptedDaemon, shim: Shim
) -> None:
    peer = attach(daemon, shim)
    shim.send(call(1), request(2, "resources/list"), request(3, "tools/list"))
    for _ in range(3):
        peer.read()
    stopped = time.monotonic()
    Path(daemon.place.stopped).touch()
    peer.send(drain("stop"))
    answers = {message["id"]: message for message in (shim.read(), shim.read(), shim.read())}
    assert time.monotonic() - stopped < 29  # and not after the grace of 30 s
    assert answers[1]["result"]["isError"] is True  # type: ignore[index]
    failure = answers[1]["result"]["structuredContent"]["error"]  # type: ignore[index]
    assert failure["code"] == "daemon_unavailable"
    assert failure["retryable"] is True
    assert failure["outcome"] == "unknown"
    assert failure["action"] == "Start it with: pursersctl start"
    assert "pursersctl stop" in failure["message"]
    assert answers[2]["error"]["code"] == -32000  # type: ignore[index]
    assert "tools" in answers[3]["result"]  # type: ignore[operator]


def test_after_a_stop_later_calls_fail_soon_and_work_again_after_a_start(
    home: Path, daemon: ScriptedDaemon, shim: Shim
) -> None:
    peer = attach(daemon, shim)
    Path(daemon.place.stopped).touch()
    peer.send(drain("stop"))
    daemon.close()
    os.unlink(daemon.place.socket)
    asked = time.monotonic()
    failed = shim.ask(call(4))
    assert "stopped with `pursersctl stop`" in failed["result"]["content"][0]["text"]  # type: ignore[index]
    assert "not_sent" in json.dumps(failed)
    assert time.monotonic() - asked < 9.5  # and not after the grace of 10 s
    os.unlink(daemon.place.stopped)
    with ScriptedDaemon(home) as started:
        second, _ = reattached(started, epoch=2)
        shim.send(call(5))
        assert second.read() == call(5)
        second.send(answer(5))
        assert shim.read() == answer(5)


def test_a_daemon_that_says_it_leaves_but_stays_is_left(daemon: ScriptedDaemon, shim: Shim) -> None:
    first = attach(daemon, shim)
    first.send(drain("restart"))
    second, _ = reattached(daemon)
    assert first.line() is None
    shim.send(call(1))
    assert second.read() == call(1)


def test_a_daemon_that_drains_ends_its_calls_and_the_next_one_gets_the_rest(daemon: ScriptedDaemon, shim: Shim) -> None:
    first = attach(daemon, shim)
    shim.send(call(1), call(2))
    assert [first.read()["id"], first.read()["id"]] == [1, 2]
    question = request("q", "elicitation/create", {"message": "?"})
    first.send(question)
    assert shim.read() == question
    first.send(drain("restart", limit_s=20.0))
    assert first.read() == DRAINED
    shim.send(call(3))
    # Nothing new comes, but what a call in progress needs to end does.
    shim.send(answer("q", action="accept"))
    assert first.read() == answer("q", action="accept")
    first.send(answer(1))
    assert shim.read() == answer(1)
    assert first.read() == {"jsonrpc": "2.0", "method": "pursers/delivered", "params": {"id": 1}}
    assert first.is_quiet(0.05)
    first.close()
    second, hello = reattached(daemon, epoch=2)
    assert [pending["id"] for pending in hello["resume"]["pending"]] == [2]  # type: ignore[index]
    assert [second.read(), second.read()] == [call(2), call(3)]
    second.send(answer(2), answer(3))
    assert [shim.read(), shim.read()] == [answer(2), answer(3)]


def test_a_daemon_that_drains_hears_of_what_nobody_waits_for_any_more(daemon: ScriptedDaemon, shim: Shim) -> None:
    first = attach(daemon, shim)
    shim.send(call(1))
    assert first.read() == call(1)
    first.send(drain("restart", limit_s=20.0))
    assert first.read() == DRAINED
    cancels = [{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n}} for n in (1, 2)]
    shim.send(call(2), *cancels)  # the second call is held, and so nobody's business
    assert first.read() == cancels[0]
    assert first.is_quiet(0.05)


def test_a_handshake_during_a_drain_is_answered_early(daemon: ScriptedDaemon, shim: Shim) -> None:
    first = attach(daemon, shim)
    first.send(drain("restart", limit_s=20.0))
    assert first.read() == DRAINED
    assert "tools" in shim.ask(request(7, "tools/list"))["result"]  # type: ignore[operator]


def test_a_drain_in_the_middle_of_a_line_gets_not_the_rest_of_it(daemon: ScriptedDaemon, shim: Shim) -> None:
    first = attach(daemon, shim)
    big = call(1, text="x" * 900_000)
    shim.send(big)
    assert select.select([first.connection], [], [], CEILING)[0]  # it has begun to come
    first.send(drain("restart", limit_s=20.0))
    assert shim.ask(request("p", "ping"))["id"] == "p"
    got = bytearray()
    first.connection.settimeout(0.2)
    with contextlib.suppress(TimeoutError):
        while data := first.connection.recv(1 << 20):
            got += data
    assert 0 < len(got) < 900_000
    assert b"\n" not in got
    first.close()
    second, hello = reattached(daemon, epoch=2)
    assert hello["resume"]["pending"] == []  # type: ignore[index]
    assert second.read() == big


def test_a_daemon_that_drains_to_stop_ends_its_calls_first(daemon: ScriptedDaemon, shim: Shim) -> None:
    first = attach(daemon, shim)
    shim.send(call(1), call(2))
    assert [first.read()["id"], first.read()["id"]] == [1, 2]
    first.send(drain("stop", limit_s=20.0))
    assert first.read() == DRAINED
    first.send(answer(1))
    assert shim.read() == answer(1)
    first.send(drain("stop"))
    first.close()
    failed = shim.read()
    assert failed["id"] == 2
    assert "stopped with `pursersctl stop`" in failed["result"]["content"][0]["text"]  # type: ignore[index]


def test_a_fenced_shim_fails_what_is_pending_and_goes_on_as_a_new_conversation(
    daemon: ScriptedDaemon, shim: Shim
) -> None:
    first = attach(daemon, shim)
    shim.send(call(1))
    assert first.read()["id"] == 1
    first.send({"jsonrpc": "2.0", "method": "pursers/fence", "params": {"link_epoch": 2}})
    failed = shim.read()
    assert "taken over" in failed["result"]["content"][0]["text"]  # type: ignore[index]
    assert '"outcome": "unknown"' in json.dumps(failed)
    first.close()
    second = daemon.accept()
    assert "resume" not in second.welcome()
    shim.send(call(2))
    assert [line["id"] for line in (second.read(), second.read(), second.read()) if "id" in line][-1] == 2


def test_exit_ends_the_shim_at_once(daemon: ScriptedDaemon, shim: Shim) -> None:
    peer = attach(daemon, shim)
    shim.send(call(1))
    peer.read()
    peer.send({"jsonrpc": "2.0", "method": "pursers/exit", "params": {"reason": "host is dead"}})
    assert shim.ended() == (0, "")
