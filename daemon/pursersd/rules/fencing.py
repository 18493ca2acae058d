"""Is this daemon still the daemon? (RB-OWN-001)"""

from enum import Enum, auto


class Lock(Enum):
    """What became of the daemon's lock."""

    HELD = auto()
    TAKEN = auto()
    """Another process holds the one at the lock's path."""
    BLOCKED = auto()
    """There is none at that path, and nobody can make one: something else lies there, or in the folder's place."""


class Standing(Enum):
    """What a look at lock, epoch and socket means."""

    OURS = auto()
    FORGOTTEN = auto()
    """Nobody else is the daemon, but the count of starts was set back."""
    BLOCKED = auto()
    """Nobody can come to us, but nobody can become the daemon either: those who have a link are still served."""
    UNREACHABLE = auto()
    """Nobody can come to us, and only the next daemon can change that."""
    SUPERSEDED = auto()
    """A newer daemon exists, or has existed."""


def standing(lock: Lock, *, counted: int | None, epoch: int, socket_is_ours: bool) -> Standing:
    """Where we stand. `counted`: the epoch on disk, None if none can be read.

    Greater fences lower: an epoch above ours was counted by a daemon that held the lock after us. A lower one was counted
    by nobody since; somebody restored an old state folder.
    """
    if lock is Lock.TAKEN or (counted is not None and counted > epoch):
        return Standing.SUPERSEDED
    if lock is Lock.BLOCKED:
        return Standing.BLOCKED
    if not socket_is_ours:
        return Standing.UNREACHABLE
    return Standing.OURS if counted == epoch else Standing.FORGOTTEN
