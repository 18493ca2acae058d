"""The settings of one conversation while it lives: they follow its stored door and its token file, and nothing else.

What a conversation is (board, role, name) stays as it began: a door that somebody stores for another board must not move
it. Its credential is replaced when its own door is (bridge.md §9, `join --rotate`), or when Central refuses it and its
token file has another one by now.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import anyio

from pursersd.central.pool import PoolKey
from pursersd.errors import DoorsError
from pursersd.rules import door_list
from pursersd.rules.door import Door
from pursersd.settings import Settings, with_door, without_door
from pursersd.state.doors import Doors, Stamp


class Configuration:
    """The settings in force, where they come from, and what must begin again when the credential is replaced."""

    def __init__(self, settings: Settings, resolve: Callable[[], Settings], doors: Doors | None) -> None:
        self.settings = settings
        self._resolve = resolve
        """Gives the settings that the conversation's environment means at this moment."""
        self._doors = doors
        self._seen: tuple[Stamp, ...] | None = None
        """The stored doors that were looked at last; None before the first look after `resolve`."""
        self._running: set[anyio.CancelScope] = set()
        """What goes on with the credential of this moment only."""

    @property
    def key(self) -> PoolKey | None:
        """The pool that the conversation's calls belong to; None without a credential."""
        token = self.settings.token
        return PoolKey(self.settings.url, token, self.settings.instance_id) if token is not None else None

    @property
    def folder(self) -> str | None:
        """Where the stored doors lie that it looks at."""
        return str(self._doors.folder) if self._doors is not None else None

    def repair(self) -> bool:
        """If a setting prevents work: read token file and doors anew, one may be right by now. True if none does now."""
        if self.settings.problems:
            fresh, lost = self._resolve(), self.settings.door
            # Whose door was forgotten waits for that one: the next best could make a reviewer of a worker.
            if lost is None or (fresh.door is not None and _place(fresh.door) == _place(lost)):
                self.settings = fresh
        return not self.settings.problems

    def follow(self) -> bool:
        """Look whether the stored door was replaced or forgotten, if a program changed the doors since the last look.

        Returns whether another credential, or none, came of it: then everything in `until_renewed` is cancelled.
        """
        if self._doors is None or self._seen == (stamp := self._doors.stamp):
            return False
        self._seen = stamp
        return self._adopt(self._with_stored_door(self._doors))

    def refused(self) -> bool:
        """Central refuses the credential: look whether there is another one by now. Returns like `follow`."""
        if self.settings.is_door_mode:
            return self.follow()
        fresh = self._resolve()
        if fresh.problems or fresh.token is None or fresh.url != self.settings.url:
            return False
        return self._adopt(replace(self.settings, token=fresh.token))

    @contextmanager
    def until_renewed(self) -> Iterator[None]:
        """The block is cancelled, quietly, when the credential is replaced: look with `key` whether that was the reason."""
        with anyio.CancelScope() as scope:
            self._running.add(scope)
            try:
                yield
            finally:
                self._running.discard(scope)

    def _with_stored_door(self, doors: Doors) -> Settings:
        door = self.settings.door
        if door is None or not self.settings.is_door_mode:
            return self.settings
        try:
            stored = door_list.find(doors.load(), door.board, door.role)
        except DoorsError:
            return self.settings  # a file that cannot be read takes no credential away
        return with_door(self.settings, stored) if stored is not None else without_door(self.settings)

    def _adopt(self, settings: Settings) -> bool:
        before, self.settings = self.key, settings
        if self.key == before:
            return False
        for scope in self._running:
            scope.cancel()
        return True


def _place(door: Door) -> tuple[str, str]:
    return door.board, door.role
