"""What system tests look at: a daemon asked over its socket, without a process per look, and models that wait."""

import json
import time
from collections.abc import Callable
from typing import Any

from pursersctl import client
from pursersctl.errors import CommandError
from rig.central import Central
from rig.daemon import Home
from rig.shim import Pending, ShimProcess
from rig.speaker import LEGACY
from rig.wait import until

Json = dict[str, Any]

Converse = Callable[..., ShimProcess]
"""See the fixture `converse`."""

OPENING = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "rig", "version": "1"}}
"""The params of `initialize`."""

WAIT_S = 60  # what each a2a_wait is asked for; no test lasts that long
QUIET = 1.0  # seconds without a request after which nobody is reading any more
PATIENCE = 60.0  # seconds for something that must happen, on a loaded machine


def ask(home: Home, verb: str, **params: object) -> Json:
    """The daemon's answer to a control request. AssertionError if there is none to ask, so that `until` tries again."""
    try:
        answer: Json = json.loads(client.ask(home.place, verb, params))
    except CommandError as error:
        raise AssertionError(str(error)) from error
    return answer


def rows(home: Home) -> list[Json]:
    """What `pursersctl ps` lists."""
    seats: list[Json] = ask(home, "ps")["seats"]
    return seats


def until_listed(home: Home, count: int) -> list[Json]:
    """Wait until the daemon has exactly `count` conversations, each with its link; returns their rows."""

    def attached() -> list[Json] | None:
        found = rows(home)
        return found if len(found) == count and all(row["state"] != "detached" for row in found) else None

    return until(attached, PATIENCE, f"ps lists {count} attached conversations")


def until_blocking(home: Home, waits: int) -> None:
    """Wait until exactly `waits` waits are in progress and cues reach each of their seats."""

    def blocking() -> bool:
        centrals = ask(home, "status")["centrals"]
        waiting = {row["seat"] for row in rows(home) if row["state"] == "waiting" and row["seat"]}
        return (
            sum(central["waits"] for central in centrals) == waits
            and sum(central["seats_listening"] for central in centrals) >= len(waiting) > 0
        )

    until(blocking, PATIENCE, f"{waits} waits are blocking")


def until_quiet(requests: Callable[[], int]) -> None:
    """Wait until nobody reads any more, that is, until the number of requests has not changed for QUIET."""
    seen = [(0.0, -1)]

    def is_quiet() -> bool:
        if seen[0][1] != (count := requests()):
            seen[0] = (time.monotonic(), count)
        return time.monotonic() - seen[0][0] > QUIET

    until(is_quiet, PATIENCE, "no more requests")


def journal(result: Json) -> list[Json]:
    """The journal's own events in the result of a wait: not the cues made from the state of tickets."""
    return [event for event in result["events"] if event.get("seq") is not None]


class Caller:
    """A model that only waits: `arm` calls a2a_wait, `pump` takes a finished one and re-arms with its new_seq."""

    def __init__(self, shim: ShimProcess, cursor: int | None = None) -> None:
        self.shim = shim
        self.cursor = cursor
        self.results: list[Json] = []
        self.wait: Pending[Json] | None = None
        self._ids: list[int] = []

    def arm(self, **arguments: object) -> Pending[Json]:
        """Call a2a_wait from the cursor."""
        since = {} if self.cursor is None else {"since_seq": self.cursor}
        self.wait = self.shim.start_tool("a2a_wait", {"timeout_s": WAIT_S, **since, **arguments})
        self._ids.append(self.wait.id)
        return self.wait

    def take(self, timeout: float = PATIENCE) -> Json:
        """The result of the wait in progress; the next one starts from its cursor."""
        assert self.wait is not None, "a wait was armed"
        result = self.wait.result(timeout)
        assert result["mode"] != "error", result
        self.cursor = result["new_seq"]
        self.results.append(result)
        return result

    def pump(self) -> None:
        """Take the result and wait again, if there is one."""
        if self.wait is not None and self.wait.done:
            self.take()
            self.arm()

    @property
    def events(self) -> list[Json]:
        """The journal events of all results, in order."""
        return [event for result in self.results for event in journal(result)]

    def has_seen(self, tickets: set[str]) -> bool:
        """Whether journal events about all of them came, the wait in progress included."""
        self.pump()
        return tickets <= {event["ticket_id"] for event in self.events}

    def assert_once(self) -> None:
        """No event came twice or out of order, and each request that is not in progress has exactly one answer."""
        seqs = [event["seq"] for event in self.events]
        assert seqs == sorted(set(seqs)), seqs
        assert self.shim.rubbish == []
        for number in self._ids:
            is_current = self.wait is not None and number == self.wait.id and not self.wait.done
            assert len(self.shim.answers(number)) == (0 if is_current else 1), f"answers to {number}"


class Bystander:
    """A conversation whose blocking wait nothing that happens to others may disturb, in a home that others use too."""

    def __init__(self, central: Central, home: Home, board: str) -> None:
        self.home = home
        self._central = central
        self._board = board
        token = central.worker("bystander", board)
        # A long run of the fuzzer must not remind him of his old tickets.
        patient = {"PURSERS_BACKLOG_RESURFACE_INTERVAL_S": "86400"}
        shim = home.shim(home.environment(central.url, token, board, "bystander", extra=patient))
        shim.initialize()
        self._caller = Caller(shim)
        self._arm()
        self._daemon_pid = home.daemon_pid()

    @property
    def wait_id(self) -> int:
        """The JSON-RPC id of the wait in progress."""
        assert self._caller.wait is not None
        return self._caller.wait.id

    def assert_undisturbed(self) -> None:
        """The wait is still the same one, of the same daemon, and returns the next ticket; then there is another wait."""
        wait = self._caller.wait
        assert wait is not None
        assert not wait.done, wait.message(0)
        ticket = self._central.create_ticket(self._board, "for the bystander")
        result = self._caller.take()
        assert [event["ticket_id"] for event in result["events"]] == [ticket]
        assert len(self._caller.shim.answers(wait.id)) == 1
        assert self.home.daemon_pid() == self._daemon_pid
        self._arm()

    def _arm(self) -> None:
        self._caller.arm()
        until(lambda: self._row()["state"] == "waiting", PATIENCE, "the bystander waits")

    def _row(self) -> Json:
        return next(row for row in rows(self.home) if row["shim_pid"] == self._caller.shim.pid)
