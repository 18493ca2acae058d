"""Hosts that ask for too much, and hosts and shims that read nothing: bounded, told, cut, and nobody else notices."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import pytest

from rig import processes
from rig.central import Central
from rig.daemon import Home
from rig.link import Link
from rig.proxy import Proxy
from rig.shim import SHIM, ShimProcess
from rig.wait import until
from system.scene import OPENING, PATIENCE, Bystander, Converse, Json, ask, rows

FLOOD = 10_000
IN_PROGRESS = 256
"""Calls of one conversation at once (conversation/bounds.py)."""

MIB = 1024 * 1024
SHIM_ROOM, DAEMON_ROOM = 48 * MIB, 96 * MIB
"""What a shim and the daemon may grow by, generously, under any pressure of one host."""


def memory(pid: int) -> int:
    return int(psutil.Process(pid).memory_info().rss)


class Peak:
    """The largest growth of a process while the block runs."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._before = memory(pid)
        self.grown = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"memory of {pid}")

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            self.grown = max(self.grown, memory(self._pid) - self._before)


def flood(count: int, tool: str = "project_registry_get", *, first: int = 0) -> bytes:
    lines = (
        json.dumps({"jsonrpc": "2.0", "id": f"flood {n}", "method": "tools/call", "params": {"name": tool}})
        for n in range(first, first + count)
    )
    return "\n".join(lines).encode() + b"\n"


def flood_answers(shim: ShimProcess) -> list[Json]:
    return [m for m in list(shim.received) if str(m.get("id", "")).startswith("flood ")]


# --- too much ---------------------------------------------------------------------------------------------------------


def test_ten_thousand_calls_at_once_are_refused_beyond_the_bound_and_nobody_else_waits(
    central: Central, proxy: Proxy, board: str, bystander: Bystander
) -> None:
    home = bystander.home
    proxy.hold("board_state_get")
    with home.shim(home.environment(proxy.url, central.worker("ann", board), board, "flood")) as shim:
        shim.initialize()
        other = Link(home.place.socket, home.environment(agent="other"))
        with other, Peak(shim.pid) as of_shim, Peak(home.daemon_pid()) as of_daemon:
            other.request("initialize", OPENING)
            writing = threading.Thread(target=shim.send, args=(flood(FLOOD),))
            writing.start()
            slowest = 0.0
            while len(flood_answers(shim)) < FLOOD - IN_PROGRESS:
                began = time.perf_counter()
                assert other.request("ping") == {}
                slowest = max(slowest, time.perf_counter() - began)
            writing.join()
        answers = flood_answers(shim)
        refused = {answer["id"] for answer in answers}
        assert len(refused) == len(answers) == FLOOD - IN_PROGRESS
        errors = [answer["result"]["structuredContent"]["error"] for answer in answers]
        assert {(error["code"], error["outcome"]) for error in errors} == {("queue_full", "not_sent")}
        for number in {f"flood {n}" for n in range(FLOOD)} - refused:
            shim.cancel(number)
        until(
            lambda: not any(c["call_connections"] for c in ask(home, "status")["centrals"]), PATIENCE, "no call is left"
        )
        assert shim.request("ping") == {}
        assert len(flood_answers(shim)) == len(answers)
        assert of_shim.grown < SHIM_ROOM
        assert of_daemon.grown < DAEMON_ROOM
        assert slowest < PATIENCE


def test_two_hundred_slow_reads_of_one_conversation_do_not_starve_another(
    central: Central, board: str, converse: Converse, proxy: Proxy
) -> None:
    busy, modest = converse("busy", url=proxy.url), converse("modest", url=proxy.url)
    for shim in (busy, modest):  # both have their seats
        shim.start_tool("project_registry_get").message(PATIENCE)
    proxy.hold("board_state_get")
    reads = [busy.start_tool("project_registry_get") for _ in range(200)]
    until(lambda: proxy.holding("board_state_get") == 2, PATIENCE, "the busy one has its share")
    own = modest.start_tool("project_registry_get")
    until(lambda: proxy.holding("board_state_get") == 3, PATIENCE, "the modest one is served beside it")
    assert not own.done
    proxy.release("board_state_get")
    own.message(PATIENCE)
    assert sum(read.done for read in reads) < 100, "it did not stand at the end of the line"
    for read in reads:
        busy.cancel(read.id)


# --- nobody who reads -------------------------------------------------------------------------------------------------

HASTY_DAEMON = """
import sys
from pursersd.conversation import outlet
outlet.STALL = 1.0
from pursersd.__main__ import main
sys.exit(main())
"""


