"""bridge-stats.json, through shim, daemon and a real Central: what is in it, and that the real bridge writes the same."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from pursersd.ids import agent_id, agent_uri, journal_uri
from pursersd.rules.stats import Changes
from pursersd.rules.stats_document import seat_key
from pursersd.rules.stats_document import text as text_of
from rig.central import ADMIN_SEAT, Central
from rig.daemon import Home
from rig.proxy import Proxy
from rig.shim import BRIDGE, SHIM, Json, ShimProcess
from rig.wait import until
from system.scene import PATIENCE, ask, until_blocking

REFUSED = "no such name"
BOTH = ("bridge", "ours")


def registry(board: str) -> str:
    """A registry with one project, on this board."""
    project = {"board_id": board, "work_dir": "/srv/für", "status": "active"}
    return json.dumps({"schema_version": 1, "projects": {"p": project}})


def compact(value: object) -> int:
    """Bytes of a value as the bridge counts them."""
    return len(json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode())


@dataclass
class Played:
    """One side: the results that its host got, its file, and what was asked of Central."""

    board: str
    stats: Json = field(default_factory=dict)
    text: str = ""
    results: list[tuple[str, Json]] = field(default_factory=list)
    """Each with the seat that the call was for."""
    doctor: Json = field(default_factory=dict)
    doctor_of_schema_3: Json = field(default_factory=dict)

    def returns(self, agent: str) -> list[Json]:
        found: list[Json] = self.stats["model_wait"][seat_key(self.board, agent)]["returns"]
        return found

    def shape(self, value: object = None) -> object:
        """The file without its numbers, times and texts: which keys are where."""
        value = self.stats if value is None else value
        if isinstance(value, dict):
            return {key.replace(self.board, "<board>"): self.shape(found) for key, found in value.items()}
        return [self.shape(found) for found in value] if isinstance(value, list) else type(value).__name__


class Side:
    """A conversation with the bridge or with us, on a board of its own behind a proxy of its own."""

    def __init__(self, name: str, central: Central, proxy: Proxy, home: Home) -> None:
        self.name = name
        self.board = f"{name}-stats".rjust(12, "x")
        self.home = home
        self._central = central
        self._proxy = proxy
        self._file = home.folder / "bridge-stats.json"
        central.create_board(self.board, {"ann": "member"})
        self._admin("board_state_update", key="project_registry", value=registry(self.board))
        environment = home.environment(proxy.url, central.worker("ann", self.board), self.board, "ann")
        self.process = ShimProcess([SHIM if name == "ours" else BRIDGE], environment)
        self.played = Played(self.board)

    def play(self) -> Played:
        """A read, a wait without an event, one with, one that fails, one that polls."""
        self.process.initialize()
        self.process.call_tool("project_registry_get")
        self._wait("ann", timeout_s=1)
        self._wait_for_a_ticket()
        self._wait(REFUSED, timeout_s=1, agent_name=REFUSED)
        self._deny()
        self._wait("ann", timeout_s=2, since_seq=self._central.head(self.board))
        if self.name == "ours":
            assert self.home.ctl("stop").returncode == 0
        self.process.close()  # the bridge would go on writing
        self.played.text = self._file.read_text(encoding="utf-8")
        self.played.stats = json.loads(self.played.text)
        self.played.doctor = self._doctor()
        self._file.write_text(json.dumps({**self.played.stats, "schema_version": 3}))
        self.played.doctor_of_schema_3 = self._doctor()
        return self.played

    def _wait(self, agent: str, **arguments: object) -> None:
        self.played.results.append((agent, self.process.call_tool("a2a_wait", arguments, timeout=PATIENCE)))

    def _wait_for_a_ticket(self) -> None:
        mark = self._proxy.mark()
        wait = self.process.start_tool("a2a_wait", {"timeout_s": 3, "since_seq": self._central.head(self.board)})
        if self.name == "ours":
            until_blocking(self.home, 1)
        else:  # it reads once more, in small pages, when its stream is open
            until(lambda: self._small_pages(mark), PATIENCE, "the bridge blocks")
        ticket = self._central.create_ticket(self.board, "für ann", target_url="p/stats")
        self.played.results.append(("ann", wait.result(PATIENCE)))
        self._admin("ticket_cancel", ticket_id=ticket, reason="It was only for this wait.")

    def _small_pages(self, mark: int) -> bool:
        return any(seen.arguments.get("limit") == 100 for seen in self._proxy.seen("board_catchup", mark))

    def _deny(self) -> None:
        """From now on Central gives no subscription to this seat."""
        self._proxy.deny(journal_uri(self.board))
        self._proxy.deny(agent_uri(self.board, agent_id(self.board, self._central.principal_id("ann"), "ann")))
        self._proxy.cut_streams()

    def _admin(self, tool: str, **arguments: object) -> None:
        self._central.call(self._central.admin, tool, board_id=self.board, agent_name=ADMIN_SEAT, **arguments)

    def _doctor(self) -> Json:
        """What `registry_doctor`, which reads the bridge's file, says of it."""
        token = self.home.folder / "doctor.jwt"
        token.write_text(self._central.admin)
        where = ["--central-url", self._central.url, "--home-board", self.board, "--token-path", str(token)]
        done = subprocess.run(
            [sys.executable, "-m", "registry_doctor", "--json", *where],
            env=self.home.environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        token.unlink()
        checks = json.loads(done.stdout)["checks"]
        (found,) = [check for check in checks if check["check"] == "bridge-stats"]
        return {**found, "detail": found["detail"].replace(str(self.home.folder), "<home>")}


@pytest.fixture(scope="module")
def played(central: Central) -> Iterator[dict[str, Played]]:
    """The same script, played with the real bridge and with us at the same time."""
    with contextlib.ExitStack() as stack:
        sides = []
        for name in BOTH:
            proxy, home = stack.enter_context(Proxy(central.port)), stack.enter_context(Home())
            side = Side(name, central, proxy, home)
            stack.callback(side.process.close)
            sides.append(side)
        with ThreadPoolExecutor(len(sides)) as stages:
            yield dict(zip(BOTH, stages.map(Side.play, sides), strict=True))


@pytest.mark.parametrize("side", BOTH)
def test_every_result_is_counted_with_the_bytes_that_the_host_got(played: dict[str, Played], side: str) -> None:
    found = played[side]
    for agent in ("ann", REFUSED):
        results = [result for name, result in found.results if name == agent]
        returns = found.returns(agent)
        assert [one["response_bytes"] for one in returns] == [compact(result) for result in results]
        (hours,) = [found.stats["model_wait"][seat_key(found.board, agent)]["hours"]]
        assert sum(hour["returns"] for hour in hours.values()) == len(results)
        assert sum(hour["response_bytes"] for hour in hours.values()) == sum(compact(result) for result in results)


def test_both_files_have_the_same_returns(played: dict[str, Played]) -> None:
    for agent in ("ann", REFUSED):
        seen = [[(one["outcome"], one["mode"], one["reason"]) for one in played[side].returns(agent)] for side in BOTH]
        assert seen[0] == seen[1]
    assert [one["outcome"] for one in played["ours"].returns("ann")] == ["timeout", "cue", "timeout"]
    assert [one["mode"] for one in played["ours"].returns("ann")] == ["push", "push", "poll"]
    assert [one["outcome"] for one in played["ours"].returns(REFUSED)] == ["error"]


def test_both_files_have_the_same_keys(played: dict[str, Played]) -> None:
    bridge, ours = (played[side].shape() for side in BOTH)
    assert isinstance(bridge, dict)
    assert isinstance(ours, dict)
    # Which of Central's tools are used for the same purpose is each one's own business.
    for found in (bridge, ours):
        for day in found["days"].values():
            for seat in day["seats"].values():
                seat["calls"] = seat["calls"]["board_join"]
    assert ours == bridge


def test_the_same_call_counts_the_same(played: dict[str, Played]) -> None:
    answers = []
    for side in BOTH:
        found = played[side]
        (day,) = found.stats["days"].values()
        calls = day["seats"][seat_key(found.board, "ann")]["calls"]
        reads = calls["board_state_get"]
        answers.append((reads["request_bytes"] / reads["count"], reads["response_bytes"] / reads["count"]))
        seat = day["seats"][seat_key(found.board, "ann")]
        for total in ("request_bytes", "response_bytes"):
            assert seat[total] == sum(tool[total] for tool in calls.values())
    assert answers[0] == answers[1]


def test_each_wait_of_a_joined_seat_is_a_poll_cycle(played: dict[str, Played]) -> None:
    for side in BOTH:
        (cycles,) = played[side].stats["poll_cycles"].values()
        assert (cycles["agent_name"], len(cycles["samples"])) == ("ann", 3)
        assert all(sample["response_bytes"] > 0 for sample in cycles["samples"])
        assert cycles["latest_response_bytes"] == cycles["samples"][-1]["response_bytes"]


def test_who_is_polled_is_listed_with_the_reason(played: dict[str, Played]) -> None:
    for side in BOTH:
        noted = {entry["agent_name"]: entry["reason"] for entry in played[side].stats["push_unavailable"].values()}
        assert noted[REFUSED] == "push_unavailable:central"
        assert "denied" in noted["ann"]


def test_the_text_is_sorted_compact_and_one_line(played: dict[str, Played]) -> None:
    for side in BOTH:
        found = played[side]
        again = json.dumps(found.stats, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        assert found.text == again + "\n"


def test_the_doctor_says_the_same_of_both(played: dict[str, Played]) -> None:
    """It refuses schema 4, the bridge's own (D10); that number alone is in the way."""
    assert played["ours"].doctor == played["bridge"].doctor
    assert played["ours"].doctor["status"] == "WARN"
    assert played["ours"].doctor_of_schema_3["status"] == played["bridge"].doctor_of_schema_3["status"] == "PASS"


# --- what happens to the file -----------------------------------------------------------------------------------------


def content(file: Path) -> Json:
    """The file; AssertionError while there is none, so that `until` tries again."""
    assert file.exists()
    found: Json = json.loads(file.read_text(encoding="utf-8"))
    return found


def reads(stats: Json, board: str, agent: str) -> int:
    """How often a seat read the registry."""
    return sum(
        day["seats"].get(seat_key(board, agent), {}).get("calls", {}).get("board_state_get", {}).get("count", 0)
        for day in stats["days"].values()
    )


def read_registry(process: ShimProcess, times: int = 1) -> None:
    """Ask for the registry: each time one call to Central."""
    for _ in range(times):
        process.call_tool("project_registry_get")


@pytest.fixture
def board(central: Central, board: str) -> str:
    """A fresh board, with a registry."""
    admin = {"board_id": board, "agent_name": ADMIN_SEAT}
    central.call(central.admin, "board_state_update", key="project_registry", value=registry(board), **admin)
    return board


def started(home: Home, central: Central, board: str, agent: str, *, bridge: bool = False, **more: str) -> ShimProcess:
    environment = home.environment(central.url, central.worker("ann", board), board, agent, extra=more)
    process = home.shim(environment) if not bridge else ShimProcess([BRIDGE], environment)
    process.initialize()
    return process


def test_bridge_and_daemon_may_write_the_same_file_at_once(central: Central, home: Home, board: str) -> None:
    file = home.folder / "bridge-stats.json"
    ours = started(home, central, board, "of-daemon")
    bridge = started(home, central, board, "of-bridge", bridge=True)
    try:
        with ThreadPoolExecutor(2) as both:
            list(both.map(read_registry, (ours, bridge), (8, 8)))
        until(lambda: reads(content(file), board, "of-daemon") > 0, PATIENCE, "the daemon writes")
        read_registry(bridge)
        read_registry(ours)
        assert home.ctl("stop").returncode == 0
        assert reads(content(file), board, "of-daemon") == 9
        assert reads(content(file), board, "of-bridge") >= 9  # it also reads on its own
    finally:
        bridge.close()


def test_two_homes_do_not_see_each_other(central: Central, board: str) -> None:
    with Home() as one, Home() as other:
        for home, agent in ((one, "of-one"), (other, "of-other")):
            read_registry(started(home, central, board, agent, PURSERS_BRIDGE_STATS=""))
            assert home.ctl("stop").returncode == 0
        for home, agent in ((one, "of-one"), (other, "of-other")):
            file = home.folder / "state" / "bridge-stats.json"
            seats = [seat["agent_name"] for day in content(file)["days"].values() for seat in day["seats"].values()]
            assert seats == [agent]
            assert not (home.folder / "bridge-stats.json").exists()


def test_pursersctl_shows_what_is_not_written_yet_and_clears_a_fallback_that_is_over(
    central: Central, home: Home, board: str, proxy: Proxy
) -> None:
    proxy.deny(journal_uri(board))
    environment = home.environment(proxy.url, central.worker("ann", board), board, "ann")
    shim = home.shim(environment)
    shim.initialize()
    polled = shim.call_tool("a2a_wait", {"timeout_s": 1})
    assert polled["mode"] == "poll"
    (seat,) = stats_of(home)
    assert (seat["seat"], seat["hour"]["timeouts"], seat["hour"]["response_bytes"]) == ("ann", 1, compact(polled))
    assert "denied" in seat["fallback"]
    assert "gets events by polling" in home.ctl("stats").stdout
    proxy.deny(journal_uri(board), on=False)
    assert shim.call_tool("a2a_wait", {"timeout_s": 1})["mode"] == "push"
    (seat,) = stats_of(home)
    assert (seat["hour"]["timeouts"], seat["fallback"]) == (2, None)
    assert seat["tools"]["board_catchup"] >= 2
    assert home.ctl("stop").returncode == 0
    assert content(home.folder / "bridge-stats.json")["push_unavailable"] == {}
    assert stats_of(home)[0]["hour"] == seat["hour"]


def stats_of(home: Home) -> list[Json]:
    done = home.ctl("stats", "--json")
    assert done.returncode == 0, done.stderr
    seats: list[Json] = json.loads(done.stdout)["seats"]
    return seats


def test_a_killed_daemon_leaves_a_whole_file_and_the_next_one_goes_on(central: Central, home: Home, board: str) -> None:
    file = home.folder / "bridge-stats.json"
    shim = started(home, central, board, "ann")
    read_registry(shim, 3)
    until(lambda: reads(content(file), board, "ann") == 3, PATIENCE, "the daemon writes")
    read_registry(shim)
    os.kill(home.daemon_pid(), signal.SIGKILL)
    assert reads(content(file), board, "ann") == 3
    read_registry(shim, 2)  # the shim starts the next one
    assert home.ctl("stop").returncode == 0
    assert 5 <= reads(content(file), board, "ann") <= 6


@pytest.mark.skipif(not hasattr(psutil.Process, "rlimit"), reason="only Linux limits a process from outside")
def test_a_full_disk_fails_no_call_and_loses_nothing(central: Central, home: Home, board: str) -> None:
    """Files of the daemon may not get longer than the stats file must become; its log has room."""
    file = home.folder / "bridge-stats.json"
    file.write_bytes(large())
    before = file.read_bytes()
    shim = started(home, central, board, "ann")
    daemon: Any = psutil.Process(home.daemon_pid())
    limits = daemon.rlimit(psutil.RLIMIT_FSIZE)
    daemon.rlimit(psutil.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    read_registry(shim)
    until(lambda: warnings(home) == ["stats_unwritten"], PATIENCE, "the daemon warns")
    assert shim.call_tool("a2a_wait", {"timeout_s": 1})["timed_out"]
    assert file.read_bytes() == before
    assert [seat["seat"] for seat in stats_of(home) if seat["board"] == board] == ["ann"]
    daemon.rlimit(psutil.RLIMIT_FSIZE, limits)
    assert home.ctl("stop").returncode == 0
    assert reads(content(file), board, "ann") == 1
    log = (home.folder / "log" / "pursersd.log").read_text()
    assert log.count(f"pursersd.state.stats: {file} cannot be written") == 1


def warnings(home: Home) -> list[str]:
    return [warning["code"] for warning in ask(home, "status")["warnings"]]


def large() -> bytes:
    """A file of about 200 KiB."""
    changes = Changes()
    for number in range(200):
        for tool in range(8):
            changes.called(datetime.now(UTC), "b", f"agent-{number}", f"t{tool}", request_bytes=1, response_bytes=1)
    return text_of(changes.document)
