"""Ask the daemon of this user one question over its socket (docs/json.md, "The control link")."""

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from pursers_shim import __version__, dial, paths, service, starts, wire
from pursers_shim.paths import Place
from pursersctl.errors import Busy, CommandError, Failed, NotRunning, Refused
from pursersd import api

ANSWER_TIMEOUT = 5.0  # seconds for connecting, hello and answer together; then the daemon is stopped or busy
RETRY_INTERVAL = 0.05  # seconds between two attempts to reach a daemon that lives but does not listen
CHUNK = 256 * 1024

SKEW = "protocol"
"""Error code, here and in the daemon's `refuse`, for two versions that cannot talk."""

Answer = TypeVar(
    "Answer",
    api.Ps,
    api.Status,
    api.ConversationStatus,
    api.StatsFiles,
    api.Joined,
    api.Ended,
    api.Reap,
    api.Metrics,
    api.Config,
    api.Reloaded,
    api.LocalBoard,
    api.LocalGone,
    api.LocalStatus,
    api.LocalTicketMade,
)


class _Greeting(msgspec.Struct, frozen=True):
    """The daemon's answer to `hello`: welcome or refuse."""

    pursers: str
    code: str = "refused"
    text: str = "no reason given"
    retryable: bool = False


def where(environ: Mapping[str, str]) -> Place:
    """Where this user's daemon lives. Raises Refused for a PURSERSD_HOME that cannot work."""
    with _folder_errors():
        return paths.place(environ)


def ask(place: Place, verb: str, params: dict[str, object] | None = None, *, timeout: float = ANSWER_TIMEOUT) -> bytes:
    """Ask the running daemon and return the JSON of its result, within `timeout` seconds.

    Starts, creates and changes nothing by itself. Raises NotRunning if there is no daemon, Busy if it does not answer
    in time, Refused if it and we may not or cannot talk, Failed if it could not do what was asked.
    """
    deadline = time.monotonic() + timeout
    link = _connect(place, deadline)
    request = api.Request(id=1, verb=verb, params=params or {})
    with link, _broken(place):
        return _answer(_begin(place, link, deadline, request), request, deadline)


class Following:
    """A request whose answers do not end: the first comes within the usual time, others when there is something to tell.

    Starts, creates and changes nothing; raises like `ask`. The caller closes it.
    """

    def __init__(self, place: Place, verb: str) -> None:
        deadline = time.monotonic() + ANSWER_TIMEOUT
        self._link = _connect(place, deadline)
        self._request = api.Request(id=1, verb=verb)
        try:
            with _broken(place):
                self._reader = _begin(place, self._link, deadline, self._request)
                self._first = [_answer(self._reader, self._request, deadline)]
        except BaseException:
            self._link.close()
            raise

    def fileno(self) -> int:
        """The descriptor that is readable when there may be more."""
        return self._link.fileno()

    def close(self) -> None:
        """Hang up."""
        self._link.close()

    def results(self) -> Iterator[bytes]:
        """What has come, one after the other; waits if that is nothing.

        Raises EOFError when the daemon has gone, Failed when it cut us off.
        """
        first, self._first = self._first, []
        yield from first
        try:
            if not first and not self._reader.ready:
                self._reader.read(None)
            while self._reader.ready:
                result = _result(self._reader.ready.pop(0), self._request)
                if result is not None:
                    yield result
        except ConnectionError as error:
            raise EOFError from error
        except (msgspec.DecodeError, wire.LineTooLong) as error:
            raise _skew(str(error)) from error


def read(result: bytes, kind: type[Answer]) -> Answer:
    """The struct in a result. Raises Refused if the daemon speaks another version of it than we."""
    try:
        answer = msgspec.json.decode(result, type=kind)
    except msgspec.DecodeError as error:
        raise _skew(str(error)) from error
    if answer.schema != api.SCHEMA:
        raise _skew(f"it answers in schema {answer.schema}, not {api.SCHEMA}")
    return answer


def not_running(place: Place) -> NotRunning:
    """The error that says that there is no daemon, and whether anybody may start one automatically."""
    text = "pursersd is not running. Start it with: pursersctl start"
    text += _failed_starts(place)
    if os.path.lexists(place.stopped):
        text += "\nIt was stopped with pursersctl stop, so no shim starts it by itself."
    elif service.installed(place, os.environ) is not None:
        text += "\nIts service manager starts it when a conversation needs it. See: pursersctl service status"
    return NotRunning(text)


def _failed_starts(place: Place) -> str:
    """Why there is none, if the last one did not leave in order; `starts` forgets those that did."""
    before = starts.read(place)
    if before is None or not (before.refused or starts.last_words(place.start_log) or before.count >= starts.LOOP):
        return ""
    which = f"The last {before.count} starts" if before.count > 1 and not before.refused else "The last start"
    return f"\n{which} failed: {starts.said(place, before) or 'it printed nothing. See: pursersctl logs'}"


