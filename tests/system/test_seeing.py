"""What is seen of a daemon at work with a real Central: events, latency, what is held, who is behind, whom the log means."""

import json
from typing import Any

from pursersd import api
from rig.central import Central
from rig.daemon import Home
from rig.wait import until
from system.model import Model
from system.scene import PATIENCE, Caller, Converse, Json, ask, rows, until_blocking
from unit import openmetrics
from unit.ctl_following import Running, running


def happened(following: Running, kind: str, **fields: object) -> Json:
    """Wait for an event of this kind with these fields."""

    def found() -> Json | None:
        events: list[Json] = [json.loads(line) for line in following.read()]
        fitting = [e for e in events if e["event"] == kind and all(e.get(k) == v for k, v in fields.items())]
        assert fitting, events[-3:]
        return fitting[-1]

    return until(found, PATIENCE, f"{kind} with {fields}")


def row_of(home: Home, seat: str) -> Json:
    return next(row for row in rows(home) if row["seat"] == seat)


def requests(home: Home) -> int:
    """How many tool calls went to Central."""
    return sum(central["requests"] for central in ask(home, "status")["centrals"])


def test_a_daemon_at_work_is_seen_and_looking_asks_central_nothing(
    central: Central, home: Home, board: str, converse: Converse
) -> None:
    token = central.worker("ann", board)
    seer = Caller(converse("seer"))
    other = Caller(converse("other", subject="bob"))
    other.arm(timeout_s=1)
    other.take()
    with running(home, "--json") as following:
        first = json.loads(following.says(1)[0])
        assert (first["event"], len(first["seats"])) == ("snapshot", 2)
        identity = row_of_shim(home, seer)["conversation"]

        ticket = woken_by_a_cue(central, home, board, seer, following)
        happened(following, "state", conversation=identity, state="waiting", before="working")
        happened(following, "state", conversation=identity, state="idle", before="working", tool="a2a_wait")

        Model(central, board, token, "seer").claim(ticket)
        seer.arm(timeout_s=1)
        seer.take()
        assert happened(following, "lease", conversation=identity, change="kept")["ticket"] == ticket
        assert row_of(home, "other")["lag"] is not None
        until(lambda: row_of(home, "other")["lag"] > 0, PATIENCE, "the other one has not read that")
        assert row_of(home, "seer")["wakes"] >= 1

        before = requests(home)
        shown = home.ctl("ps", "--wide", "--seat", "se*").stdout
        assert ticket in shown
        assert "other" not in shown.splitlines()[1]
        assert_counted(home.status()["latency"], waits=len(seer.results) + len(other.results))
        assert_measured(home.ctl("metrics").stdout, board)
        assert requests(home) == before, "looking asked Central"

        assert home.ctl("restart").returncode == 0
        again = happened(following, "snapshot", epoch=first["epoch"] + 1)
        assert again["version"] == first["version"]
    assert_logged(home, identity)


def woken_by_a_cue(central: Central, home: Home, board: str, seer: Caller, following: Running) -> str:
    """Create tickets until one comes while the wait is past its entry, so that a cue and not the entry brings it."""
    for number in range(20):
        seer.arm()
        until_blocking(home, 1)
        ticket = central.create_ticket(board, f"to be seen {number}")
        seer.take()
        woke = happened(following, "wake", events=len(seer.results[-1]["events"]), reason=seer.results[-1]["reason"])
        assert (woke["tool"], woke["seat"], woke["board"]) == ("a2a_wait", "seer", board)
        if woke["wake_s"] is not None:
            assert 0 < woke["wake_s"] <= woke["waited_s"]
            return ticket
    raise AssertionError("no wait was ended by a cue")


def row_of_shim(home: Home, caller: Caller) -> Json:
    return next(row for row in rows(home) if row["shim_pid"] == caller.shim.pid)


def assert_counted(latency: list[dict[str, Any]], *, waits: int) -> None:
    found = {(row["kind"], row["tool"]): row for row in latency}
    assert set(found) == {("wait", "a2a_wait"), ("wake", "a2a_wait")}
    wake, wait = found["wake", "a2a_wait"], found["wait", "a2a_wait"]
    assert wake["count"] == 1
    assert wait["count"] == waits
    assert 0 < wake["p50_s"] <= wake["p95_s"] <= wake["p99_s"] <= wake["max_s"] <= wait["max_s"]
    assert api.LatencyRow(**wake).host == "rig"


def assert_measured(text: str, board: str) -> None:
    families = openmetrics.read(text)
    labels = (("tool", "a2a_wait"), ("host", "rig"))
    assert families["pursersd_wake_latency_seconds"].samples["_count", labels] == 1
    assert families["pursersd_leases"].samples["", (("state", "kept"),)] == 1
    assert board not in text
    assert "seer" not in text


def assert_logged(home: Home, identity: str) -> None:
    by_id = home.ctl("logs", "--conversation", identity, "-n", "1000").stdout
    lines = [line for line in by_id.splitlines() if line[:4].isdigit()]
    assert any("began" in line for line in lines)
    assert any("lease of" in line and "is kept" in line for line in lines)
    assert all(identity in line for line in lines)
