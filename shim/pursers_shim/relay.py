"""The relay: one loop over stdin, stdout, the link and the signals, which never blocks on any of them.

The loop waits for whatever can move, moves it, and does what is due. What the lines mean is decided in `exchange`, how a
daemon is found in `dial`; here links come and go, and the end comes.
"""

import select
import time
from collections.abc import Callable

from pursers_shim.dial import Dialer, Trouble
from pursers_shim.exchange import NEVER, Exchange
from pursers_shim.host import BROKEN, HANG_UP, Host, HostGone
from pursers_shim.link import Link, Refusal, Welcome, greeting, hello
from pursers_shim.message import PRIVATE_PREFIX, parse
from pursers_shim.resume import TOOL_CALL
from pursers_shim.wire import DRAIN, DRAINED, EXIT, FENCE, KEEP, RESTART, STOP, LineTooLong, notification

__all__ = ["Relay"]

QUEUE_LIMIT = 1024 * 1024
"""Bytes queued in one direction beyond which the other end is not read; one line may come on top."""

KEPT_LIMIT = 64 * 1024 * 1024
"""Bytes of unanswered requests beyond which the host is not read."""

END_GRACE = 0.25
"""Seconds after the end of stdin for answers that are on their way; `printf … | pursers-shim` prints them."""

HANG_UP_GRACE = 1.0
"""Seconds between the host's death and ours while its last lines wait for a daemon that does not take them."""

LEAVE_GRACE = 2.0
"""Seconds that a daemon which said that it leaves may keep the link open, beyond the time that it asked for."""

LONGEST_DRAIN = 60.0
"""Seconds that it may ask for, so that its running calls can end."""

_STOPPED = Trouble(
    "The daemon was stopped with `pursersctl stop`.", "Start it with: pursersctl start", is_hopeless=True
)
_FENCED = Trouble(
    "Another link has taken over this conversation.", "Call again: this one goes on as a new conversation."
)


