"""Subscription streams as a test directs them, in Central's place."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from pursersd.errors import CentralError


class Opened:
    """One open stream: the test sends its cues and ends it."""

    def __init__(self) -> None:
        self._send, self._receive = anyio.create_memory_object_stream[str | CentralError](10)

    def cue(self, uri: str) -> None:
        self._send.send_nowait(uri)

    def end(self, error: CentralError | None) -> None:
        if error is not None:
            self._send.send_nowait(error)
        self._send.close()

    async def __aiter__(self) -> AsyncIterator[str]:
        async with self._send, self._receive:
            async for item in self._receive:
                if isinstance(item, CentralError):
                    raise item
                yield item


class Script:
    """Opens streams as the test directs; `log` has each opening and closing as it happened."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.errors: list[CentralError] = []
        """What the next openings fail with."""
        self.always: CentralError | None = None
        self.on_failure: Callable[[], None] = lambda: None
        self.streams: dict[str, Opened] = {}

    @asynccontextmanager
    async def open(self, uris: Iterable[str]) -> AsyncIterator[Any]:
        name = " ".join(sorted(uris))
        await checkpoint()
        error = self.errors.pop(0) if self.errors else self.always
        if error is not None:
            self.log.append(f"fail {name}")
            self.on_failure()
            raise error
        self.log.append(f"open {name}")
        opened = self.streams[name] = Opened()
        try:
            yield opened
        finally:
            with anyio.CancelScope(shield=True):  # closing a connection takes a while
                for _ in range(5):
                    await checkpoint()
            self.log.append(f"close {name}")
