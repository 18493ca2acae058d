"""Keep one subscription stream open with the URIs that are wanted at the moment.

A stream's filter is fixed, so another set means another stream (central.md §4.4). The journal stream J is replaced
make-before-break: no cue is missed. The seat stream S must be replaced break-before-make, since Central drops a seat's
liveness when the older of two streams ends: the next one is opened only some time after the connection of the old one
is closed.
"""

import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

import anyio
from anyio.abc import TaskGroup, TaskStatus

from pursersd.central.client import Cues
from pursersd.errors import CentralError, Forbidden, ProtocolRefused, Unauthenticated
from pursersd.rules.backoff import delays

log = logging.getLogger(__name__)

FIRST_RETRY = 0.1
"""Seconds before the first attempt after a loss; doubles with jitter."""

LAST_RETRY = 10.0
"""Longest pause between attempts, in seconds."""

APART = 0.2
"""Seconds between the end of a stream that may not overlap and the next one. Central forgets a seat's liveness when it
notices the end, and it may notice it only after the next stream has begun."""

STEADY = 10.0
"""Seconds that a stream must have lived for the pauses to begin anew when it is lost: one that always ends at once would
else be opened again ten times a second."""

LAP = 0.05
"""Seconds that the old of two overlapping streams is still read: the last cue before the new one may have gone to it."""

DENIED_RETRY = 60.0
"""Seconds after which a URI that Central denied is asked for again (earlier when somebody arms a wait)."""

_DENIED = "subscription denied: principal is not authorized for resource "

Opener = Callable[[Iterable[str]], AbstractAsyncContextManager[Cues]]


class _Lost(Exception):
    """The stream of one generation is over; `error` is None after an overflow result."""

    def __init__(self, error: CentralError | None) -> None:
        super().__init__(str(error or "Central dropped cues of this stream"))
        self.error = error


