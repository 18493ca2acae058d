"""The lines of a socket's other end."""

import json
from typing import Any

import anyio
from anyio.abc import SocketStream

from pursers_shim import wire

PATIENCE = 30.0  # seconds for an answer


class LineStream:
    """One connection, in lines."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._lines = wire.Lines()
        self._ready: list[Any] = []

    async def send(self, data: bytes) -> None:
        await self._stream.send(data)

    async def say(self, *messages: object) -> None:
        await self.send(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    async def next(self) -> Any:
        """The next line, but for what a shim is to remember; None at the end."""
        with anyio.fail_after(PATIENCE):
            while not self._ready:
                try:
                    data = await self._stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return None
                lines = [json.loads(line) for line in self._lines.feed(data)]
                self._ready += [x for x in lines if not isinstance(x, dict) or x.get("method") != wire.KEEP]
            return self._ready.pop(0)
