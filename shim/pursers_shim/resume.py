"""What must survive the loss of a link: the opening exchange, the unanswered requests, what the host was not told yet.

Bookkeeping only: no clock, no descriptor, no byte is read or written here. The relay tells it what happened and asks what
to say. Exactly one answer reaches the host for each request id: an answer passes only while its request is in the table.
"""

import json
from collections.abc import Iterator

from pursers_shim.message import PRIVATE_PREFIX, Notification, Request
from pursers_shim.wire import DELIVERED, encode, notification

__all__ = [
    "CANCELLED",
    "EARLY_AFTER",
    "EARLY_METHODS",
    "HOPELESS_GRACE",
    "INITIALIZE",
    "RESUME_GRACE",
    "START_GRACE",
    "TOOL_CALL",
    "Patience",
    "Pending",
    "Resume",
]

INITIALIZE = "initialize"
INITIALIZED = "notifications/initialized"
CANCELLED = "notifications/cancelled"
TOOL_CALL = "tools/call"

EARLY_METHODS = (INITIALIZE, "server/discover", "ping", "tools/list")
"""What a host asks before it does anything else, and does not wait for long."""

EARLY_AFTER = 0.4
"""Seconds until the shim answers one of EARLY_METHODS itself: hosts give up after 0.6 s (`codex exec`, measured)."""

START_GRACE = 10.0
"""Seconds that a request waits for a daemon, counted from its arrival."""

RESUME_GRACE = 30.0
"""Seconds that a request which was there before the link was lost waits for the next one, counted from the loss; any
request if the daemon said that another one follows it."""

HOPELESS_GRACE = 1.0
"""Seconds that a request waits when only a person can make a daemon appear."""

REPLAY_ID = PRIVATE_PREFIX + "opening"
"""The id of a replayed `initialize`. It is in no table, so the answer, which the host already has, goes nowhere."""

REPORT = "delivered "
"""Begins the tag of a report; no JSON id begins with a letter."""

ENTRY_COST = 1024
"""Bytes, about, that the table takes for an entry beside its line."""

REMEMBERED = 1000
"""Most reports and cancellations kept for the next link; the oldest are forgotten first."""


class Entry:
    """A line of the host that waits for a link, or for its answer."""

    __slots__ = ("line", "on_link", "sent")

    def __init__(self, line: bytes) -> None:
        self.line = line
        self.on_link = False
        """Handed to the link that is up now."""
        self.sent = False
        """A whole line of it has gone into some link: the daemon may have acted on it."""


class Pending(Entry):
    """A request that the host waits for."""

    __slots__ = ("arrived", "declined", "request")

    def __init__(self, request: Request, arrived: float) -> None:
        super().__init__(request.line)
        self.request = request
        self.arrived = arrived
        """Monotonic seconds."""
        self.declined = False
        """There is no early answer to it."""


