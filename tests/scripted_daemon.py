"""A daemon that does what the test says, and a shim process to speak with: for tests of the shim alone.

Every read has a ceiling; everything started here ends with its `with` block.
"""

import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from pursers_shim.paths import Place, place
from pursers_shim.wire import Lines
from rig import processes

CEILING = 60.0
"""Seconds after which a test that waits for something has failed."""

Message = dict[str, object]

INITIALIZE: Message = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
INITIALIZED: Message = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def request(identity: object, method: str, params: Message | None = None) -> Message:
    """A request line as an object."""
    return {"jsonrpc": "2.0", "id": identity, "method": method} | ({} if params is None else {"params": params})


def call(identity: object, tool: str = "a2a_wait", **arguments: object) -> Message:
    """A tool call."""
    return request(identity, "tools/call", {"name": tool, "arguments": arguments})


def answer(identity: object, **result: object) -> Message:
    """A result."""
    return {"jsonrpc": "2.0", "id": identity, "result": result}


class LineReader:
    """Whole JSON lines from a descriptor, each within CEILING seconds."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lines = Lines()
        self._ready: list[bytes] = []
        self._ended = False

    def line(self, ceiling: float = CEILING) -> bytes | None:
        """The next line, None at the end of the stream."""
        deadline = time.monotonic() + ceiling
        while not self._ready and not self._ended:
            left = deadline - time.monotonic()
            assert select.select([self._fd], [], [], max(left, 0))[0], f"nothing came within {ceiling} s"
            try:
                data = os.read(self._fd, 65536)
            except ConnectionResetError:
                data = b""
            self._ended = not data
            for line in self._lines.feed(data):
                assert isinstance(line, bytes)
                self._ready.append(line)
        return self._ready.pop(0) if self._ready else None

    def read(self, ceiling: float = CEILING) -> Message:
        """The next line as an object."""
        line = self.line(ceiling)
        assert line is not None, "the stream ended"
        message = json.loads(line)
        assert isinstance(message, dict)
        return message

    def is_quiet(self, seconds: float) -> bool:
        """Whether nothing comes for so long. Where it can be, prefer an exchange that proves the order."""
        return not self._ready and not select.select([self._fd], [], [], seconds)[0]


class Peer(LineReader):
    """One accepted link."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(CEILING)
        super().__init__(connection.fileno())
        self.connection = connection

    def send(self, *messages: Message) -> None:
        """Write messages, one per line."""
        self.connection.sendall(b"".join(json.dumps(m).encode() + b"\n" for m in messages))

    def welcome(self, epoch: int = 1, link_epoch: int = 1, **more: object) -> Message:
        """Read `hello`, answer `welcome`, return the hello."""
        hello = self.read()
        assert hello["pursers"] == "hello"
        self.send(
            {"pursers": "welcome", "protocol": 1, "version": "t", "daemon_epoch": epoch, "link_epoch": link_epoch}
            | {"conversation": "c-1", "limits": {"line": 16 * 1024 * 1024}}
            | more
        )
        return hello

    def close(self) -> None:
        """End the link."""
        self.connection.close()


class ScriptedDaemon:
    """Listens at the place of `home` and holds the daemon's lock."""

    def __init__(self, home: Path, backlog: int = 16) -> None:
        self.place: Place = place({"PURSERSD_HOME": str(home)})
        os.makedirs(self.place.folder, mode=0o700, exist_ok=True)
        self._lock: int | None = os.open(self.place.lock, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.place.socket)
        self.listener.listen(backlog)
        self.listener.settimeout(CEILING)
        self._peers: list[Peer] = []

    def accept(self) -> Peer:
        """The next link."""
        peer = Peer(self.listener.accept()[0])
        self._peers.append(peer)
        return peer

    def close(self) -> None:
        """Be gone as after SIGKILL: links cut, lock free, the socket file left behind."""
        for peer in self._peers:
            peer.close()
        self.listener.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> "ScriptedDaemon":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        Path(self.place.socket).unlink(missing_ok=True)


def shim_environment(home: Path, **more: str) -> dict[str, str]:
    """A small environment for a shim of the private place `home`, without automatic start."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "TMPDIR")}
    return kept | {"PURSERSD_HOME": str(home), "PURSERSD_AUTOSTART": "0"} | more


def _host_signals() -> None:
    """A test run under nohup or in the background ignores some; a host does not."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class Shim(LineReader):
    """A shim process whose host is the test."""

    def __init__(self, home: Path, argv: list[str] | None = None, **environment: str) -> None:
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            argv or [sys.executable, "-m", "pursers_shim"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=shim_environment(home, **environment),
            preexec_fn=_host_signals,
            bufsize=0,
        )
        assert self.process.stdout is not None
        super().__init__(self.process.stdout.fileno())

    def send(self, *messages: Message) -> None:
        """Write messages, one per line."""
        self.raw(b"".join(json.dumps(m).encode() + b"\n" for m in messages))

    def raw(self, data: bytes) -> None:
        """Write bytes."""
        assert self.process.stdin is not None
        view = memoryview(data)
        while view:
            view = view[os.write(self.process.stdin.fileno(), view) :]

    def ask(self, message: Message, ceiling: float = CEILING) -> Message:
        """Send a request and read one line."""
        self.send(message)
        return self.read(ceiling)

    def end_input(self) -> None:
        """Close the shim's stdin."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def ended(self, ceiling: float = CEILING) -> tuple[int, str]:
        """Wait for the end: exit code and what it wrote to stderr."""
        code = self.process.wait(ceiling)
        assert self.process.stderr is not None
        return code, self.process.stderr.read().decode()

    def __enter__(self) -> "Shim":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def until(condition: Callable[[], object], ceiling: float = CEILING) -> None:
    """Wait for a condition that no descriptor tells."""
    deadline = time.monotonic() + ceiling
    while not condition():
        assert time.monotonic() < deadline, f"not true within {ceiling} s"
        time.sleep(0.005)


def attach(daemon: ScriptedDaemon, shim: Shim) -> Peer:
    """Take the shim in and go through the handshake of its host."""
    peer = daemon.accept()
    peer.welcome()
    shim.send(INITIALIZE)
    assert peer.read() == INITIALIZE
    peer.send(answer(0, protocolVersion="2025-11-25"))
    assert shim.read()["id"] == 0
    shim.send(INITIALIZED)
    assert peer.read() == INITIALIZED
    return peer


@contextmanager
def short_home() -> Iterator[Path]:
    """A private PURSERSD_HOME whose socket path stays under the limit, marked as this run's."""
    with tempfile.TemporaryDirectory(prefix=f"ps-{processes.RUN}-", dir="/tmp") as folder:
        yield Path(folder)
