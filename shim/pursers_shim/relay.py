"""The relay: lines from the host to the daemon and back, in one loop that never blocks on either.

The loop waits for whatever can move, moves it, and does what is due. What a line means is decided in `message`, what
outlives a link in `resume`, how a daemon is found in `dial`; the answers of our own come from outside (`early`).
"""

import select
import time
from collections.abc import Callable

from pursers_shim.dial import Dialer, Trouble
from pursers_shim.host import BROKEN, HANG_UP, Host, HostGone
from pursers_shim.link import Link, Refusal, Welcome, greeting, hello
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
    parse,
    read,
    too_long,
)
from pursers_shim.resume import CANCELLED, TOOL_CALL, Patience, Pending, Resume
from pursers_shim.wire import DRAIN, EXIT, MAX_LINE, RESTART, STOP, LineTooLong, notification

__all__ = ["Relay"]

QUEUE_LIMIT = 1024 * 1024
"""Bytes queued in one direction beyond which the other end is not read; one line may come on top."""

KEPT_LIMIT = 64 * 1024 * 1024
"""Bytes of unanswered requests beyond which the host is not read."""

END_GRACE = 0.25
"""Seconds after the end of stdin for answers that are on their way; `printf … | pursers-shim` prints them."""

HANG_UP_GRACE = 1.0
"""Seconds between the host's death and ours while its last lines wait for a daemon that does not take them."""

LEAVE_GRACE = 5.0
"""Seconds that a daemon which said that it leaves may keep the link open."""

NEVER = float("inf")


