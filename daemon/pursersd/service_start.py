"""How a daemon starts that a service manager starts: it gives way where it should, and it does not loop for ever.

Exit code 0 means here that nobody should start it again: it was told to stop, or it gave up after as many starts as failed
(launchd knows no such limit itself). systemd's own limit stands in the unit; both count the same failures as `starts`.
"""

import atexit
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence

from pursers_shim import starts
from pursers_shim.paths import Place, check_folder
from pursersd.errors import OwnershipError
from pursersd.ownership import Ownership, Taken, take
from pursersd.supervisor import Supervisor

GIVE_UP = 5
"""So many starts in a row that did not come up are enough."""

PATIENCE = 30.0
"""Seconds that another daemon may take to leave: one whose socket was taken over notices within five and then drains."""

LOOK = 0.05
"""Seconds between two looks whether it has left."""

WORDS_LIMIT = 64 * 1024


class HeldBack(Exception):
    """There should be no daemon now, or there is one already; the text says why."""


def become(
    place: Place, sockets: Sequence[socket.socket], above: Supervisor, *, clock: Callable[[], float] = time.time
) -> Ownership:
    """Become the daemon on behalf of a service manager.

    Raises HeldBack, or what `take` raises. Afterwards this start is counted until the daemon leaves in order.
    """
    check_folder(place.folder, create=True)
    before = (starts.read(place) or starts.Starts()).recent(clock())
    if os.path.lexists(place.stopped):
        raise HeldBack("It was stopped with pursersctl stop. Start it with: pursersctl start")
    if before.count >= GIVE_UP and not before.came_up:
        words = starts.said(place, before)
        raise HeldBack(f"The last {before.count} starts failed: {words} Repair that, then run: pursersctl start")
    ownership = _take(place, sockets, above)
    try:
        starts.note_start(place, before.count + 1, clock())
    except OSError as error:
        ownership.release()
        raise OwnershipError(f"Cannot write {place.starts}: {error.strerror}. Make room and start again.") from error
    return ownership


def keep_words(path: str) -> None:
    """What this process prints from now on goes into `path`, where shims and pursersctl look why it did not come up, and at
    its end to the manager's journal as well."""
    import faulthandler  # here, because a daemon that is no service should have its lock soon

    journal = os.dup(2)
    words = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.dup2(words, 2)
    atexit.register(_pass_on, words, journal)
    # A watchdog ends a daemon that hangs with SIGABRT: this prints where it hung.
    faulthandler.enable(file=2)


def _take(place: Place, sockets: Sequence[socket.socket], above: Supervisor) -> Ownership:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return take(place, sockets)
        except Taken as taken:
            if time.monotonic() > deadline:
                raise HeldBack(str(taken)) from taken
            above.starting("waiting for another pursersd to leave")
        time.sleep(LOOK)


def _pass_on(words: int, journal: int) -> None:
    sys.stderr.flush()
    size = os.fstat(words).st_size
    printed = os.pread(words, WORDS_LIMIT, max(size - WORDS_LIMIT, 0))
    try:
        os.write(journal, printed)
    except OSError:
        return  # nobody reads it any more
