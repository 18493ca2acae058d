"""Who plays in the demonstration: a private daemon with a local board, and hosts with one conversation each."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from rig import processes
from rig.central import ticket_fields
from rig.daemon import CTL_TIMEOUT, Home
from rig.plain import PlainClient
from rig.shim import Json, Pending, ShimProcess
from rig.wait import until

ROOT = Path(__file__).parent.parent
BOARD = "demo"
OWNER = "local-owner"
"""The seat of the local board's owner."""

NAMES = {"ada": "auto", "grace": "auto", "linus": "legacy"}
"""Seat names, and the mode of each host's SDK client."""

WAIT_S = 50  # what each a2a_wait is asked for; the profile of the default host allows it
READY_TIMEOUT = 30.0  # seconds until a host has listed the tools
UP_TIMEOUT = 120.0  # seconds for `pursersctl local up`; it takes three


class Conversation:
    """One host process with its conversation, and the wait that it is in."""

    def __init__(self, name: str, environment: dict[str, str]) -> None:
        self.name = name
        self.wait: Pending[Json] | None = None
        self._cursor: int | None = None
        self.host = ShimProcess([sys.executable, "-m", "bench.host", NAMES[name]], environment)

    def ready(self) -> dict[str, Any]:
        """What the host says once it has the tools. AssertionError if it does not come to that."""
        said = until(self._said_ready, READY_TIMEOUT, f"{self.name}'s host has the tools")
        return {**said["params"], "after_s": time.perf_counter() - self.host.started_at}

    def start_wait(self) -> None:
        """Call a2a_wait from the last cursor."""
        since = {} if self._cursor is None else {"since_seq": self._cursor}
        self.wait = self.host.start("a2a_wait", {"timeout_s": WAIT_S, **since})

    def woken(self, ticket_id: str) -> float:
        """Wait for the answer, which must be about the ticket; returns its time.perf_counter()."""
        assert self.wait is not None, "a wait was started"
        result = self.wait.result(WAIT_S + 10)
        self._cursor = int(result["new_seq"])
        seen = [event.get("ticket_id") for event in result["events"]]
        assert ticket_id in seen, f"{self.name} woke, but not for {ticket_id}: {result}"
        assert self.wait.answered_at is not None, "it was answered"
        return self.wait.answered_at

    def take_early(self) -> bool:
        """If the wait returned before anything happened, take its cursor and wait again."""
        if self.wait is None or not self.wait.done:
            return False
        self._cursor = int(self.wait.result()["new_seq"])
        self.start_wait()
        return True

    def _said_ready(self) -> Json | None:
        assert self.host.process.poll() is None, f"{self.name}'s host ended: {self.host.stderr[-2000:]}"
        return next((said for said in self.host.notifications if said["method"] == "ready"), None)


class Cast:
    """Everything that runs. `close()` ends it all and removes its files; `keep()` makes that do nothing."""

    def __init__(self) -> None:
        self.home = Home()
        self.board: dict[str, Any] = {}
        """What `pursersctl local up` said of the board's Central."""
        self.conversations: dict[str, Conversation] = {}
        self._kept = False

    def open_board(self) -> None:
        """As a person would who has no Central: it starts the daemon, too."""
        self.board = json.loads(self._ctl("local", "up", "--board", BOARD, "--json", timeout=UP_TIMEOUT))["local"]

    def create_ticket(self, title: str) -> str:
        """Straight at Central, as the board's owner, since there may be no daemon; returns its id."""
        token = Path(self.board["folder"], "instance", "admin.jwt").read_text().strip()
        client = PlainClient(self.board["port"], token)
        try:
            made = client.tool("ticket_create", board_id=BOARD, agent_name=OWNER, title=title, **ticket_fields(BOARD))
        finally:
            client.close()
        return str(made["ticket"]["ticket_id"])

    def streams(self) -> int:
        """How many subscription streams the daemon has."""
        return sum(central["streams"] for central in self.home.status()["centrals"])

    def settings(self, name: str) -> dict[str, str]:
        """The environment of a host's server entry."""
        return {
            "PURSERSD_HOME": str(self.home.folder),
            "ONBOARD_AGENT_NAME": name,
            "PURSERS_ROLE": "worker",
        }

    def start_hosts(self) -> None:
        """Start all hosts at once."""
        path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
        for name in NAMES:
            extra = {**self.settings(name), "PYTHONPATH": path}
            self.conversations[name] = Conversation(name, self.home.environment(role=None, extra=extra))

    def start_waits(self) -> None:
        """Let every conversation call a2a_wait; returns when the daemon says that each of them is waiting."""
        for conversation in self.conversations.values():
            conversation.start_wait()
        until(self._all_wait, 30, "every conversation is waiting")

    def seats(self) -> dict[str, dict[str, Any]]:
        """The rows of `pursersctl ps` by seat."""
        return {row["seat"]: row for row in self.home.ps()}

    def close_host(self, name: str) -> None:
        """Make sure that a host has ended and forget its conversation."""
        self.conversations.pop(name).host.close()

    def keep(self) -> None:
        """Leave daemon and board alone from now on."""
        self._kept = True

    def close(self) -> None:
        """End every host; unless kept, also daemon and board, and remove their folder."""
        for name in list(self.conversations):
            self.close_host(name)
        if not self._kept:
            self.home.close()

    def left_behind(self) -> str:
        """What is still there although it should not be; empty if all is well."""
        folder = str(self.home.folder) if self.home.folder.exists() else ""
        return "; ".join(filter(None, (folder, processes.describe(processes.of_this_run()))))

    def _all_wait(self) -> bool:
        early = [conversation.take_early() for conversation in self.conversations.values()]
        seats = self.seats()
        waiting = [
            seats[name]["state"] == "waiting" and seats[name]["delivery"] == "push"
            for name in self.conversations
            if name in seats
        ]
        return not any(early) and len(waiting) == len(self.conversations) and all(waiting)

    def _ctl(self, *words: str, timeout: float = CTL_TIMEOUT) -> str:
        done = self.home.ctl(*words, timeout=timeout)
        assert done.returncode == 0, f"pursersctl {words[:2]} failed: {done.stdout}{done.stderr}"
        return done.stdout