@dataclass(slots=True, eq=False)
class _Generation:
    """One opened stream of a KeptStream."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    closed: anyio.Event = field(default_factory=anyio.Event)
    opened: bool = False
    """Whether Central had acknowledged it."""

    async def close(self) -> None:
        """Return when its connection is closed."""
        self.scope.cancel()
        await self.closed.wait()


class StreamListener(Protocol):
    """What a KeptStream tells its owner. All calls are synchronous and quick."""

    def stream_cue(self, uri: str) -> None:
        """A cue arrived."""

    def stream_changed(self, gained: frozenset[str], lost: frozenset[str]) -> None:
        """Coverage or trouble changed: cues for `gained` are delivered from now on, for `lost` no longer.

        A stream that broke and came back reports its URIs as lost and later as gained: what happened between is unknown.
        """


async def _at_once() -> None:
    """Nobody knows better: try."""


class KeptStream:
    """One stream that follows `want()`; `run()` owns it for life.

    `covered` are the URIs that an acknowledged stream delivers right now; `denied` those that Central refused, with its
    text; `trouble` is why there is no stream although one is wanted.
    """

    def __init__(
        self,
        name: str,
        opener: Opener,
        listener: StreamListener,
        *,
        overlap: bool,
        settle: float,
        reachable: Callable[[], Awaitable[None]] = _at_once,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.covered: frozenset[str] = frozenset()
        self.denied: dict[str, str] = {}
        self.trouble: CentralError | None = None
        self.reconnects = 0
        self.overflows = 0
        """How often Central ended a stream because it had dropped cues."""
        self._opener = opener
        self._listener = listener
        self._overlap = overlap
        self._settle = settle
        self._reachable = reachable
        self._waiting = anyio.CancelScope()
        self._clock = clock
        self._opened_at = 0.0
        self._ended_at = -APART
        self._wanted: frozenset[str] = frozenset()
        self._changed = anyio.Event()
        self._drop = False

    @property
    def wanted(self) -> frozenset[str]:
        """The URIs to cover, as set last."""
        return self._wanted

    @property
    def is_open(self) -> bool:
        """Whether an acknowledged stream exists."""
        return bool(self.covered)

    def want(self, uris: Iterable[str]) -> None:
        """Set the URIs to cover. Unwanted ones that are covered may stay so until the next change."""
        wanted = frozenset(uris)
        if wanted != self._wanted:
            self._wanted = wanted
            self._changed.set()
        if not wanted:
            self._waiting.cancel()

    def retry(self) -> None:
        """Try again now what was denied or failed: somebody needs it."""
        if self.denied or self.trouble:
            self.denied.clear()
            self._changed.set()

    def drop(self) -> None:
        """Close the stream at once and reopen it: Central is refusing connections and cannot exit while it is open."""
        if self.covered:
            self._drop = True
            self._changed.set()

    async def run(self) -> None:
        """Keep the stream until cancelled."""
        pauses = _pauses()
        while True:
            wanted = self._wanted - self.denied.keys()
            if not wanted:
                self.trouble = None
                await self._wait_for_change(DENIED_RETRY if self.denied else None)
                self.denied.clear()
                continue
            lost: _Lost | None = None
            try:
                await self._follow(wanted)
            except* _Lost as group:
                lost = _first(group)
            if lost is None:
                pauses = _pauses()
                await self._until_reachable()
                continue
            if self.covered:
                self.reconnects += 1
                self.overflows += lost.error is None
                log.warning("stream %s lost: %s", self.name, lost)
                if self._clock() - self._opened_at >= STEADY:
                    pauses = _pauses()
            denied = self._note_denial(lost.error)
            self.trouble = None if denied else lost.error
            self._cover(frozenset(), always=True)
            if not denied:
                # A credential that is refused now will be so in a second; somebody who needs it asks earlier (`retry`).
                is_decision = isinstance(lost.error, (Unauthenticated, Forbidden))
                await self._wait_for_change(DENIED_RETRY if is_decision else next(pauses))
                await self._until_reachable()

    async def _until_reachable(self) -> None:
        """Until Central answers, or no stream is wanted any more."""
        with anyio.CancelScope() as self._waiting:
            if self._wanted:
                await self._reachable()

    async def _follow(self, wanted: frozenset[str]) -> None:
        """Open a stream for `wanted` and replace it as wishes change; returns when nothing is wanted or it was dropped.

        Raises _Lost (in a group) when the stream in use ends or cannot be opened.
        """
        self._drop = False
        async with anyio.create_task_group() as generations:
            current: _Generation = await generations.start(self._generation, wanted)
            while True:
                # Asking again costs an overlapping stream nothing; the other kind would be interrupted for it.
                if not await self._wait_for_change(DENIED_RETRY if self._overlap and self.denied else None):
                    self.denied.clear()
                wanted = self._wanted - self.denied.keys()
                if self._drop or not wanted:
                    break
                if wanted == self.covered:
                    continue
                if self._overlap:
                    current = await self._replace(generations, current, wanted)
                else:
                    self._cover(frozenset())
                    await current.close()
                    current = await generations.start(self._generation, wanted)
            self._cover(frozenset())
            generations.cancel_scope.cancel()

    async def _replace(self, generations: TaskGroup, current: _Generation, wanted: frozenset[str]) -> _Generation:
        """Open the next stream, then close the current one; keep the current one when a URI is denied."""
        try:
            following: _Generation = await generations.start(self._generation, wanted)
        except _Lost as lost:
            if not self._note_denial(lost.error):
                raise
            self._changed.set()
            return current
        await anyio.sleep(LAP)
        await current.close()
        return following

    async def _generation(self, uris: frozenset[str], *, task_status: TaskStatus[_Generation]) -> None:
        """Read one stream until it ends (raises _Lost) or is closed."""
        generation = _Generation()
        error: CentralError | None = None
        try:
            with generation.scope:
                try:
                    if not self._overlap:
                        await anyio.sleep(max(0.0, self._ended_at + APART - self._clock()))
                    async with self._opener(uris) as cues:
                        self.trouble = None
                        self._opened_at = self._clock()
                        self._cover(uris)
                        generation.opened = True
                        task_status.started(generation)
                        async for uri in cues:
                            self._listener.stream_cue(uri)
                except CentralError as caught:
                    error = caught
                raise _Lost(error)
        finally:
            if generation.opened:
                self._ended_at = self._clock()
            generation.closed.set()

    def _cover(self, uris: frozenset[str], *, always: bool = False) -> None:
        gained, lost = uris - self.covered, self.covered - uris
        self.covered = uris
        if gained or lost or always:
            self._listener.stream_changed(gained, lost)

    def _note_denial(self, error: CentralError | None) -> bool:
        """Remember the URI that Central denied, if that is what `error` says and there is another way without it."""
        if not isinstance(error, ProtocolRefused) or not str(error).startswith(_DENIED):
            return False
        uri = str(error).removeprefix(_DENIED).strip()
        if uri not in self._wanted or uri in self.denied:
            return False
        self.denied[uri] = str(error)
        log.warning("stream %s: %s", self.name, error)
        self._listener.stream_changed(frozenset(), frozenset())
        return True

    async def _wait_for_change(self, seconds: float | None) -> bool:
        """Until the wishes change, at most `seconds`; several changes in a moment count as one. False if nothing changed."""
        with anyio.move_on_after(seconds):
            await self._changed.wait()
            await anyio.sleep(self._settle)
        changed = self._changed.is_set()
        self._changed = anyio.Event()
        return changed


def _pauses() -> Iterator[float]:
    return delays(FIRST_RETRY, LAST_RETRY, random.random)


def _first(group: BaseExceptionGroup[_Lost]) -> _Lost:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, _Lost)
    return error
