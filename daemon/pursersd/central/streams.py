"""Keep one subscription stream open with the URIs that are wanted at the moment.

A stream's filter is fixed, so another set means another stream (central.md §4.4). The journal stream J is replaced
make-before-break: no cue is missed. The seat stream S must be replaced break-before-make, since Central drops a seat's
liveness when the old of two streams ends.
"""

import logging
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import anyio
from anyio.abc import TaskGroup, TaskStatus

from pursersd.central.client import Cues
from pursersd.errors import CentralError, ProtocolRefused
from pursersd.rules.backoff import delays

log = logging.getLogger(__name__)

FIRST_RETRY = 0.1
"""Seconds before the first attempt after a loss; doubles with jitter."""

LAST_RETRY = 10.0
"""Longest pause between attempts, in seconds."""

DENIED_RETRY = 60.0
"""Seconds after which a URI that Central denied is asked for again (earlier when somebody arms a wait)."""

_DENIED = "subscription denied: principal is not authorized for resource "

Opener = Callable[[Iterable[str]], AbstractAsyncContextManager[Cues]]


class _Lost(Exception):
    """The stream of one generation is over; `error` is None after an overflow result."""

    def __init__(self, error: CentralError | None) -> None:
        super().__init__(str(error or "Central dropped cues of this stream"))
        self.error = error


class StreamListener(Protocol):
    """What a KeptStream tells its owner. All calls are synchronous and quick."""

    def stream_cue(self, uri: str) -> None:
        """A cue arrived."""

    def stream_changed(self, gained: frozenset[str], lost: frozenset[str]) -> None:
        """Coverage or trouble changed: cues for `gained` are delivered from now on, for `lost` no longer.

        A stream that broke and came back reports its URIs as lost and later as gained: what happened between is unknown.
        """


class KeptStream:
    """One stream that follows `want()`; `run()` owns it for life.

    `covered` are the URIs that an acknowledged stream delivers right now; `denied` those that Central refused, with its
    text; `trouble` is why there is no stream although one is wanted.
    """

    def __init__(self, name: str, opener: Opener, listener: StreamListener, *, overlap: bool, settle: float) -> None:
        self.name = name
        self.covered: frozenset[str] = frozenset()
        self.denied: dict[str, str] = {}
        self.trouble: CentralError | None = None
        self.reconnects = 0
        self._opener = opener
        self._listener = listener
        self._overlap = overlap
        self._settle = settle
        self._wanted: frozenset[str] = frozenset()
        self._changed = anyio.Event()
        self._drop = False

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
                await self._wait_for_change(DENIED_RETRY if self.denied else None)
                self.denied.clear()
                continue
            try:
                await self._follow(wanted)
                pauses = _pauses()
            except* _Lost as group:
                error = _first(group).error
                if self.covered:
                    self.reconnects += 1
                    pauses = _pauses()
                    log.warning("stream %s lost: %s", self.name, _first(group))
                if not self._note_denial(error):
                    self.trouble = error
                self._cover(frozenset(), always=True)
                if self.trouble is not None:
                    await self._wait_for_change(next(pauses))

    async def _follow(self, wanted: frozenset[str]) -> None:
        """Open a stream for `wanted` and replace it as wishes change; returns when nothing is wanted or it was dropped.

        Raises _Lost (in a group) when the stream in use ends or cannot be opened.
        """
        async with anyio.create_task_group() as generations:
            current = await generations.start(self._generation, wanted)
            while True:
                await self._wait_for_change(None)
                wanted = self._wanted - self.denied.keys()
                if self._drop or not wanted:
                    break
                if wanted == self.covered:
                    continue
                if self._overlap:
                    current = await self._replace(generations, current, wanted)
                else:
                    current.cancel()
                    self._cover(frozenset())
                    current = await generations.start(self._generation, wanted)
            self._drop = False
            generations.cancel_scope.cancel()
        self._cover(frozenset())

    async def _replace(
        self, generations: TaskGroup, current: anyio.CancelScope, wanted: frozenset[str]
    ) -> anyio.CancelScope:
        """Open the next stream, then close the current one; keep the current one when a URI is denied."""
        try:
            following: anyio.CancelScope = await generations.start(self._generation, wanted)
        except _Lost as lost:
            if not self._note_denial(lost.error):
                raise
            self._changed.set()
            return current
        current.cancel()
        return following

    async def _generation(self, uris: frozenset[str], *, task_status: TaskStatus[anyio.CancelScope]) -> None:
        """Read one stream until it ends (raises _Lost) or its scope is cancelled."""
        error: CentralError | None = None
        with anyio.CancelScope() as scope:
            try:
                async with self._opener(uris) as cues:
                    self.trouble = None
                    self._cover(uris)
                    task_status.started(scope)
                    async for uri in cues:
                        self._listener.stream_cue(uri)
            except CentralError as caught:
                error = caught
            raise _Lost(error)

    def _cover(self, uris: frozenset[str], *, always: bool = False) -> None:
        gained, lost = uris - self.covered, self.covered - uris
        self.covered = uris
        if gained or lost or always:
            self._listener.stream_changed(gained, lost)

    def _note_denial(self, error: CentralError | None) -> bool:
        """Remember the URI that Central denied, if that is what `error` says."""
        if not isinstance(error, ProtocolRefused) or not str(error).startswith(_DENIED):
            return False
        self.denied[str(error).removeprefix(_DENIED).strip()] = str(error)
        log.warning("stream %s: %s", self.name, error)
        self._listener.stream_changed(frozenset(), frozenset())
        return True

    async def _wait_for_change(self, seconds: float | None) -> None:
        """Until the wishes change, at most `seconds`; several changes in a moment count as one."""
        with anyio.move_on_after(seconds):
            await self._changed.wait()
            await anyio.sleep(self._settle)
        self._changed = anyio.Event()


def _pauses() -> Iterator[float]:
    return delays(FIRST_RETRY, LAST_RETRY, random.random)


def _first(group: BaseExceptionGroup[_Lost]) -> _Lost:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, _Lost)
    return error
