"""On whose behalf Central is called: every request is counted for a conversation's seat (bridge.md §7.2).

The account is bound to the running task, and tasks that it starts inherit it, because a call passes through many hands
(seats, feed, shared reads) that have no other use for it. A read that serves several seats is counted once, for the one
who asked. Calls without an account, such as subscriptions, are not counted.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from pursersd.rules.stats import (
    CONTEXT_READS,
    error_size,
    outcome_of,
    pushed_boards,
    request_size,
    size,
    unavailable_boards,
)
from pursersd.state.stats import StatsWriter

_account: ContextVar["Account | None"] = ContextVar("account", default=None)


@dataclass(frozen=True, slots=True)
class Account:
    """A seat and the file in which its calls are counted."""

    writer: StatsWriter
    seat: Callable[[], tuple[str, str]]
    """Board and name of the seat at this moment: both hold where a call names no other, the board for results."""
    cycle: dict[tuple[str, str], int] = field(default_factory=dict)
    """Bytes that context reads brought, by board and agent."""

    def called(self, tool: str, arguments: Mapping[str, object], *, request_bytes: int, response_bytes: int) -> None:
        """A call ended."""
        home, name = self.seat()
        board, agent = str(arguments.get("board_id") or home), str(arguments.get("agent_name") or name)
        self.writer.count.called(
            datetime.now(UTC), board, agent, tool, request_bytes=request_bytes, response_bytes=response_bytes
        )
        if tool in CONTEXT_READS:
            self.cycle[board, agent] = self.cycle.get((board, agent), 0) + response_bytes

    def cycled(self) -> None:
        """The wait is over for which this account was made."""
        for (board, agent), brought in self.cycle.items():
            self.writer.count.cycled(datetime.now(UTC), board, agent, brought)

    def returned(self, result: Mapping[str, object]) -> None:
        """The result of a wait goes to the model."""
        now, count, outcome = datetime.now(UTC), self.writer.count, outcome_of(result)
        home, name = self.seat()
        count.returned(
            now,
            home,
            name,
            size(result),
            outcome=outcome,
            mode=str(result.get("mode") or "unknown"),
            reason=str(result.get("reason") or outcome),
        )
        for board in pushed_boards(result, home):
            count.pushes(now, board, name)
        for board, reason in unavailable_boards(result).items():
            count.unavailable(now, board, name, reason)

    def digested(self, result: Mapping[str, object]) -> None:
        """A digest goes to the model."""
        home, name = self.seat()
        self.writer.count.returned(
            datetime.now(UTC), home, name, size(result), outcome="digest", mode="digest", reason="digest"
        )

    def polled(self, board: str, reason: str) -> None:
        """A wait follows a board by polling, although it wants push."""
        self.writer.count.unavailable(datetime.now(UTC), board, self.seat()[1], reason)


class Charge:
    """One call: a context in which it is made. Leaving it counts the call, as failed unless `answered` was called."""

    def __init__(self, tool: str, arguments: Mapping[str, object], meta: Mapping[str, object] | None) -> None:
        self._response_bytes: int | None = None
        self._account = _account.get()
        self._tool = tool
        self._arguments = arguments
        self._request_bytes = request_size(tool, arguments, meta) if self._account is not None else 0

    def answered(self, text: bytes, result: object) -> None:
        """The answer is `result`; it came as `text`, which is compact, but may have escapes in the place of letters."""
        if self._account is not None:
            self._response_bytes = size(result) if b"\\u" in text else len(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._account is None:
            return
        answer = self._response_bytes
        if kind is not None or answer is None:
            answer = error_size(kind.__name__ if kind is not None else "Unanswered")
        self._account.called(self._tool, self._arguments, request_bytes=self._request_bytes, response_bytes=answer)


def current() -> Account | None:
    """Who pays for what this task does now."""
    return _account.get()


@contextmanager
def charged_to(account: Account | None) -> Iterator[None]:
    """Within it, this task's calls are made on behalf of `account`; None leaves them uncounted."""
    token = _account.set(account)
    try:
        yield
    finally:
        _account.reset(token)


@contextmanager
def cycle_of(account: Account | None) -> Iterator[None]:
    """One wait on behalf of `account`: what its context reads brought is a poll cycle, however it ends."""
    try:
        with charged_to(account):
            yield
    finally:
        if account is not None:
            account.cycled()
