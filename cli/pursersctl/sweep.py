"""`pursersctl sweep`: bridges and shims that outlived their hosts, and their end if that is wanted."""

import signal
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from pursers_shim.paths import Place
from pursersctl import client, output, sweep_shown
from pursersctl.errors import CommandError, Failed
from pursersctl.found import Sweep, SweptRow
from pursersctl.sweep_servers import Judged, judged, process_of, servers
from pursersd import api
from pursersd.conversation.identity import ProcessIdentity
from pursersd.rules.hosting import Verdict

GRACE = 5.0  # seconds from SIGTERM to SIGKILL
KILL_TIMEOUT = 2.0  # seconds from SIGKILL until it must be gone
POLL_INTERVAL = 0.05  # seconds between two looks
ASK_TIMEOUT = 2.0  # seconds in which the daemon must say what it knows of its shims

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

Outcome = Literal["ended", "killed", "stays"]


def sweep(place: Place, *, really: bool, only: Sequence[int] = (), as_json: bool) -> None:
    """Print what runs and for whom, and with `really` end what is there for nobody. Raises Failed if something stays.

    `only` are the process ids to look at; none stands for all.
    """
    found = [one for one in survey(place) if not only or one.server.process.pid in only]
    outcomes = end([one.server.identity for one in found if one.is_orphan]) if really else {}
    answer = Sweep(
        processes=[row(one, outcomes.get(one.server.identity)) for one in found], ending=really, boot=boot_id()
    )
    if as_json:
        output.show_json(msgspec.json.encode(answer))
    else:
        output.show(sweep_shown.sweep(answer, output.width(), only=only))
    stay = [str(swept.pid) for swept in answer.processes if swept.outcome == "stays"]
    if stay:
        raise Failed(f"Still there after SIGKILL: {', '.join(stay)}. Look at them with: ps -p {','.join(stay)}")


def survey(place: Place) -> list[Judged]:
    """Every bridge and shim of this user with its verdict; the daemon is asked about its shims if there is one."""
    found = servers()
    return list(judged(found, _known_of_shims(place) if any(one.kind == "shim" for one in found) else _nothing))


def end(orphans: Iterable[ProcessIdentity]) -> dict[ProcessIdentity, Outcome]:
    """End these very processes: SIGTERM, and SIGKILL for those that are still there after GRACE."""
    found = list(orphans)
    for process in found:
        process.send(signal.SIGTERM)
        process.send(signal.SIGCONT)  # a stopped process cannot obey
    stubborn = _still_alive(found, GRACE)
    for process in stubborn:
        process.send(signal.SIGKILL)
    stay = _still_alive(stubborn, KILL_TIMEOUT)
    outcome: dict[ProcessIdentity, Outcome] = dict.fromkeys(found, "ended")
    return outcome | dict.fromkeys(stubborn, "killed") | dict.fromkeys(stay, "stays")


def row(one: Judged, outcome: Outcome | None = None) -> SweptRow:
    """What is printed of a server."""
    host = one.verdict.host
    held = f"; {one.held_by} keeps its input open" if one.held_by else ""
    return SweptRow(
        kind=one.server.kind,
        pid=one.server.process.pid,
        started=one.server.process.started,
        age_s=round(one.server.age_s, 3),
        rss_bytes=one.server.rss_bytes,
        connections=list(one.server.connections),
        host=host.name if host else None,
        host_pid=host.pid if host else None,
        orphan=one.is_orphan,
        why=one.verdict.why + held,
        outcome=outcome,
    )


def boot_id() -> str | None:
    """Names this boot of the machine; None where the system has no name for it."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None


def _still_alive(processes: list[ProcessIdentity], patience: float) -> list[ProcessIdentity]:
    deadline = time.monotonic() + patience
    while (left := [process for process in processes if process.is_alive]) and time.monotonic() < deadline:
        time.sleep(POLL_INTERVAL)
    return left


def _known_of_shims(place: Place) -> Callable[[int], Verdict | None]:
    """What the daemon says of the shim with a pid: it heard from each who its host is. Nothing without a daemon."""
    try:
        reaped = client.read(client.ask(place, "reap", timeout=ASK_TIMEOUT), api.Reap).found
        present = client.read(client.ask(place, "ps", timeout=ASK_TIMEOUT), api.Ps).seats
    except CommandError:
        return _nothing
    orphans = {found.shim_pid: Verdict(False, found.why) for found in reaped if found.kind == "shim"}
    hosts = {seat.shim_pid: seat.host_pid for seat in present if seat.host_pid is not None}

    def known(pid: int) -> Verdict | None:
        if pid in orphans:
            return orphans[pid]
        host = process_of(hosts[pid]) if pid in hosts else None
        return Verdict(True, f"its host {host} lives", host) if host is not None else None

    return known


def _nothing(_: int) -> Verdict | None:
    return None