@pytest.fixture
def hasty(home: Home) -> Iterator[int]:
    """The pid of a daemon that cuts a link after a second instead of after thirty."""
    command = [sys.executable, "-c", HASTY_DAEMON, "--foreground"]
    with (home.folder / "daemon.out").open("ab") as output:
        daemon = subprocess.Popen(
            command, env=home.environment(role=None), stdout=output, stderr=output, start_new_session=True
        )
    try:
        until(lambda: ask(home, "ping"), PATIENCE, "the daemon answers")
        yield daemon.pid
    finally:
        processes.stop(daemon, (signal.SIGTERM,))


class DeafHost:
    """A host that reads nothing before `listen()`, and says what it has to say without ever waiting."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [SHIM], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self.received: list[Json] = []
        self._writing: list[threading.Thread] = []
        self._reading = threading.Thread(target=self._read, name="deaf host")

    def say(self, data: bytes) -> None:
        thread = threading.Thread(target=self._write, args=(data,), name="deaf host writes")
        self._writing.append(thread)
        thread.start()

    def listen(self) -> None:
        self._reading.start()

    def close(self) -> None:
        processes.stop(self.process, ())
        for thread in self._writing:
            thread.join()
        if self._reading.ident:
            self._reading.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue

    def _write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except BrokenPipeError:
            return

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.received.append(json.loads(line))


@contextmanager
def deaf_host(home: Home, agent: str) -> Iterator[DeafHost]:
    host = DeafHost(home.environment(agent=agent))
    try:
        host.say(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": OPENING}).encode() + b"\n")
        host.say(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        until(lambda: [row for row in rows(home) if row["shim_pid"] == host.process.pid], PATIENCE, "it is linked")
        yield host
    finally:
        host.close()


LISTS = 3000
"""Requests for the list of tools, with answers of about 3 kB: more than the pipes, the shim and the socket hold."""


def ask_much(host: DeafHost) -> None:
    lines = (json.dumps({"jsonrpc": "2.0", "id": f"list {n}", "method": "tools/list"}) for n in range(LISTS))
    host.say("\n".join(lines).encode() + b"\n")


def cut_row(home: Home, pid: int) -> Callable[[], list[Json]]:
    return lambda: [row for row in rows(home) if row["shim_pid"] == pid and row["state"] == "detached"]


def until_all_are_answered_once(host: DeafHost) -> None:
    def answered() -> bool:
        return len([m for m in list(host.received) if str(m.get("id", "")).startswith("list ")]) >= LISTS

    until(answered, 60.0, "all are answered")
    ids = [m["id"] for m in host.received if "id" in m]
    assert len(ids) == len(set(ids)) == LISTS + 1


def assert_others_are_served(home: Home) -> None:
    with Link(home.place.socket, home.environment(agent="other")) as other:
        other.request("initialize", OPENING, PATIENCE)
        assert other.request("ping") == {}


def test_a_host_that_reads_nothing_is_cut_with_a_reason_and_gets_everything_once_it_reads(
    home: Home, hasty: int
) -> None:
    with deaf_host(home, "deaf") as host, Peak(host.process.pid) as of_shim, Peak(hasty) as of_daemon:
        ask_much(host)
        (row,) = until(cut_row(home, host.process.pid), PATIENCE, "it is cut")
        assert row["cut_reason"] == "its shim took nothing for 1 s"
        assert "is cut: its shim took nothing for 1 s" in home.output()
        assert_others_are_served(home)
        host.listen()
        until_all_are_answered_once(host)
    assert of_shim.grown < SHIM_ROOM
    assert of_daemon.grown < DAEMON_ROOM


def test_a_stopped_shim_is_cut_and_goes_on_when_it_is_continued(home: Home, hasty: int) -> None:
    with deaf_host(home, "stopped") as host, Peak(hasty) as of_daemon:
        host.listen()
        shim = host.process.pid
        with Link(home.place.socket, home.environment(agent="other")) as other:
            other.request("initialize", OPENING)
            ask_much(host)
            until(lambda: len(host.received) > 10, PATIENCE, "answers come")
            os.kill(shim, signal.SIGSTOP)
            try:
                until(cut_row(home, shim), PATIENCE, "it is cut")
                assert other.request("ping") == {}
            finally:
                os.kill(shim, signal.SIGCONT)
        until_all_are_answered_once(host)
    assert of_daemon.grown < DAEMON_ROOM
