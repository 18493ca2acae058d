"""The way out of a link: whole lines, one after the other, to a shim that has to take them."""

import anyio
from anyio.abc import SocketStream

STALL = 30.0
"""Seconds that a shim may take nothing of what is sent to it. Then its link is cut; it asks again when it is back."""

PIECE = 65536
"""Bytes that are offered at once: taking so many counts as taking something."""


class Stalled(Exception):
    """The shim takes nothing any more: it is stopped, or its host does not read."""


class Outlet:
    """Sends in the order of the calls. What it cannot send stays with the caller, who thereby stops to make more."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._turn = anyio.Lock()
        self._torn: str | None = None
        """Why a line was given up after a part of it may have gone: nothing can follow it."""

    @property
    def is_torn(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._torn is not None

    async def send(self, line: bytes) -> None:
        """Return when the socket has the whole line. Raises Stalled, or what the socket raises when it is over."""
        async with self._turn:
            if self._torn is not None:
                raise Stalled(self._torn)
            try:
                for start in range(0, len(line), PIECE):
                    with anyio.move_on_after(STALL) as patience:
                        await self._stream.send(line[start : start + PIECE])
                    if patience.cancelled_caught:
                        self._torn = f"its shim took nothing for {STALL:g} s"
                        raise Stalled(self._torn)
            except anyio.get_cancelled_exc_class():
                self._torn = "its shim did not take a whole line in time"
                raise
