"""Checks of the stored doors: their files, then each at its Central, read-only; and of our clock against Central's."""

import os
import queue
import stat
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import anyio

from pursersctl.doctor_local import Silence, silence
from pursersctl.doctor_patient import Patient, advised, doubtful, ill, well
from pursersctl.found import Finding
from pursersctl.render import duration
from pursersd.door_check import DoorCheck, check_all
from pursersd.errors import DoorsError
from pursersd.health import CLOCK_WRONG
from pursersd.rules.door import Door
from pursersd.state.doors import Doors, folder

LIMIT = 8.0
"""Seconds that one door may take; all are asked at the same time."""

EXPIRES_SOON = 7 * 86400.0
"""Seconds before its end from which a door is warned of: its operator may need days."""

RENEW = "Ask the board's operator for a new door, then: pursersctl join - --rotate"


@dataclass(frozen=True, slots=True)
class Examined:
    """A door and what came of asking for it."""

    door: Door
    check: DoorCheck

    @property
    def name(self) -> str:
        return f"{self.door.board} {self.door.role}"


def doors(patient: Patient) -> Iterator[Finding]:
    """The files, each Central, each door, the clock."""
    where = folder(patient.environ, patient.place.home, patient.cwd)
    yield from _files(str(where))
    try:
        stored = Doors(where).load()
    except DoorsError as error:
        yield ill("doors", *advised(str(error), "pursersctl join -"))
        return
    if not stored:
        yield well("doors", f"none is stored in {where}; hosts' entries must name Central and credential")
        return
    examined = [Examined(door, check) for door, check in zip(stored, _asked(stored), strict=True)]
    yield from centrals(examined, silence(patient))
    for one in examined:
        yield from one_door(one)


def centrals(examined: Sequence[Examined], local: Silence | None = None) -> Iterator[Finding]:
    """Whether each Central answers, and whether its clock and ours agree."""
    by_url: dict[str, list[Examined]] = {}
    for one in examined:
        by_url.setdefault(one.door.url, []).append(one)
    for url, those in by_url.items():
        ahead = next((one.check.ahead_s for one in those if one.check.ahead_s is not None), None)
        if ahead is None and local is not None and local.url == url:
            say = doubtful if local.is_meant else ill
            yield say("central", f"{local.text}: {url} does not answer", local.action, of=url)
            continue
        if ahead is None:
            why = next((one.check.unreachable for one in those if one.check.unreachable), "no answer")
            text = advised(why, "")[0]
            yield ill("central", text if url in text else f"{url}: {text}", "Start it, or repair the way to it", of=url)
            continue
        yield well("central", f"{url} answers", of=url)
        if abs(ahead) > CLOCK_WRONG:
            side = "ahead of" if ahead > 0 else "behind"
            text = f"this machine's clock is {abs(ahead):.0f} s {side} that of {url}"
            yield doubtful("clock", text, "Set the clock that is wrong. See: date -u", of=url)
        else:
            yield well("clock", f"agrees with that of {url}", of=url)


def one_door(one: Examined) -> Iterator[Finding]:
    """Credential, membership and push, as far as Central could be asked."""
    check, name = one.check, one.name
    if check.expires_s is None:
        return  # its Central does not answer
    if check.refused is not None:
        expired = f"it expired {duration(-check.expires_s)} ago" if check.expires_s <= 0 else "it is unknown or revoked"
        yield ill("door", f"{name}: Central does not take the token of {one.door.kid}: {expired}", RENEW, of=name)
        return
    left = f"for another {duration(check.expires_s)}"
    if check.expires_s < EXPIRES_SOON:
        yield doubtful("door", f"{name}: the token is good only {left}", RENEW, of=name)
    else:
        yield well("door", f"{name}: Central takes the token, {left}", of=name)
    yield from _board(one)


def _asked(stored: Sequence[Door]) -> list[DoorCheck]:
    """What came of asking, as soon as it is there: a look-up of a name that hangs would keep `anyio.run` from returning."""
    answers: queue.SimpleQueue[list[DoorCheck]] = queue.SimpleQueue()

    async def ask() -> None:
        answers.put(await check_all(stored, limit=LIMIT))

    threading.Thread(target=anyio.run, args=(ask,), name="asking Central", daemon=True).start()
    return answers.get(timeout=2 * LIMIT)


def _board(one: Examined) -> Iterator[Finding]:
    check, name, board = one.check, one.name, one.door.board
    if check.unlisted is not None:
        yield ill(
            "membership", f"{name}: Central does not say its boards: {check.unlisted}", "pursersctl doctor", of=name
        )
        return
    if check.membership is None:
        text = f"{name}: its holder is no member of the board"
        yield ill("membership", text, f"Ask the admin of {board} to admit it (board_member_add)", of=name)
        return
    yield well("membership", f"{name}: {check.membership} of the board", of=name)
    if check.has_push:
        yield well("push", f"{name}: Central gives a stream", of=name)
    else:
        text = f"{name}: Central gives no stream, so its waits poll: {check.no_push}"
        yield doubtful(
            "push", text, "Close other clients of this credential, or ask its operator for a door with more", of=name
        )


def _files(where: str) -> Iterator[Finding]:
    """Who may read the credentials."""
    for path, wanted in (
        (where, 0o700),
        *((f"{where}/{name}", 0o600) for name in ("doors.json", "coordinator-doors.json")),
    ):
        try:
            found = os.stat(path)
        except OSError:
            continue  # there is none, or reading it says what is wrong
        mode = stat.S_IMODE(found.st_mode)
        if found.st_uid != os.getuid():
            yield ill("doors", f"{path} belongs to user {found.st_uid}", f"Make it yours. See: ls -lad {path}", of=path)
        elif mode & ~wanted & 0o077:
            yield doubtful("doors", f"{path} is open to others (mode {mode:04o})", f"chmod {wanted:o} {path}", of=path)
