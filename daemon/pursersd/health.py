"""What an operator should know: a stable code, since when, what it means, and what to do. A pure view of the daemon's state.

This is the one place that decides: `status`, `ps` and the log show what it says. docs/reliability.md lists the codes.
"""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from pursersd.api import POLL_WANTED, CentralStatus, SeatRow, StatsFile, Warning

EXPIRES_SOON = 300.0
"""Seconds before its end from which a credential is warned of (contracts §6.6)."""

CLOCK_WRONG = 60.0
"""Seconds by which our clock may differ from Central's."""

WOKE_LATELY = 60.0
"""Seconds that a sleep of the machine is shown."""

REPLACED_LATELY = 3600.0
"""Seconds that it is shown that another Central answers."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the daemon knows of itself and of the machine that it runs on."""

    descriptors: int = 0
    descriptor_limit: int = 0
    refused_s: float | None = None
    """Seconds since a conversation was refused for lack of descriptors, if that was lately."""
    log_error: str | None = None
    """Why the log cannot be written."""
    log_lost: int = 0
    log_error_s: float = 0.0
    suspensions: int = 0
    woke_s: float | None = None
    """Seconds since the machine woke from a sleep, or somebody let us go on."""


def warnings(
    centrals: Sequence[CentralStatus],
    rows: Sequence[SeatRow],
    stats: Sequence[StatsFile] = (),
    machine: Machine | None = None,
) -> list[Warning]:
    """The warnings that the present state calls for, the most urgent first."""
    of_machine = _of_machine(machine or Machine())
    return [*_of_centrals(centrals), *of_machine, *_misconfigured(rows), *_of_seats(rows), *_of_stats(stats)]


def changes(before: Sequence[Warning], now: Sequence[Warning]) -> tuple[list[Warning], list[Warning]]:
    """What began and what ended, for the log. What a warning says may change while it stays the same one."""
    known, present = {_identity(w) for w in before}, {_identity(w) for w in now}
    return [w for w in now if _identity(w) not in known], [w for w in before if _identity(w) not in present]


_Identity = tuple[str, str]


class Since:
    """Since when those warnings are there whose cause does not tell it: since it was seen first. The daemon looks all the
    time (app.HEALTH_LOOK), so that is hardly later than it began."""

    CODES = frozenset({"configuration_wrong", "settings_wrong", "board_polled", "seat_shared"})

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: dict[_Identity, float] = {}

    def told(self, present: Sequence[Warning]) -> list[Warning]:
        """All that there are at this moment, with the time for which they have been there."""
        now = self._clock()
        known = self._began
        self._began = {(key := _identity(w)): known.get(key, now) for w in present if w.code in self.CODES}
        return [
            msgspec.structs.replace(w, since_s=round(now - self._began[_identity(w)], 3)) if w.code in self.CODES else w
            for w in present
        ]


_ONE_OF_SEVERAL = frozenset({"configuration_wrong", "settings_wrong"})
"""What the text says after the colon is what they are about, and no detail."""


def _identity(warning: Warning) -> _Identity:
    about, _, detail = warning.text.partition(": ")
    without_count = re.sub(r"^\d+( of \d+)?", "", about)
    return warning.code, f"{without_count}: {detail}" if warning.code in _ONE_OF_SEVERAL else without_count


def _of_centrals(centrals: Sequence[CentralStatus]) -> list[Warning]:
    return [warning for central in centrals for warning in (*_unserved(central), *_doubtful(central))]


def _unserved(central: CentralStatus) -> list[Warning]:
    where = f"{central.url} ({central.credential})"
    if central.state == "refused":
        return [
            Warning(
                code="credential_refused",
                since_s=central.trouble_s or 0.0,
                text=f"Central {where} does not accept the credential: {central.detail}",
                action="Get a new token from the board's admin and set ONBOARD_CENTRAL_TOKEN or its file.",
            )
        ]
    if central.state == "unreachable":
        return [
            Warning(
                code="central_unreachable",
                since_s=central.trouble_s or 0.0,
                text=f"Central {where} does not answer: {central.detail}",
                action="Start Central or repair the way to it. Waits go on by themselves when it answers again.",
            )
        ]
    return []


