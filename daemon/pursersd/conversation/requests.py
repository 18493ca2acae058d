"""What a conversation knows of its requests: which may have been carried out before, and what is due once one is delivered.

The server knows a request by an id of its own (see RequestIds), the shim by the host's.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pursersd.ids import RequestId

Acknowledge = Callable[[], Awaitable[None]]

REMEMBERED = 1000
"""Ids, and answers of which nobody said that they were delivered, that are remembered; the oldest are forgotten first."""


@dataclass(slots=True)
class _Request:
    host: RequestId
    age_s: float | None
    nth: int
    acknowledge: Acknowledge | None = None


class Requests:
    """The requests on one link of a conversation, by the server's id while they are in progress.

    What outlives a link (which answers are on their way, which ids were used) is shared with those of the next link.
    """

    def __init__(self) -> None:
        self._running: dict[RequestId, _Request] = {}
        self._undelivered: OrderedDict[RequestId, Acknowledge | None] = OrderedDict()
        """Answers to tool calls that the host may not have, by its id, and what is due once it has them."""
        self._uses: OrderedDict[RequestId, int] = OrderedDict()
        """How often an id was used before its newest request."""

    def begin(self, host: RequestId, own: RequestId, age_s: float | None) -> None:
        """The server gets a request. `age_s`: how long it has been pending if it was sent before, else None."""
        # If this is the same request, its answer was lost; if the id is used again, nobody missed that answer.
        self._undelivered.pop(host, None)
        known = self._uses.pop(host, None)
        nth = 0 if known is None else known if age_s is not None else known + 1
        self._uses[host] = nth
        _shorten(self._uses)
        self._running[own] = _Request(host, age_s, nth)

    def end(self, own: RequestId, *, answered: bool, is_call: bool = False) -> None:
        """The server is done with it; `answered`: with an answer that the shim will get; `is_call`: it was a tool call."""
        request = self._running.pop(own, None)
        if request is not None and answered and (is_call or request.acknowledge is not None):
            self._undelivered[request.host] = request.acknowledge
            _shorten(self._undelivered)

    def leave(self, own: RequestId) -> bool:
        """Whether something is due once the answer is delivered; if so it is the next daemon's to give."""
        request = self._running.get(own)
        if request is None or request.acknowledge is None:
            return False
        del self._running[own]
        return True

    @property
    def is_unreported(self) -> bool:
        """Whether something is due for an answer, and nobody has said yet that the host has it."""
        return any(due is not None for due in self._undelivered.values())

    @property
    def undelivered(self) -> int:
        """How many answers to tool calls the host may not have."""
        return len(self._undelivered)

    def next_link(self) -> "Requests":
        """Those of the next link: the shim asks again for what it has no answer to."""
        following = Requests()
        following._undelivered, following._uses = self._undelivered, self._uses
        return following

    def cancelled(self, host: RequestId) -> None:
        """The host wants no answer: what is due for it must not happen."""
        self._undelivered.pop(host, None)

    def was_sent_before(self, own: RequestId) -> bool:
        """Whether an earlier daemon, or this one on an earlier link, had it and may have carried it out."""
        return self._age_s(own) is not None

    def age_s(self, own: RequestId) -> float:
        """Seconds that it was pending before its link came back; 0 for one that was never sent before."""
        return self._age_s(own) or 0.0

    def name(self, own: RequestId) -> tuple[RequestId, int]:
        """What it is called over all links: the host's id, and how many requests had the same id before it."""
        request = self._running[own]
        return request.host, request.nth

    def acknowledge_when_delivered(self, own: RequestId, acknowledge: Acknowledge) -> None:
        """Remember what is due once the shim says that the host has the answer (RB-DEL)."""
        if own in self._running:
            self._running[own].acknowledge = acknowledge

    def take_due(self, host: RequestId) -> Acknowledge | None:
        """The host has the answer to the request with this id of its own: what is due now, if anything."""
        return self._undelivered.pop(host, None)

    def _age_s(self, own: RequestId) -> float | None:
        request = self._running.get(own)
        return request.age_s if request is not None else None


def _shorten(entries: OrderedDict[RequestId, Acknowledge | None] | OrderedDict[RequestId, int]) -> None:
    while len(entries) > REMEMBERED:
        entries.popitem(last=False)
