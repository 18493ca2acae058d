"""Is this daemon still the daemon? (RB-OWN-001)"""

from enum import Enum, auto


class Lock(Enum):
    """What became of the daemon's lock."""

    HELD = auto()
    TAKEN = auto()
    """Another process holds the one at the lock's path."""
    LOST = auto()
    """There is none at that path, and none can be made."""


class Standing(Enum):
    """What a look at lock, epoch and socket means."""

    OURS = auto()
    FORGOTTEN = auto()
    """Nobody else is the daemon, but the count of starts was set back."""
    UNREACHABLE = auto()
    """Nobody can come to us, so somebody will start the next daemon."""
    SUPERSEDED = auto()
    """A newer daemon exists, or has existed."""


def standing(lock: Lock, *, counted: int | None, epoch: int, socket_is_ours: bool) -> Standing:
    """Where we stand. `counted`: the epoch on disk, None if none can be read.

    Greater fences lower: an epoch above ours was counted by a daemon that held the lock after us. A lower one was counted
    by nobody since; somebody restored an old state folder.
    """
    if lock is Lock.TAKEN or (counted is not None and counted > epoch):
        return Standing.SUPERSEDED
    if lock is Lock.LOST or not socket_is_ours:
        return Standing.UNREACHABLE
    return Standing.OURS if counted == epoch else Standing.FORGOTTEN
