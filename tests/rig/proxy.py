"""A counting fault proxy between a client and Central, in a thread of its own: use it from synchronous tests.

Use it so:

    with Proxy(central.port) as proxy:
        ...                                   # give clients proxy.url
        before = proxy.mark()
        assert proxy.count("board_catchup", before) <= 3
        proxy.cut_streams()
"""

import asyncio
import collections
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from rig.relay import Relay, Seen

T = TypeVar("T")

CONTROL_TIMEOUT = 60.0  # seconds for the proxy's thread to do what a test asks


class Proxy:
    """Forwards to a Central on loopback. All state belongs to the thread's loop; the methods below ask it there."""

    def __init__(self, upstream_port: int) -> None:
        self.port = 0
        self.opened = 0
        """TCP connections accepted so far."""
        self._upstream_port = upstream_port
        self._log: list[Seen] = []
        self._answered: list[tuple[Seen, float]] = []
        self._relays: dict[Relay, asyncio.Task[None]] = {}
        self._held: dict[str, asyncio.Event] = {}
        self._holding: collections.Counter[str] = collections.Counter()
        self._dropping: collections.Counter[str] = collections.Counter()
        self._denied: set[str] = set()
        self._delay_s = 0.0
        self._failing: int | None = None
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self.passable = asyncio.Event()
        self.passable.set()

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(CONTROL_TIMEOUT)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result(CONTROL_TIMEOUT)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CONTROL_TIMEOUT)
        self._loop.close()

    @property
    def url(self) -> str:
        """Central's URL as the clients shall use it."""
        return f"http://127.0.0.1:{self.port}/mcp"

    # What happened -------------------------------------------------------------------------------------------------

    def mark(self) -> int:
        """A point in the log, for the `since` of the methods below."""
        return len(self._log)

    def seen(self, name: str | None = None, since: int = 0) -> list[Seen]:
        """The MCP requests since a mark, in order: all, or those of one tool or JSON-RPC method."""
        return [x for x in self._log[since:] if x.line == "POST /mcp" and name in (None, x.name)]

    def count(self, name: str | None = None, since: int = 0) -> int:
        """How many `seen()` returns."""
        return len(self.seen(name, since))

    def names(self, since: int = 0) -> collections.Counter[str | None]:
        """How often each tool or method was asked for."""
        return collections.Counter(x.name for x in self.seen(None, since))

    def credentials(self, since: int = 0) -> set[str | None]:
        """`rig.relay.fingerprint` of every bearer token that was sent."""
        return {x.credential for x in self._log[since:]}

    def central_s(self, since: int, until: float) -> float:
        """Seconds that Central had the requests since a mark whose answers were complete at `until` (time.perf_counter())."""
        began = self._log[since].at if since < len(self._log) else until
        return sum(seconds for seen, seconds in self._answered if began <= seen.at and seen.at + seconds <= until)

    @property
    def live(self) -> int:
        """TCP connections open now."""
        return len(self._relays)

    @property
    def streams(self) -> list[Seen]:
        """The listens whose streams are open now."""
        return self._ask(lambda: [relay.listen for relay in self._relays if relay.listen is not None])

    # Faults --------------------------------------------------------------------------------------------------------

    def refuse(self, on: bool = True) -> None:
        """Refuse new connections (nobody listens on the port) until told otherwise; open ones stay."""
        asyncio.run_coroutine_threadsafe(self._refuse(on), self._loop).result(CONTROL_TIMEOUT)

    def blackhole(self, on: bool = True) -> None:
        """Let no byte through and no connection end until told otherwise; what was sent meanwhile arrives then."""
        self._ask(self.passable.clear if on else self.passable.set)

    def reset_all(self) -> int:
        """Cut every connection with a TCP reset; returns how many."""
        return self._ask(lambda: self._reset(lambda relay: True))

    def cut_streams(self) -> int:
        """Cut the connections that carry a stream, no others; returns how many."""
        return self._ask(lambda: self._reset(lambda relay: relay.listen is not None))

    def half_open(self) -> int:
        """Let the open streams fall silent for ever, their connections open; everything else passes. Returns how many."""
        return self._ask(self._half_open)

    def fail(self, status: int | None) -> None:
        """Answer every request with this HTTP status in Central's place; None: let them through again. Streams stay."""
        self._ask(lambda: setattr(self, "_failing", status))

    def overflow(self) -> int:
        """End every open stream with a normal result, as after a backlog overflow; returns how many."""
        return self._ask(self._overflow)

    def delay(self, seconds: float) -> None:
        """Let every request that comes from now on take longer by this."""
        self._delay_s = seconds

    def hold(self, name: str) -> None:
        """Keep requests of this tool or method here until `release(name)`."""
        self._ask(lambda: self._held.setdefault(name, asyncio.Event()))

    def holding(self, name: str) -> int:
        """How many requests are being held."""
        return self._holding[name]

    def release(self, name: str) -> None:
        """Let the held requests go, and those that come."""
        self._ask(lambda: self._held.pop(name).set())

    def cut_after(self, name: str) -> None:
        """Lose the next answer to this tool or method: Central carries the request out, the client sees a reset."""
        self._ask(lambda: self._dropping.update([name]))

    def deny(self, uri: str, on: bool = True) -> None:
        """Deny listens that name this resource, in Central's words, until told otherwise; open streams stay."""
        self._ask(lambda: self._denied.add(uri) if on else self._denied.discard(uri))

    # For the relays ------------------------------------------------------------------------------------------------

    def note(self, seen: Seen) -> None:
        """Called by a relay: a request is complete."""
        self._log.append(seen)

    def answered(self, seen: Seen, seconds: float) -> None:
        """Called by a relay: Central has answered."""
        self._answered.append((seen, seconds))

    async def gate(self, seen: Seen) -> None:
        """Called by a relay: return when the request may go on."""
        name = seen.name
        if self._delay_s:
            await asyncio.sleep(self._delay_s)
        if name is None or name not in self._held:
            return
        self._holding[name] += 1
        try:
            await self._held[name].wait()
        finally:
            self._holding[name] -= 1

    def drops_answer(self, seen: Seen) -> bool:
        """Called by a relay, once per request: whether its answer shall be lost."""
        name = seen.name
        if name is None or not self._dropping[name]:
            return False
        self._dropping[name] -= 1
        return True

    def refusal(self, seen: Seen) -> str | None:
        """Called by a relay: the words in which the request shall be refused."""
        uri = next((uri for uri in seen.uris if uri in self._denied), None)
        return uri and f"subscription denied: principal is not authorized for resource {uri}"

    def failure(self, seen: Seen) -> int | None:
        """Called by a relay: the HTTP status that the request shall get."""
        return self._failing

    # In the thread -------------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        relay = Relay(self.opened, self, reader, writer)
        # A task of our own: asyncio 3.11 logs an error when one that it made for a coroutine callback is cancelled.
        task = self._relays[relay] = asyncio.create_task(relay.run(self._upstream_port))
        task.add_done_callback(lambda _: self._relays.pop(relay))

    async def _refuse(self, on: bool) -> None:
        if on and self._server is not None:
            # A server that is closed while it accepts a connection leaves that one open for ever: first nothing more arrives.
            for listening in self._server.sockets:
                self._loop.remove_reader(listening.fileno())
            for _ in range(3):
                await asyncio.sleep(0)
            self._server.close()
            self._server = None
        elif not on and self._server is None:
            await self._listen()

    def _reset(self, wanted: Callable[[Relay], bool]) -> int:
        found = [relay for relay in self._relays if wanted(relay)]
        for relay in found:
            relay.reset()
        return len(found)

    def _half_open(self) -> int:
        found = [relay for relay in self._relays if relay.listen is not None]
        for relay in found:
            relay.half_open()
            relay.listen = None
        return len(found)

    def _overflow(self) -> int:
        found = [relay for relay in self._relays if relay.listen is not None]
        for relay in found:
            relay.overflow()
        return len(found)

    async def _leave(self) -> None:
        await self._refuse(True)
        self.passable.set()
        # A connection that was made a moment ago is only now being accepted: it gets its relay after the others have ended.
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            self._reset(lambda relay: True)
            await asyncio.wait(tasks, timeout=0.1)

    def _ask(self, question: Callable[[], T]) -> T:
        async def answer() -> T:
            return question()

        return asyncio.run_coroutine_threadsafe(answer(), self._loop).result(CONTROL_TIMEOUT)
