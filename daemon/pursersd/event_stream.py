"""One listener of the events: first a snapshot, then each change, until it hangs up or is cut for being too slow."""

import logging
from collections.abc import Awaitable, Callable

import anyio
import msgspec
from anyio.abc import SocketStream

from pursersd import api
from pursersd.api.events import Event, Snapshot
from pursersd.differences import differences
from pursersd.events import MOST, Events, Listener, TooMany

log = logging.getLogger(__name__)

LOOK = 0.5
"""Seconds between two looks at what does not tell of its changes itself."""

STALL = 30.0
"""Seconds that a listener may take nothing of what is sent to it."""

FAREWELL = 1.0
"""Seconds to tell a listener why it is cut."""

Send = Callable[[Event], Awaitable[None]]


class TooSlow(Exception):
    """The listener does not take what it is told. `is_torn`: a line may have been sent in part, nothing can follow it."""

    def __init__(self, text: str, *, is_torn: bool = False) -> None:
        super().__init__(text)
        self.is_torn = is_torn


async def serve(stream: SocketStream, request: int, events: Events, look: Callable[[], Snapshot]) -> None:
    """Answer the request for events on this control link until either side has enough of it."""

    async def send(event: Event) -> None:
        await stream.send(msgspec.json.encode(api.answer(request, event)) + b"\n")

    async def refuse(code: str, text: str) -> None:
        with anyio.move_on_after(FAREWELL):
            await stream.send(msgspec.json.encode(api.refusal(request, code, text)) + b"\n")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_until_hung_up, stream, tasks.cancel_scope)
        try:
            await tell(events, look, send)
        except TooMany as many:
            await refuse("too_many", str(many))
        except TooSlow as slow:
            log.warning("a program that follows the events is cut: %s", slow)
            if not slow.is_torn:
                await refuse(
                    "too_slow", f"pursersd cut this program off, because {slow}. Events are missing from here on."
                )
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            log.debug("a program that followed the events has gone: %r", error)
        tasks.cancel_scope.cancel()


async def tell(events: Events, look: Callable[[], Snapshot], send: Send) -> None:
    """Tell one listener until cancelled. Raises TooSlow, and TooMany when there are too many listeners."""
    with events.listening() as listener:
        known, next_look = look(), anyio.current_time() + LOOK
        await _tell(send, known)
        while True:
            with anyio.CancelScope(deadline=next_look):
                await listener.arrived()
            for change in _taken(listener):
                await _tell(send, change)
            if anyio.current_time() >= next_look:
                before, known = known, look()
                next_look = anyio.current_time() + LOOK
                for change in differences(before, known):
                    await _tell(send, change)


def _taken(listener: Listener) -> list[Event]:
    taken: list[Event] = [*listener.take()]
    if listener.is_slow:
        raise TooSlow(f"it left more than {MOST} changes untaken")
    return taken


async def _tell(send: Send, event: Event) -> None:
    with anyio.move_on_after(STALL) as patience:
        await send(event)
    if patience.cancelled_caught:
        raise TooSlow(f"it took nothing for {STALL:g} s", is_torn=True)


async def _until_hung_up(stream: SocketStream, scope: anyio.CancelScope) -> None:
    """The other side has nothing more to say on this link; when it is gone there is nobody to tell."""
    try:
        while True:
            await stream.receive(4096)
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        scope.cancel()