class Relay:
    """One conversation's two ends, from the first line of the host to its last."""

    def __init__(
        self,
        host: Host,
        dialer: Dialer,
        facts: dict[str, object],
        answer: Callable[[Request, bool], bytes | None],
        unavailable: Callable[[Request, Trouble, bool], bytes],
        wake: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`facts` go into `hello`; `answer` and `unavailable` are those of `early`; a byte in `wake` ends the relay."""
        self._host = host
        self._dialer = dialer
        self._facts = facts
        self._answer = answer
        self._unavailable = unavailable
        self._wake = wake
        self._clock = clock
        self._resume = Resume()
        self._patience = Patience(clock())
        self._link: Link | None = None
        self._line_limit = MAX_LINE
        self._is_parked = False
        """The daemon refused us for good: ask again only when the host wants something."""
        self._is_restarting = False
        """The daemon said that another one follows it."""
        self._is_done = False
        self._input_open = True
        self._leave_at = NEVER
        self._hang_up_at = NEVER
        self._link_over_at = NEVER

    def __repr__(self) -> str:
        return f"<Relay {self._link!r} {self._resume!r} out={self._host.outbox!r} parked={self._is_parked}>"

    def run(self) -> None:
        """Relay until the host is gone or the daemon says `exit`. Never raises for what either end does."""
        try:
            self._wait(0.0)  # a host that is gone already needs no daemon
            while not self._is_over():
                self._dial()
                self._answer_overdue()
                self._flush()
                self._wait(max(self._next_due() - self._clock(), 0.0))
            self._part()
        except HostGone:
            pass
        finally:
            if self._link is not None:
                self._link.close()

    # --- the loop ---

    def _is_over(self) -> bool:
        if self._is_done or self._clock() >= min(self._leave_at, self._hang_up_at):
            return True
        if self._input_open or self._host.outbox.size:
            return False
        owed = self._resume.pending()
        if not self._host.has_file_input:
            owed = [
                p for p in owed if self._link is not None and p.request is not None and p.request.method != TOOL_CALL
            ]
        return not owed

    def _part(self) -> None:
        """Say what can be said without waiting: the handshake, if the daemon did not come to it, and the last reports."""
        if self._is_done:
            return
        for pending in self._resume.pending():
            if self._patience.early_at(pending) < NEVER:
                self._answer_early(pending)
        self._flush()

    def _next_due(self) -> float:
        due = [self._leave_at, self._hang_up_at, self._link_over_at]
        if self._link is None and not self._is_parked:
            due.append(self._dialer.next_at)
        if not self._patience.is_alive:
            for pending in self._resume.pending():
                due += (self._patience.early_at(pending), self._patience.give_up_at(pending))
        return min(due)

    def _wait(self, timeout: float) -> None:
        """Wait until something can move or `timeout` has passed, and move it."""
        host, link = self._host, self._link
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        poller.register(host.stdout, select.POLLOUT if host.outbox.size else 0)
        may_read = self._may_read()
        if self._input_open and (may_read or self._hang_up_at == NEVER):
            poller.register(host.stdin, select.POLLIN if may_read else HANG_UP)
        if link is not None and (wanted := self._wanted(link)):
            poller.register(link.fd, wanted)
        for fd, events in poller.poll(None if timeout == NEVER else int(timeout * 1000) + (timeout > 0)):
            if fd == self._wake or (fd == host.stdout and events & BROKEN):
                self._is_done = True
            elif fd == host.stdin:
                self._hear_host(may_read)
            elif link is not None and fd == link.fd and link is self._link and events & ~select.POLLOUT:
                self._hear_daemon(link)
        self._flush()

    def _may_read(self) -> bool:
        """Whether there is room for more of the host's lines."""
        queued = [self._resume.unsent_bytes, self._host.outbox.size, self._link.outbox.size if self._link else 0]
        return max(queued) <= QUEUE_LIMIT and self._resume.kept_bytes <= KEPT_LIMIT

    def _wanted(self, link: Link) -> int:
        events = select.POLLIN if self._host.outbox.size <= QUEUE_LIMIT else 0
        return events | (select.POLLOUT if link.wants_to_write else 0)

    def _flush(self) -> None:
        """Write what both ends take now, and note what that means."""
        for key in self._host.flush():
            self._resume.delivered(key)
        link = self._link
        if link is None:
            return
        if link.is_welcome and not link.is_leaving:
            for line in self._resume.take_reports():
                link.send(line)
        for key in link.flush():
            self._resume.was_sent(key)

    # --- from the host ---

    def _hear_host(self, may_read: bool) -> None:
        if not may_read:
            self._hang_up_at = self._clock() + HANG_UP_GRACE
            return
        lines, has_ended = self._host.receive()
        for line in lines:
            self._from_host(line)
        self._hang_up_at = NEVER
        if has_ended:
            self._input_open = False
            if not self._host.has_file_input:
                self._leave_at = self._clock() + END_GRACE

    def _from_host(self, line: bytes | LineTooLong) -> None:
        if isinstance(line, LineTooLong):
            self._host.send(too_long(line.head, line.tail, MAX_LINE).answer)
            return
        message = read(line)
        if isinstance(message, Refused):
            self._host.send(message.answer)
        elif isinstance(message, Request):
            self._request(message)
        elif isinstance(message, Notification):
            self._notification(message)
        elif isinstance(message, Response):
            self._response(message)

    def _request(self, request: Request) -> None:
        wrong = self._objection(request)
        if wrong is not None:
            self._host.send(wrong)
            return
        self._resume.add(request, self._clock())
        if self._speaking() is None:
            self._is_parked = False
            self._dialer.hurry()
        else:
            self._hand_over(request.key)

    def _objection(self, request: Request) -> bytes | None:
        if request.method.startswith(PRIVATE_PREFIX):
            return error(request.id, METHOD_NOT_FOUND, f"{request.method} is not a method of this server.")
        if request.key in self._resume:
            text = f"The id {request.key} belongs to a request that is still unanswered. Use a new id for each request."
            return error(None, INVALID_REQUEST, text)
        if len(request.line) > self._line_limit + 1:
            return error(request.id, INVALID_REQUEST, f"The daemon takes lines of {self._line_limit} bytes. Send less.")
        return None

    def _notification(self, message: Notification) -> None:
        link = self._speaking()
        if message.method.startswith(PRIVATE_PREFIX):
            return
        if message.method == CANCELLED:
            cancelled = self._resume.cancel(message.cancels) if message.cancels is not None else None
            if cancelled is not None and cancelled.on_link and link is not None:
                link.send(message.line)
            return
        key = self._resume.note(message, self._clock())
        if link is None:
            return
        if key is None:
            link.send(message.line)
        else:
            self._hand_over(key)

    def _response(self, message: Response) -> None:
        """To the link that asked; an answer to a question of an earlier link would be taken for another one's."""
        link = self._speaking()
        if link is not None and message.key in link.asked:
            link.asked.discard(message.key)
            link.send(message.line)

    def _hand_over(self, key: str) -> None:
        link = self._speaking()
        if link is not None:
            link.send(*self._resume.hand_over(key))

    def _speaking(self) -> Link | None:
        """The link, if lines of the host may go to it."""
        link = self._link
        return link if link is not None and link.is_welcome and not link.is_leaving else None

    # --- from the daemon ---

    def _hear_daemon(self, link: Link) -> None:
        lines = link.receive()
        if lines is None:
            self._lost(link)
            return
        for line in lines:
            if link is not self._link or self._is_done:
                return
            self._from_daemon(link, line)

    def _from_daemon(self, link: Link, line: bytes | LineTooLong) -> None:
        if isinstance(line, LineTooLong):
            self._cut_answer(line)
            return
        value, _ = parse(line)
        if not isinstance(value, dict):
            return  # nothing but messages may reach the host
        method = value.get("method")
        if not link.is_welcome:
            self._greeted(link, greeting(value))
        elif isinstance(method, str) and method.startswith(PRIVATE_PREFIX):
            self._told(link, method, value.get("params"))
        elif isinstance(method, str):
            if "id" in value:
                link.asked.add(id_key(value["id"]))
            self._host.send(line + b"\n")
        elif "id" in value:
            self._patience.is_alive = not link.is_leaving
            pending = self._resume.answered(id_key(value["id"]), is_result="result" in value)
            if pending is not None and pending.request is not None:
                self._host.send(line + b"\n", pending.request.key if pending.request.method == TOOL_CALL else None)

    def _cut_answer(self, line: LineTooLong) -> None:
        identity = lost_id(line.head, line.tail)
        if identity is not None and self._resume.answered(id_key(identity), is_result=False) is not None:
            text = f"The answer is longer than {MAX_LINE} bytes and cannot be passed on. Ask for less."
            self._host.send(error(identity, INTERNAL_ERROR, text))

    def _greeted(self, link: Link, greeted: Welcome | Refusal) -> None:
        if isinstance(greeted, Refusal):
            why = Trouble(greeted.text, "Look at it with: pursersctl status", greeted.is_final)
            self._dropped(link)
            self._dialer.lost(why)
            if greeted.is_final:
                self._is_parked = True
                self._fail_all(why)
            return
        link.is_welcome = True
        self._is_restarting = False
        self._patience.down_since = None
        self._dialer.welcomed()
        self._line_limit = greeted.line_limit
        self._resume.welcomed(greeted.names)
        for line, key in self._resume.attach():
            link.send(line, key)

    def _told(self, link: Link, method: str, params: object) -> None:
        """A message of the link itself."""
        if method == EXIT:
            self._is_done = True
        elif method == DRAIN and not link.is_leaving:
            reason = params.get("reason") if isinstance(params, dict) else None
            link.is_leaving = True
            self._link_over_at = self._clock() + LEAVE_GRACE
            self._is_restarting = reason == RESTART
            self._went_down(link)
            if reason == STOP:
                text = "The daemon was stopped with `pursersctl stop`."
                self._fail_all(Trouble(text, "Start it with: pursersctl start", is_hopeless=True))

    # --- without a daemon ---

    def _dial(self) -> None:
        now = self._clock()
        if self._link is not None and now >= self._link_over_at:
            self._lost(self._link)
        if self._link is not None or self._is_parked or now < self._dialer.next_at:
            return
        connection = self._dialer.attempt()
        self._patience.is_hopeless = self._dialer.trouble().is_hopeless and not self._is_restarting
        if connection is not None:
            self._link = Link(connection)
            self._link.send(hello(self._facts, self._resume.hello(now)))

    def _lost(self, link: Link) -> None:
        self._dropped(link)
        self._dialer.lost()

    def _dropped(self, link: Link) -> None:
        self._went_down(link)
        link.close()
        self._link = None
        self._link_over_at = NEVER

    def _went_down(self, link: Link) -> None:
        """Nothing more goes out on this link; what it had taken and not answered waits for the next one."""
        if self._patience.down_since is None:
            self._patience.down_since = self._clock()
        self._patience.is_alive = False
        self._resume.detach()
        while link.asked:
            params: dict[str, object] = {"requestId": parse(link.asked.pop().encode())[0], "reason": "connection lost"}
            self._host.send(notification(CANCELLED, params))

    def _answer_overdue(self) -> None:
        if self._patience.is_alive:
            return
        now = self._clock()
        for pending in self._resume.pending():
            if self._patience.early_at(pending) <= now:
                self._answer_early(pending)
            elif self._patience.give_up_at(pending) <= now:
                self._fail(pending, self._dialer.trouble())

    def _answer_early(self, pending: Pending) -> None:
        request = pending.request
        line = self._answer(request, self._resume.is_open) if request is not None else None
        if request is None or line is None:
            pending.declined = True
            return
        self._resume.answered(request.key, is_result=True)
        self._host.send(line)

    def _fail_all(self, why: Trouble) -> None:
        for pending in self._resume.pending():
            if self._patience.early_at(pending) < NEVER:
                self._answer_early(pending)
            if pending.request is not None and pending.request.key in self._resume:
                self._fail(pending, why)

    def _fail(self, pending: Pending, why: Trouble) -> None:
        if pending.request is not None:
            self._resume.give_up(pending)
            self._host.send(self._unavailable(pending.request, why, pending.sent))
