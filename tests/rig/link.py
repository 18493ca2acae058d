"""A link to the daemon without a shim between: the test itself is the shim (docs/protocol.md)."""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import psutil

from pursers_shim import __version__, wire
from rig.speaker import TIMEOUT, Json, Speaker


class Link(Speaker):
    """Connected and greeted when constructed; `greeting` is the daemon's `welcome` or `refuse`.

    `fields` replace or add fields of the hello, such as resume={"conversation": …}.
    """

    def __init__(self, path: str, environment: Mapping[str, str], **fields: object) -> None:
        super().__init__()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TIMEOUT)
        self._socket.connect(path)
        self._lines = self._socket.makefile("rb")
        self.send(wire.encode({**hello(environment), **fields}))
        self.greeting: Json = _object(self._lines.readline())
        self._socket.settimeout(None)
        self._reader = threading.Thread(target=self._read, name="link", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the link."""
        with contextlib.suppress(OSError):  # the daemon may be faster
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join(TIMEOUT)
        self._lines.close()
        self._socket.close()

    def _write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # a reset is an end like another
            for line in self._lines:
                self._take(line)
        self._end()


def hello(environment: Mapping[str, str]) -> Json:
    """The first line of a shim that this process is."""
    parent = psutil.Process().ppid()
    return {
        "pursers": "hello",
        "protocol": list(wire.PROTOCOL),
        "role": "shim",
        "version": __version__,
        "pid": os.getpid(),
        "started": wire.process_start(os.getpid()),
        "ppid": parent,
        "parent_started": wire.process_start(parent),
        "cwd": os.getcwd(),
        "env": wire.relayed_environment(environment),
    }


def _object(line: bytes) -> Json:
    assert line, "the daemon closed the link instead of greeting"
    value: Json = json.loads(line)
    return value