def no_answer(place: Place) -> CommandError:
    """The error for a daemon that does not answer; it is never taken for a dead one while it holds its lock."""
    pid = _pid(place)
    if pid is None:
        return not_running(place)
    if pid == 0:
        return Busy(
            "pursersd runs in another pid namespace (a container?) or on another machine, and is stopped or busy."
        )
    return Busy(
        f"pursersd (pid {pid}) holds its lock but does not answer: it is stopped or busy. "
        f"If it is stopped, continue it with: kill -CONT {pid}\n"
        f"See what it did last with: pursersctl logs\n"
        f"End it with: pursersctl stop --force"
    )


@contextmanager
def _folder_errors() -> Iterator[None]:
    try:
        yield
    except paths.PathError as error:
        raise Refused(str(error), code="unsafe_folder") from error


def _pid(place: Place) -> int | None:
    with _folder_errors():
        return dial.daemon_pid(place)


def _connect(place: Place, deadline: float) -> socket.socket:
    """A link to the daemon; waits while one lives that does not listen yet, or any more."""
    if service.installed(place, os.environ) is not None and _pid(place) is None:
        raise not_running(place)  # its service manager may listen, and would start one for our question
    while True:
        try:
            with _folder_errors():
                return dial.connect(place)
        except dial.WrongPeer as error:
            raise Refused(f"{error}. Nothing was sent to it.", code="wrong_owner") from error
        except (dial.Absent, dial.Busy) as error:
            if _pid(place) is None:
                raise not_running(place) from error
            if time.monotonic() > deadline:
                raise no_answer(place) from error
        time.sleep(RETRY_INTERVAL)


@contextmanager
def _broken(place: Place) -> Iterator[None]:
    """What a link that broke, or brought what nobody understands, means for the user."""
    try:
        yield
    except (TimeoutError, EOFError, ConnectionError) as error:
        raise no_answer(place) from error
    except (msgspec.DecodeError, wire.LineTooLong) as error:
        raise _skew(str(error)) from error


def _begin(place: Place, link: socket.socket, deadline: float, request: api.Request) -> "_Reader":
    """Say hello and send the request; returns where its answers come."""
    reader = _Reader(link)
    hello = {
        wire.KIND: wire.HELLO,
        "protocol": list(wire.PROTOCOL),
        "role": "control",
        "version": __version__,
        "pid": os.getpid(),
    }
    _send(link, deadline, wire.encode(hello))
    _check_greeting(place, msgspec.json.decode(reader.next(deadline), type=_Greeting))
    _send(link, deadline, msgspec.json.encode(request) + b"\n")
    return reader


def _answer(reader: "_Reader", request: api.Request, deadline: float) -> bytes:
    while (result := _result(reader.next(deadline), request)) is None:
        continue
    return result


def _result(line: bytes, request: api.Request) -> bytes | None:
    """The result of the request; None if this is the answer to another. Raises Failed if it could not be carried out."""
    reply = msgspec.json.decode(line, type=api.Reply)
    if reply.id != request.id:
        return None
    if reply.error is not None:
        raise Failed(reply.error.text, code=reply.error.code)
    return bytes(reply.result)


def _check_greeting(place: Place, greeting: _Greeting) -> None:
    if greeting.pursers == wire.WELCOME:
        return
    if greeting.pursers != wire.REFUSE:
        raise _skew(f"it answered hello with {greeting.pursers!r}")
    pid = _pid(place)
    text = f"pursersd{f' (pid {pid})' if pid else ''} refused: {greeting.text}"
    if greeting.code == SKEW:
        text += "\nOf such a daemon pursersctl can only say this, and end it: pursersctl restart, pursersctl stop"
    raise Busy(text, code=greeting.code) if greeting.retryable else Refused(text, code=greeting.code)


class _Reader:
    """The daemon's lines; `ready` are those that have come and were not taken."""

    def __init__(self, link: socket.socket) -> None:
        self.ready: list[bytes] = []
        self._link = link
        self._lines = wire.Lines()

    def next(self, deadline: float) -> bytes:
        """The next line. Raises TimeoutError at the deadline, EOFError at the end, LineTooLong."""
        while not self.ready:
            self.read(_left(deadline))
        return self.ready.pop(0)

    def read(self, timeout: float | None) -> None:
        """Wait for bytes, at most that long; raises like `next`."""
        self._link.settimeout(timeout)
        data = self._link.recv(CHUNK)
        if not data:
            raise EOFError
        for line in self._lines.feed(data):
            if isinstance(line, wire.LineTooLong):
                raise line
            self.ready.append(line)


def _send(link: socket.socket, deadline: float, data: bytes) -> None:
    link.settimeout(_left(deadline))
    link.sendall(data)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _skew(detail: str) -> Refused:
    text = f"pursersctl {__version__} does not understand this pursersd: {detail}. Let both be the same version: "
    return Refused(text + "pursersctl restart", code=SKEW)