def _doubtful(central: CentralStatus) -> list[Warning]:
    where = f"{central.url} ({central.credential})"
    found = []
    if central.replaced_s is not None and central.replaced_s < REPLACED_LATELY:
        found.append(
            Warning(
                code="central_replaced",
                since_s=central.replaced_s,
                text=f"Another Central than before answers at {where}: waits went on at the end of its journals.",
                action="If that was not meant, correct ONBOARD_CENTRAL_URL, or set ONBOARD_CENTRAL_INSTANCE_ID.",
            )
        )
    if central.expires_s is not None and 0 < central.expires_s < EXPIRES_SOON and central.state != "refused":
        found.append(
            Warning(
                code="credential_expires",
                since_s=EXPIRES_SOON - central.expires_s,
                text=f"The credential for Central {where} expires in less than {EXPIRES_SOON / 60:.0f} minutes.",
                action="Get a new token from the board's admin and set ONBOARD_CENTRAL_TOKEN or its file.",
            )
        )
    if abs(central.clock_ahead_s) > CLOCK_WRONG:
        side = "ahead of" if central.clock_ahead_s > 0 else "behind"
        found.append(
            Warning(
                code="clock_differs",
                since_s=central.clock_wrong_s,
                text=f"The clock of this machine is {side} that of Central {where}: {abs(central.clock_ahead_s):.0f} s",
                action="Set the clock that is wrong. Offers and waits do not depend on it; a credential's times do.",
            )
        )
    return found


def _of_machine(machine: Machine) -> list[Warning]:
    found = []
    if machine.refused_s is not None:
        found.append(
            Warning(
                code="descriptors_short",
                since_s=machine.refused_s,
                text=f"New conversations are refused: {machine.descriptors} of {machine.descriptor_limit} file descriptors "
                "are in use, and the rest is kept for those that are there.",
                action="Close chats that nobody uses, or allow more (ulimit -n, LimitNOFILE=) and run: pursersctl restart",
            )
        )
    if machine.log_error is not None:
        found.append(
            Warning(
                code="log_unwritable",
                since_s=machine.log_error_s,
                text=f"The log cannot be written: {machine.log_error}; {machine.log_lost} lines are lost",
                action="Make room, or make its folder writable; pursersctl status names the file. No restart is needed.",
            )
        )
    if machine.woke_s is not None and machine.woke_s < WOKE_LATELY:
        found.append(
            Warning(
                code="time_passed",
                since_s=machine.woke_s,
                text="Time passed without the daemon: the machine slept, or somebody stopped it. All connections are new.",
                action="Nothing: what was missed is read by itself.",
            )
        )
    return found


def _misconfigured(rows: Sequence[SeatRow]) -> list[Warning]:
    since: dict[str, float] = {}
    for row in rows:
        if row.problem is not None:
            since[row.problem] = max(since.get(row.problem, 0.0), row.age_s)
    return [
        Warning(
            code="settings_wrong",
            since_s=since_s,
            text=f"A conversation cannot work: {problem}",
            action="Repair its entry in the host's configuration, or the file that it names; pursersctl ps shows whose it is.",
        )
        for problem, since_s in sorted(since.items())
    ]


def _of_seats(rows: Sequence[SeatRow]) -> list[Warning]:
    return [*_polled(rows), *_shared(rows)]


def _polled(rows: Sequence[SeatRow]) -> list[Warning]:
    since: dict[tuple[str, str], float] = {}
    for row in rows:
        if row.delivery == "poll" and row.poll_reason != POLL_WANTED:
            key = (row.board or "", row.poll_reason or "")
            since[key] = max(since.get(key, 0.0), row.since_s)
    return [
        Warning(
            code="board_polled",
            since_s=since_s,
            text=f"Board {board} is polled instead of pushed: {reason}",
            action="Remove the cause; the next wait tries push again.",
        )
        for (board, reason), since_s in sorted(since.items())
    ]


def _shared(rows: Sequence[SeatRow]) -> list[Warning]:
    since: dict[tuple[str, str, int], float] = {}
    for row in rows:
        if row.shared_by > 1:
            key = (row.board or "", row.seat or "", row.shared_by)
            since[key] = min(since.get(key, row.age_s), row.age_s)
    return [
        Warning(
            code="seat_shared",
            since_s=since_s,
            text=f"{count} conversations use the seat {seat} on {board}: to Central they are one agent.",
            action="Give each its own ONBOARD_AGENT_INSTANCE if that is not meant.",
        )
        for (board, seat, count), since_s in sorted(since.items())
    ]


def _of_stats(files: Sequence[StatsFile]) -> list[Warning]:
    return [
        Warning(
            code="stats_unwritten",
            since_s=file.trouble_s or 0.0,
            text=f"The statistics cannot be written to {file.path}: {file.trouble}. They are kept in memory meanwhile.",
            action="Make room there and let the folder be yours; it is tried again by itself. "
            "PURSERS_BRIDGE_STATS in a host's configuration names another file.",
        )
        for file in files
        if file.trouble is not None
    ]