class Relay:
    """One conversation's two ends, from the first line of the host to its last."""

    def __init__(
        self,
        host: Host,
        dialer: Dialer,
        exchange: Exchange,
        facts: dict[str, object],
        wake: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`facts` go into `hello`; a byte in the descriptor `wake` ends the relay."""
        self._host = host
        self._dialer = dialer
        self._exchange = exchange
        self._facts = facts
        self._wake = wake
        self._clock = clock
        self._link: Link | None = None
        """The open connection, from `hello` to its end: the exchange's link only between `welcome` and `drain`."""
        self._is_parked = False
        """The daemon refused us for good: ask again only when the host wants something."""
        self._is_restarting = False
        """The daemon said that another one follows it."""
        self._is_stopping = False
        """The daemon said that none follows it, and has calls in progress."""
        self._is_done = False
        self._input_open = True
        self._leave_at = NEVER
        self._hang_up_at = NEVER
        self._link_over_at = NEVER

    def __repr__(self) -> str:
        return f"<Relay {self._link!r} {self._exchange!r} out={self._host.outbox!r} parked={self._is_parked}>"

    def run(self) -> None:
        """Relay until the host is gone or the daemon says `exit`. Never raises for what either end does."""
        try:
            self._wait(0.0)  # a host that is gone already needs no daemon
            while not self._is_over():
                self._dial()
                self._exchange.answer_overdue(self._dialer.trouble)
                self._flush()
                self._wait(max(self._next_due() - self._clock(), 0.0))
            if not self._is_done:
                # The handshake, if the daemon did not come to it, and the last reports.
                self._exchange.answer_early()
                self._flush()
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
        owed = self._exchange.resume.pending()
        if self._host.has_file_input:
            return not owed
        return self._link is None or all(pending.request.method == TOOL_CALL for pending in owed)

    def _next_due(self) -> float:
        dial_at = self._dialer.next_at if self._link is None and not self._is_parked else NEVER
        return min(dial_at, self._exchange.next_due(), self._leave_at, self._hang_up_at, self._link_over_at)

    def _wait(self, timeout: float) -> None:
        """Wait until something can move or `timeout` has passed, and move it."""
        host, link = self._host, self._link
        may_read = self._may_read()
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        poller.register(host.stdout, select.POLLOUT if host.outbox.size else 0)
        if self._input_open and (may_read or self._hang_up_at == NEVER):
            poller.register(host.stdin, select.POLLIN if may_read else HANG_UP)
        if link is not None and (wanted := self._wanted(link)):
            poller.register(link.fd, wanted)
        for fd, events in poller.poll(None if timeout == NEVER else int(timeout * 1000) + (timeout > 0)):
            if fd == self._wake or (fd == host.stdout and events & BROKEN):
                self._is_done = True
            elif fd == host.stdin:
                self._hear_host(may_read)
            elif link is not None and fd == link.fd and events & ~select.POLLOUT:
                self._hear_daemon(link)
        self._flush()

    def _may_read(self) -> bool:
        """Whether there is room for more of the host's lines."""
        exchange, queued = self._exchange, self._link.outbox.size if self._link is not None else 0
        room = max(exchange.resume.unsent_bytes, exchange.own_bytes, queued) <= QUEUE_LIMIT
        return room and exchange.resume.kept_bytes <= KEPT_LIMIT

    def _wanted(self, link: Link) -> int:
        events = select.POLLIN if self._host.outbox.size <= QUEUE_LIMIT else 0
        return events | (select.POLLOUT if link.wants_to_write else 0)

    def _flush(self) -> None:
        """Write what both ends take now, and note what that means."""
        exchange, link = self._exchange, self._link
        for key in self._host.flush():
            exchange.resume.delivered(key, self._clock())
        if not self._host.outbox.size:
            exchange.own_bytes = 0
        exchange.report()
        for tag in link.flush() if link is not None else ():
            exchange.resume.was_sent(tag)

    # --- what is heard ---

    def _hear_host(self, may_read: bool) -> None:
        if not may_read:
            self._hang_up_at = self._clock() + HANG_UP_GRACE
            return
        self._hang_up_at = NEVER
        lines, has_ended = self._host.receive()
        for line in lines:
            if self._exchange.from_host(line):
                self._is_parked = False
                self._dialer.hurry()
        if has_ended:
            self._input_open = False
            if not self._host.has_file_input:
                self._leave_at = self._clock() + END_GRACE

    def _hear_daemon(self, link: Link) -> None:
        lines = link.receive()
        if lines is None:
            self._drop(link)
            self._dialer.lost()
            return
        for line in lines:
            if link is self._link and not self._is_done:
                self._from_daemon(link, line)

    def _from_daemon(self, link: Link, line: bytes | LineTooLong) -> None:
        if isinstance(line, LineTooLong):
            self._exchange.cut_answer(line)
            return
        value, _ = parse(line)
        if not isinstance(value, dict):
            return  # nothing but messages may reach the host
        method = value.get("method")
        if not link.is_welcome:
            self._greeted(link, greeting(value))
        elif isinstance(method, str) and method.startswith(PRIVATE_PREFIX):
            self._told(link, method, value.get("params"))
        else:
            self._exchange.from_daemon(link, line, value)

    def _greeted(self, link: Link, greeted: Welcome | Refusal) -> None:
        if isinstance(greeted, Welcome):
            link.is_welcome = True
            self._is_restarting = False
            self._dialer.welcomed()
            self._exchange.attach(link, greeted)
            return
        self._is_restarting = self._is_restarting or greeted.leaves
        why = Trouble(greeted.text, "Look at it with: pursersctl status", greeted.is_final)
        self._drop(link)
        self._dialer.lost(why)
        if greeted.is_final:
            self._is_parked = True
            self._exchange.fail_all(why)

    def _told(self, link: Link, method: str, params: object) -> None:
        """A message of the link itself."""
        if method == EXIT:
            self._is_done = True
        elif method == DRAIN and not link.is_leaving:
            told = params if isinstance(params, dict) else {}
            self._leaves(link, told.get("reason"), _seconds(told.get("limit_s")))
        elif method == KEEP and isinstance(params, dict):
            self._exchange.resume.kept = params
        elif method == FENCE:
            self._exchange.fail_all(_FENCED)
            self._exchange.resume.forget()

    def _leaves(self, link: Link, reason: object, limit: float) -> None:
        """The daemon goes. With a limit it first ends the calls that it has; what is new waits for the next one."""
        link.leave(lingers=limit > 0)
        self._is_restarting = reason == RESTART
        self._is_stopping = reason == STOP
        self._link_over_at = self._clock() + LEAVE_GRACE + min(limit, LONGEST_DRAIN)
        if limit > 0:
            self._exchange.hold(link)
            link.send(notification(DRAINED, {}), is_last_word=True)
        else:
            self._gone(link)

    def _gone(self, link: Link) -> None:
        """No answer comes on this link any more."""
        self._exchange.detach(link)
        if self._is_stopping:
            self._is_stopping = False
            self._exchange.fail_all(_STOPPED)

    # --- links come and go ---

    def _dial(self) -> None:
        now = self._clock()
        if self._link is not None and now >= self._link_over_at:
            self._drop(self._link)
            self._dialer.lost()
        if self._link is not None or self._is_parked or now < self._dialer.next_at:
            return
        connection = self._dialer.attempt()
        patience = self._exchange.patience
        patience.is_promised = self._is_restarting
        patience.is_hopeless = self._dialer.trouble().is_hopeless and not self._is_restarting
        if connection is not None:
            self._link = Link(connection)
            self._link.send(hello(self._facts, self._exchange.resume.hello(now)))

    def _drop(self, link: Link) -> None:
        self._gone(link)
        link.close()
        self._link = None
        self._link_over_at = NEVER


def _seconds(value: object) -> float:
    """What a message calls a length of time; 0 for anything else."""
    return float(value) if isinstance(value, (int, float)) and value > 0 else 0.0
