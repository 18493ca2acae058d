"""Who plays in the demonstration: a Central with one board, a private daemon, and hosts with one conversation each."""

import os
import sys
import time
from pathlib import Path
from typing import Any

from rig import processes
from rig.central import Central
from rig.daemon import Home
from rig.shim import Json, Pending, ShimProcess
from rig.wait import until

ROOT = Path(__file__).parent.parent
BOARD = "demo"
SUBJECT = "demo"
NAMES = {"ada": "auto", "grace": "auto", "linus": "legacy"}
"""Seat names, and the mode of each host's SDK client."""

WAIT_S = 50  # what each a2a_wait is asked for; the profile of the default host allows it
READY_TIMEOUT = 30.0  # seconds until a host has listed the tools
TOKEN_LIFETIME = 30 * 24 * 3600  # seconds; matters only if the demonstration is kept


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
        self.central = Central()
        self.home = Home()
        self.conversations: dict[str, Conversation] = {}
        self._kept = False

    @property
    def token_file(self) -> Path:
        """Where the conversations' token lies; no output ever shows the token itself."""
        return self.central.folder / "worker.token"

    def open_central(self) -> None:
        """Start Central, found the board, admit the principal that all conversations share."""
        self.central.init()
        self.central.start()
        self.central.create_board(BOARD, {SUBJECT: "member"})
        token = self.central.mint(SUBJECT, "board:read board:write", BOARD, TOKEN_LIFETIME)
        descriptor = os.open(self.token_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(token)

    def settings(self, name: str) -> dict[str, str]:
        """The environment of a host's server entry."""
        return {
            "PURSERSD_HOME": str(self.home.folder),
            "ONBOARD_CENTRAL_URL": self.central.url,
            "ONBOARD_CENTRAL_TOKEN_FILE": str(self.token_file),
            "ONBOARD_BOARD_ID": BOARD,
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

    def start_daemon(self) -> None:
        """As a person would. AssertionError with the reason if it does not start."""
        self._ctl("start")

    def stop_daemon(self) -> None:
        """As a person would."""
        self._ctl("stop")

    def seats(self) -> dict[str, dict[str, Any]]:
        """The rows of `pursersctl ps` by seat."""
        return {row["seat"]: row for row in self.home.ps()}

    def close_host(self, name: str) -> None:
        """Make sure that a host has ended and forget its conversation."""
        self.conversations.pop(name).host.close()

    def keep(self) -> None:
        """Leave Central and daemon alone from now on."""
        self._kept = True

    def close(self) -> None:
        """End every host; unless kept, also daemon and Central, and remove their folders."""
        for name in list(self.conversations):
            self.close_host(name)
        if not self._kept:
            self.home.close()
            self.central.close()

    def left_behind(self) -> str:
        """What is still there although it should not be; empty if all is well."""
        folders = [str(folder) for folder in (self.home.folder, self.central.folder) if folder.exists()]
        running = processes.describe(processes.of_this_run())
        return "; ".join([*folders, *([running] if running else [])])

    def _all_wait(self) -> bool:
        early = [conversation.take_early() for conversation in self.conversations.values()]
        seats = self.seats()
        waiting = [
            seats[name]["state"] == "waiting" and seats[name]["delivery"] == "push"
            for name in self.conversations
            if name in seats
        ]
        return not any(early) and len(waiting) == len(self.conversations) and all(waiting)

    def _ctl(self, verb: str) -> None:
        done = self.home.ctl(verb)
        assert done.returncode == 0, f"pursersctl {verb} failed: {done.stdout}{done.stderr}"
