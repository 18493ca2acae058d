"""Ask the daemon of this user one question over its socket (docs/json.md, "The control link")."""

import os
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from pursers_shim import __version__, dial, paths, starts, wire
from pursers_shim.paths import Place
from pursersctl.errors import Busy, CommandError, Failed, NotRunning, Refused
from pursersd import api

ANSWER_TIMEOUT = 5.0  # seconds for connecting, hello and answer together; then the daemon is stopped or busy
RETRY_INTERVAL = 0.05  # seconds between two attempts to reach a daemon that lives but does not listen
CHUNK = 256 * 1024

SKEW = "protocol"
"""Error code, here and in the daemon's `refuse`, for two versions that cannot talk."""

Answer = TypeVar("Answer", api.Ps, api.Status, api.ConversationStatus, api.StatsFiles, api.Joined, api.Ended, api.Reap)


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
    with link:
        try:
            return _exchange(place, link, deadline, api.Request(id=1, verb=verb, params=params or {}))
        except (TimeoutError, EOFError, ConnectionError) as error:
            raise no_answer(place) from error
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
    return NotRunning(text)


def _failed_starts(place: Place) -> str:
    """Why there is none, if the last one did not leave in order; `starts` forgets those that did."""
    before = starts.read(place)
    words = starts.last_words(place.start_log) if before else ""
    if before is None or not (words or before.count >= starts.LOOP):
        return ""
    which = f"The last {before.count} starts" if before.count > 1 else "The last start"
    return f"\n{which} failed: {words or before.words or 'it printed nothing. See: pursersctl logs'}"


def no_answer(place: Place) -> CommandError:
    """The error for a daemon that does not answer; it is never taken for a dead one while it holds its lock."""
    pid = dial.daemon_pid(place)
    if pid is None:
        return not_running(place)
    if pid == 0:
        return Busy("pursersd runs in another pid namespace (a container?) and does not answer: it is stopped or busy.")
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


def _connect(place: Place, deadline: float) -> socket.socket:
    """A link to the daemon; waits while one lives that does not listen yet, or any more."""
    while True:
        try:
            with _folder_errors():
                return dial.connect(place)
        except dial.WrongPeer as error:
            raise Refused(f"{error}. Nothing was sent to it.", code="wrong_owner") from error
        except (dial.Absent, dial.Busy) as error:
            if dial.daemon_pid(place) is None:
                raise not_running(place) from error
            if time.monotonic() > deadline:
                raise no_answer(place) from error
        time.sleep(RETRY_INTERVAL)


def _exchange(place: Place, link: socket.socket, deadline: float, request: api.Request) -> bytes:
    answers = _answers(link, deadline)
    hello = {
        "pursers": "hello",
        "protocol": list(wire.PROTOCOL),
        "role": "control",
        "version": __version__,
        "pid": os.getpid(),
    }
    _send(link, deadline, wire.encode(hello))
    _check_greeting(place, msgspec.json.decode(next(answers), type=_Greeting))
    _send(link, deadline, msgspec.json.encode(request) + b"\n")
    for line in answers:
        reply = msgspec.json.decode(line, type=api.Reply)
        if reply.id != request.id:
            continue
        if reply.error is not None:
            raise Failed(reply.error.text, code=reply.error.code)
        return bytes(reply.result)
    raise EOFError


def _check_greeting(place: Place, greeting: _Greeting) -> None:
    if greeting.pursers == "welcome":
        return
    if greeting.pursers != "refuse":
        raise _skew(f"it answered hello with {greeting.pursers!r}")
    pid = dial.daemon_pid(place)
    text = f"pursersd{f' (pid {pid})' if pid else ''} refused: {greeting.text}"
    if greeting.code == SKEW:
        text += "\nOf such a daemon pursersctl can only say this, and end it: pursersctl restart, pursersctl stop"
    raise Busy(text, code=greeting.code) if greeting.retryable else Refused(text, code=greeting.code)


def _answers(link: socket.socket, deadline: float) -> Iterator[bytes]:
    """The daemon's lines. Raises TimeoutError at the deadline, EOFError at the end, LineTooLong."""
    lines = wire.Lines()
    while True:
        link.settimeout(_left(deadline))
        data = link.recv(CHUNK)
        if not data:
            raise EOFError
        for line in lines.feed(data):
            if isinstance(line, wire.LineTooLong):
                raise line
            yield line


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
