"""What passes between the host and the daemon, line by line, and what the shim says itself in between.

Lines are queued here, never written; when a link comes and goes is the relay's business.
"""

import time
from collections.abc import Callable

from pursers_shim.dial import Trouble
from pursers_shim.host import Host
from pursers_shim.link import LAST_WORD, Link, Welcome
from pursers_shim.message import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PRIVATE_PREFIX,
    Notification,
    Refused,
    Request,
    Response,
    error,
    id_key,
    lost_id,
    read,
    too_long,
)
from pursers_shim.resume import CANCELLED, TOOL_CALL, Patience, Pending, Resume
from pursers_shim.wire import MAX_LINE, LineTooLong, notification

__all__ = ["NEVER", "Exchange"]

NEVER = float("inf")


class Exchange:
    """The conversation as it passes through: `link` is the one that may carry lines, None while there is none."""

    def __init__(
        self,
        host: Host,
        answer: Callable[[Request, bool], bytes | None],
        unavailable: Callable[[Request, Trouble, bool], bytes],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`answer` and `unavailable` are those of an `Early`."""
        self.link: Link | None = None
        self.leaving: Link | None = None
        """The one whose daemon lets running calls end before it goes: it is told last words, and nothing new."""
        self.resume = Resume()
        self.patience = Patience(clock())
        self.own_bytes = 0
        """Of the answers given here since stdout last took everything: a host that reads nothing must not go on asking."""
        self._host = host
        self._answer = answer
        self._unavailable = unavailable
        self._clock = clock
        self._line_limit = MAX_LINE

    def __repr__(self) -> str:
        return f"<Exchange {self.link!r} {self.resume!r} own={self.own_bytes}>"

    def next_due(self) -> float:
        """When `answer_overdue` has something to do."""
        if self.patience.is_alive:
            return NEVER
        times = [min(self.patience.early_at(p), self.patience.give_up_at(p)) for p in self.resume.pending()]
        return min(times, default=NEVER)

    # --- from the host ---

    def from_host(self, line: bytes | LineTooLong) -> bool:
        """Take one line of the host. True if it is a request that has to wait for a daemon."""
        message = too_long(line.head, line.tail, MAX_LINE) if isinstance(line, LineTooLong) else read(line)
        if isinstance(message, Request):
            return self._request(message)
        if isinstance(message, Refused):
            self._say(message.answer)
        elif isinstance(message, Notification):
            self._notification(message)
        elif isinstance(message, Response):
            self._response(message)
        return False

    def _request(self, request: Request) -> bool:
        wrong = self._objection(request)
        if wrong is not None:
            self._say(wrong)
            return False
        self.resume.add(request, self._clock())
        self._hand_over(request.key)
        return self.link is None

    def _objection(self, request: Request) -> bytes | None:
        if request.method.startswith(PRIVATE_PREFIX):
            return error(request.id, METHOD_NOT_FOUND, f"{request.method} is not a method of this server.")
        if request.key in self.resume:
            text = f"The id {request.key} belongs to a request that is still unanswered. Use a new id for each request."
            return error(None, INVALID_REQUEST, text)
        return self._too_long_for_daemon(request)

    def _too_long_for_daemon(self, request: Request) -> bytes | None:
        if len(request.line) <= self._line_limit + 1:
            return None
        return error(request.id, INVALID_REQUEST, f"The daemon takes lines of {self._line_limit} bytes. Send less.")

    def _notification(self, message: Notification) -> None:
        if message.method.startswith(PRIVATE_PREFIX):
            return
        if message.method == CANCELLED:
            self._cancel(message)
            return
        key = self.resume.note(message)
        if key is not None:
            self._hand_over(key)
        elif self.link is not None:
            self.link.send(message.line)

    def _cancel(self, message: Notification) -> None:
        """To the daemon that has the request, be it on its way out: what nobody waits for must not go on."""
        pending = self.resume.cancel(message.cancels) if message.cancels is not None else None
        if pending is None:
            return
        link = self.link if pending.on_link else self.leaving if pending.sent else None
        if link is not None:
            link.send(message.line, LAST_WORD, is_last_word=True)

    def _response(self, message: Response) -> None:
        """To the link that asked; an answer to a question of an earlier link would be taken for another one's."""
        link = self.link or self.leaving
        if link is not None and message.key in link.asked:
            link.asked.discard(message.key)
            link.send(message.line, LAST_WORD, is_last_word=True)

    def _hand_over(self, key: str) -> None:
        if self.link is not None:
            self.link.send(*self.resume.hand_over(key))

    # --- from the daemon ---

    def from_daemon(self, link: Link, line: bytes, value: dict[str, object]) -> None:
        """Take one MCP line of the daemon, parsed: `value`."""
        if isinstance(value.get("method"), str):
            if "id" in value:
                link.asked.add(id_key(value["id"]))
            elif value["method"] == CANCELLED:
                link.asked.discard(_cancelled(value.get("params")))
            self._host.send(line + b"\n")
        elif "id" in value:
            self.patience.is_alive = link is self.link
            pending = self.resume.answered(id_key(value["id"]), is_result="result" in value)
            if pending is not None:
                self._host.send(line + b"\n", pending.request.key if pending.request.method == TOOL_CALL else None)

    def cut_answer(self, line: LineTooLong) -> None:
        """The daemon sent a line that is too long."""
        identity = lost_id(line.head, line.tail)
        if identity is not None and self.resume.answered(id_key(identity), is_result=False) is not None:
            text = f"The answer is longer than {MAX_LINE} bytes and cannot be passed on. Ask for less."
            self._say(error(identity, INTERNAL_ERROR, text))

    # --- links come and go ---

    def attach(self, link: Link, welcome: Welcome) -> None:
        """`link` carries the conversation from now on: hand it the opening and all that waits."""
        self.link = link
        self.patience.down_since = None
        self._line_limit = welcome.line_limit
        for pending in self.resume.pending():
            wrong = self._too_long_for_daemon(pending.request)
            if wrong is not None:
                self.resume.give_up(pending)
                self._say(wrong)
        self.resume.welcomed(welcome.names)
        for line, key in self.resume.attach():
            link.send(line, key)

    def report(self) -> None:
        """Tell the daemon which answers the host has got."""
        link = self.link or self.leaving
        if link is not None:
            for line, tag in self.resume.reports():
                link.send(line, tag, is_last_word=True)

    def hold(self, link: Link) -> None:
        """`link` gets nothing new, but its daemon still works at what it has: the time without one has not begun."""
        self.link, self.leaving = None, link
        self.patience.is_alive = False
        self.resume.detach()

    def detach(self, link: Link) -> None:
        """Nothing more goes out on `link`; what it had taken and not answered waits for the next one."""
        if link in (self.link, self.leaving):
            self.link = self.leaving = None
            self.patience.down_since = self._clock()
            self.patience.is_alive = False
            self.resume.detach()
        while link.asked:
            # The next daemon numbers its questions anew, so a late answer to this one must not come.
            self._host.send(notification(CANCELLED, {"requestId": link.pop_asked(), "reason": "connection lost"}))

    def answer_overdue(self, why: Callable[[], Trouble]) -> None:
        """Answer the requests that have waited long enough; `why` tells the reason, if it is needed."""
        if self.patience.is_alive:
            return
        now = self._clock()
        for pending in self.resume.pending():
            if self.patience.early_at(pending) <= now:
                self._answer_early(pending)
            elif self.patience.give_up_at(pending) <= now:
                self._fail(pending, why())

    def answer_early(self) -> None:
        """Answer of the opening what the daemon has not answered yet, without waiting longer."""
        for pending in self.resume.pending():
            if self.patience.early_at(pending) < NEVER:
                self._answer_early(pending)

    def fail_all(self, why: Trouble) -> None:
        """No daemon will answer what is pending now."""
        self.answer_early()
        for pending in self.resume.pending():
            self._fail(pending, why)

    def _answer_early(self, pending: Pending) -> None:
        line = self._answer(pending.request, self.resume.is_open)
        if line is None:
            pending.declined = True
        else:
            self.resume.answered(pending.request.key, is_result=True)
            self._say(line)

    def _fail(self, pending: Pending, why: Trouble) -> None:
        self.resume.give_up(pending)
        self._say(self._unavailable(pending.request, why, pending.sent))

    def _say(self, line: bytes) -> None:
        """An answer of our own."""
        self.own_bytes += len(line)
        self._host.send(line)


def _cancelled(params: object) -> str:
    """The key of the question that the daemon takes back."""
    return id_key(params.get("requestId") if isinstance(params, dict) else None)