class Resume:
    """One conversation as the shim remembers it."""

    # The only owner of all that outlives a link; the relay changes it through these methods alone.

    def __init__(self) -> None:
        self.unsent_bytes = 0
        """Of the lines that no link has taken in full."""
        self.kept_bytes = 0
        """Of all lines in the table and what the table itself takes for them."""
        self.kept: dict[str, object] = {}
        """What the daemon wants to be told again when it, or the next one, has forgotten it."""
        self._known: dict[str, object] = {}
        self._opening: bytes | None = None
        self._initialized: bytes | None = None
        self._table: dict[str, Entry] = {}
        self._notes = 0
        self._given_up: dict[str, None] = {}
        self._delivered: dict[str, bool] = {}
        """Reports for the daemon, by their tag, and whether the link that is up has been handed them."""
        self._active_at: float | None = None
        """When the model last called a tool or got the answer to such a call; None before the first."""

    def __repr__(self) -> str:
        return f"<Resume {len(self._table)} pending, {self.unsent_bytes} bytes unsent, open={self.is_open}>"

    def __contains__(self, key: str) -> bool:
        """Whether a request of this id is unanswered."""
        return key in self._table

    @property
    def is_open(self) -> bool:
        """Whether the legacy handshake was answered."""
        return self._opening is not None

    def welcomed(self, welcome: dict[str, object]) -> None:
        """Remember what the daemon calls this conversation."""
        self._known = {name: welcome.get(name) for name in ("conversation", "daemon_epoch", "link_epoch")}

    def forget(self) -> None:
        """The next link begins a conversation of its own."""
        self._known, self.kept = {}, {}

    def hello(self, now: float) -> dict[str, object] | None:
        """The `resume` member of the next hello, or None if no daemon has welcomed us yet."""
        if not self._known:
            return None
        sent = [{"id": p.request.id, "age_s": round(now - p.arrived, 3)} for p in self.pending() if p.sent]
        told = self._known | {"pending": sent, "idle_s": self._idle_s(now)}
        return told | {"kept": self.kept} if self.kept else told

    def add(self, request: Request, now: float) -> None:
        """Take a request of the host, whose id must not be in use."""
        self._enter(request.key, Pending(request, now))
        if request.method == TOOL_CALL:
            self._active_at = now

    def note(self, message: Notification) -> str | None:
        """Take a notification of the host; the key under which it waits for a link, None if it is part of the opening."""
        if message.method == INITIALIZED:
            self._initialized = message.line
            return None
        self._notes += 1
        key = f"note {self._notes}"  # like REPORT, this is no JSON id
        self._enter(key, Entry(message.line))
        return key

    def cancel(self, key: str) -> Pending | None:
        """The host wants no answer to this request any more. None if it is not pending."""
        return self._drop(key, later=True)

    def give_up(self, pending: Pending) -> None:
        """The shim answers this request itself; should the daemon know it, it hears of that on the next link."""
        self._drop(pending.request.key, later=pending.request.method != INITIALIZE)

    def answered(self, key: str, *, is_result: bool) -> Pending | None:
        """An answer to this request is about to go to the host. None: nobody waits for it, drop it."""
        pending = self._drop(key, later=False)
        if pending is not None and pending.request.method == INITIALIZE and is_result:
            self._opening = pending.line
        return pending

    def delivered(self, key: str, now: float) -> None:
        """The answer to this tool call was written to the host: tell the daemon, on this link or the next."""
        self._active_at = now
        self._delivered[REPORT + key] = False
        while len(self._delivered) > REMEMBERED:
            del self._delivered[next(iter(self._delivered))]

    def reports(self) -> Iterator[tuple[bytes, str]]:
        """Lines, with their tags, that tell the daemon which answers were delivered; each once per link."""
        for tag, is_handed_over in list(self._delivered.items()):
            if not is_handed_over:
                self._delivered[tag] = True
                yield notification(DELIVERED, {"id": json.loads(tag.removeprefix(REPORT))}), tag

    def attach(self) -> Iterator[tuple[bytes, str | None]]:
        """All that a new link must carry first, in order: (line, key of the table entry it belongs to).

        The opening exchange, what was cancelled or given up meanwhile (before a request that has such an id again), then the
        pending requests and held notifications as they came.
        """
        waiting = {key: entry for key, entry in self._table.items() if not entry.on_link}
        first = next((p.request.key for p in self.pending() if p.request.method == INITIALIZE), None)
        if self._opening is not None:
            yield _with_id(self._opening, REPLAY_ID), None
        elif first is not None:
            yield self._handed_over(first, waiting.pop(first))
        if self._initialized is not None and (self._opening is not None or first is not None):
            yield self._initialized, None
        while self._given_up:
            key = next(iter(self._given_up))
            del self._given_up[key]
            yield notification(CANCELLED, {"requestId": json.loads(key), "reason": "answered without you"}), None
        for key, entry in waiting.items():
            yield self._handed_over(key, entry)

    def hand_over(self, key: str) -> tuple[bytes, str]:
        """The line of one entry for the link that is up."""
        return self._handed_over(key, self._table[key])

    def was_sent(self, key: str) -> None:
        """The link has taken the whole line of this key or tag."""
        if self._delivered.pop(key, False):
            return
        entry = self._table.get(key)
        if entry is None or not entry.on_link:
            return
        if not isinstance(entry, Pending):
            self._remove(key)
        elif not entry.sent:
            entry.sent = True
            self.unsent_bytes -= len(entry.line)

    def detach(self) -> None:
        """The link is gone: whatever was handed to it must be handed to the next one."""
        for entry in self._table.values():
            entry.on_link = False
        self._delivered = dict.fromkeys(self._delivered, False)

    def pending(self) -> list[Pending]:
        """The requests that the host waits for, oldest first."""
        return [entry for entry in self._table.values() if isinstance(entry, Pending)]

    def _idle_s(self, now: float) -> float | None:
        """Seconds since the last sign of life of the model: 0 while a tool call runs, None if there never was one."""
        if any(p.request.method == TOOL_CALL for p in self.pending()):
            return 0.0
        return None if self._active_at is None else round(now - self._active_at, 3)

    def _enter(self, key: str, entry: Entry) -> None:
        self._table[key] = entry
        self.unsent_bytes += len(entry.line)
        self.kept_bytes += len(entry.line) + ENTRY_COST

    def _drop(self, key: str, *, later: bool) -> Pending | None:
        """Remove a request; with `later`, tell the daemon on the next link if it may know it from an earlier one."""
        pending = self._remove(key)
        if not isinstance(pending, Pending):
            return None
        if later and pending.sent and not pending.on_link:
            self._given_up[key] = None
            while len(self._given_up) > REMEMBERED:
                del self._given_up[next(iter(self._given_up))]
        return pending

    def _remove(self, key: str) -> Entry | None:
        entry = self._table.pop(key, None)
        if entry is not None:
            self.kept_bytes -= len(entry.line) + ENTRY_COST
            self.unsent_bytes -= 0 if entry.sent else len(entry.line)
        return entry

    @staticmethod
    def _handed_over(key: str, entry: Entry) -> tuple[bytes, str]:
        entry.on_link = True
        return entry.line, key


class Patience:
    """Until when a request waits for the daemon. Times are monotonic seconds; infinity stands for never."""

    def __init__(self, now: float) -> None:
        self.down_since: float | None = now
        """Since when no daemon has welcomed us; None while one has."""
        self.is_alive = False
        """The daemon has answered something on this link."""
        self.is_hopeless = False
        """Only a person can make a daemon appear."""
        self.is_promised = False
        """The daemon that went, or sent us away, said that another one follows it."""

    def early_at(self, pending: Pending) -> float:
        """When the request gets an early answer.

        The wait is spent once per outage: a host asks for the tools only after it has the answer to `initialize`.
        """
        if self.is_alive or pending.declined or pending.request.method not in EARLY_METHODS:
            return float("inf")
        if self.down_since is None:
            return pending.arrived + EARLY_AFTER
        return max(pending.arrived, self.down_since + EARLY_AFTER)

    def give_up_at(self, pending: Pending) -> float:
        """When the request is answered with an error. Never while a daemon has it, however slow that is."""
        if self.down_since is None:
            return float("inf")
        if pending.arrived < self.down_since:
            return self.down_since + RESUME_GRACE
        last = pending.arrived + (HOPELESS_GRACE if self.is_hopeless else START_GRACE)
        return max(last, self.down_since + RESUME_GRACE) if self.is_promised else last


def _with_id(line: bytes, identity: str) -> bytes:
    message = json.loads(line)
    message["id"] = identity
    return encode(message)
