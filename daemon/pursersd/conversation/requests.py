"""What a conversation knows of its requests: which may have been carried out before, and what is due once one is delivered
or turns out to be lost.

The server knows a request by an id of its own (see RequestIds), the shim by the host's.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from pursersd.ids import RequestId

Acknowledge = Callable[[], Awaitable[None]]
Withdraw = Callable[[], None]

Value = TypeVar("Value")

REMEMBERED = 1000
"""Ids, and answers of which nobody said that they were delivered, that are remembered; the oldest are forgotten first."""


@dataclass(slots=True)
class _Answer:
    """What is due: `acknowledge` once the host has it, `withdraw` if it will never have it."""

    acknowledge: Acknowledge | None = None
    withdraw: Withdraw | None = None

    def lost(self) -> None:
        """The host will never have it."""
        if self.withdraw is not None:
            self.withdraw()


@dataclass(slots=True)
class _Request:
    host: RequestId
    age_s: float | None
    nth: int
    is_named: bool = False
    is_cancelled: bool = False
    answer: _Answer = field(default_factory=_Answer)

    @property
    def is_nameless(self) -> bool:
        """Whether it makes no difference to a later request of the same id."""
        return not self.is_named and self.nth == 0


class Requests:
    """The requests on one link of a conversation, by the server's id while they are in progress.

    What outlives a link (which answers are on their way, which ids were used) is shared with those of the next link.
    """

    def __init__(self) -> None:
        self._links = 0
        """How many links there have been, this one included."""
        self._running: dict[RequestId, _Request] = {}
        self._undelivered: dict[RequestId, _Answer] = {}
        """Answers to tool calls that the host may not have, by its id."""
        self._uses: dict[RequestId, int] = {}
        """How often an id was used before its newest request. Most requests have a new id and nobody asks for their name:
        these are forgotten with their answer."""

    def __repr__(self) -> str:
        return f"<Requests {len(self._running)} running, {len(self._undelivered)} undelivered, {len(self._uses)} ids>"

    def begin(self, host: RequestId, own: RequestId, age_s: float | None) -> None:
        """The server gets a request. `age_s`: how long it has been pending if it was sent before, else None."""
        # If this is the same request, its answer was lost; if the id is used again, nobody missed that answer.
        lost = self._undelivered.pop(host, None)
        if lost is not None and age_s is not None:
            lost.lost()
        known = self._uses.pop(host, None)
        nth = 0 if known is None else known if age_s is not None else known + 1
        self._uses[host] = nth
        _shorten(self._uses)
        self._running[own] = _Request(host, age_s, nth)

    def end(self, own: RequestId, *, answered: bool, is_call: bool = False) -> None:
        """The server is done with it; `answered`: with an answer that the shim will get; `is_call`: it was a tool call."""
        request = self._running.pop(own, None)
        if request is None:
            return
        if (answered or request.is_cancelled) and request.is_nameless and self._uses.get(request.host) == 0:
            del self._uses[request.host]
        if not answered:
            request.answer.lost()
        elif is_call or request.answer.acknowledge is not None:
            self._undelivered[request.host] = request.answer
            _shorten(self._undelivered)

    def leave(self, own: RequestId) -> bool:
        """Whether something is due once the answer is delivered; if so it is the next daemon's to give."""
        request = self._running.get(own)
        if request is None or request.answer.acknowledge is None:
            return False
        del self._running[own]
        return True

    @property
    def is_unreported(self) -> bool:
        """Whether something is due for an answer, and nobody has said yet that the host has it."""
        return any(answer.acknowledge is not None for answer in self._undelivered.values())

    @property
    def undelivered(self) -> int:
        """How many answers to tool calls the host may not have."""
        return len(self._undelivered)

    def next_link(self) -> "Requests":
        """Those of the next link: the shim asks again for what it has no answer to."""
        following = Requests()
        following._undelivered, following._uses = self._undelivered, self._uses
        following._links = self._links + 1
        return following

    def cancelled(self, host: RequestId) -> None:
        """The host wants no answer: what is due for it must not happen."""
        unwanted = self._undelivered.pop(host, None)
        if unwanted is not None:
            unwanted.lost()
        for request in self._running.values():
            request.is_cancelled |= request.host == host

    def was_sent_before(self, own: RequestId) -> bool:
        """Whether an earlier daemon, or this one on an earlier link, had it and may have carried it out."""
        return self._age_s(own) is not None

    def age_s(self, own: RequestId) -> float:
        """Seconds that it was pending before its link came back; 0 for one that was never sent before."""
        return self._age_s(own) or 0.0

    def began_elsewhere(self, own: RequestId) -> bool:
        """Whether it was sent before to a daemon that knew the conversation otherwise: what that one did is not known here."""
        return self.was_sent_before(own) and self._links == 1

    def name(self, own: RequestId) -> tuple[RequestId, int]:
        """What it is called over all links: the host's id, and how many requests had the same id before it."""
        request = self._running[own]
        request.is_named = True
        return request.host, request.nth

    def acknowledge_when_delivered(self, own: RequestId, acknowledge: Acknowledge) -> None:
        """Remember what is due once the shim says that the host has the answer (RB-DEL)."""
        if own in self._running:
            self._running[own].answer.acknowledge = acknowledge

    def withdraw_when_lost(self, own: RequestId, withdraw: Withdraw) -> None:
        """Remember what is due if the host does not get the answer."""
        if own in self._running:
            self._running[own].answer.withdraw = withdraw

    def take_due(self, host: RequestId) -> Acknowledge | None:
        """The host has the answer to the request with this id of its own: what is due now, if anything."""
        answer = self._undelivered.pop(host, None)
        return answer.acknowledge if answer is not None else None

    def _age_s(self, own: RequestId) -> float | None:
        request = self._running.get(own)
        return request.age_s if request is not None else None


def _shorten(entries: dict[RequestId, Value]) -> None:
    while len(entries) > REMEMBERED:
        del entries[next(iter(entries))]
