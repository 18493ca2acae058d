"""A host that can be killed: a process of its own that starts one stdio server and keeps the ends that a host keeps.

Run as a program it reads what to do as JSON from its argument, makes sure that the server answers, and prints pids.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import psutil

from rig import processes

ANSWER_TIMEOUT = 60.0  # seconds in which a server must answer its first request

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "stand-in", "version": "1"}},
}


class StandIn:
    """A host and its server, which has answered. A block that ends both.

    `sockets`: the server's stdin and stdout are local sockets, as node makes them, and not pipes. `holds`: another
    process holds this end, too ("in": it could write to the server's stdin; "out": it could read its stdout).
    `vanishing`: a process between the two started the server and has ended.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        sockets: bool = False,
        holds: str = "",
        vanishing: bool = False,
    ) -> None:
        told = {"command": list(command), "sockets": sockets, "holds": holds, "vanishing": vanishing}
        self.process = subprocess.Popen(
            [sys.executable, __file__, json.dumps(told)],
            env={**environment, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self._pids: dict[str, int] = {}
        try:
            ready, _, _ = select.select([self.process.stdout], [], [], ANSWER_TIMEOUT)
            self._pids = json.loads(self.process.stdout.readline() if ready else "{}")
            self.server = psutil.Process(self._pids["server"])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id of the host."""
        return self.process.pid

    @property
    def holder(self) -> int:
        """Process id of who holds an end, too."""
        return self._pids["holder"]

    def kill(self) -> None:
        """End the host and nothing else."""
        self.process.kill()
        self.process.wait(60)

    def close(self) -> None:
        """End everything."""
        processes.stop(self.process, ())
        assert self.process.stdout is not None
        self.process.stdout.close()
        if self._pids:
            left = [psutil.Process(pid) for pid in self._pids.values() if psutil.pid_exists(pid)]
            for process in left:
                process.resume()
            processes.end(left)


def _ends(sockets: bool) -> tuple[int, int, int, int]:
    """Server's stdin and its other end, server's stdout and its other end."""
    if sockets:
        (stdin, into), (stdout, out_of) = socket.socketpair(), socket.socketpair()
        return stdin.detach(), into.detach(), stdout.detach(), out_of.detach()
    (stdin, into), (out_of, stdout) = os.pipe(), os.pipe()  # type: ignore[assignment]
    return stdin, into, stdout, out_of  # type: ignore[return-value]


def _start(told: dict[str, Any], stdin: int, stdout: int) -> int:
    if not told["vanishing"]:
        return subprocess.Popen(told["command"], stdin=stdin, stdout=stdout).pid
    heard, says = os.pipe()
    if not os.fork():
        os.write(says, b"%d" % subprocess.Popen(told["command"], stdin=stdin, stdout=stdout).pid)
        os._exit(0)
    os.wait()
    return int(os.read(heard, 20))


def main() -> None:
    told = json.loads(sys.argv[1])
    stdin, into, stdout, out_of = _ends(told["sockets"])
    pids = {"server": _start(told, stdin, stdout)}
    os.close(stdin)
    os.close(stdout)
    os.write(into, json.dumps(INITIALIZE).encode() + b"\n")
    assert os.read(out_of, 1)
    held = {"in": into, "out": out_of}.get(told["holds"])
    if held is not None:
        pids["holder"] = subprocess.Popen(["sleep", "600"], pass_fds=[held]).pid
    print(json.dumps(pids), flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
