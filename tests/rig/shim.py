"""A stdio MCP command as a host runs it.

Use it so:

    with ShimProcess([SHIM], home.environment(...)) as shim:
        shim.initialize()
        wait = shim.start_tool("a2a_wait", {"timeout_s": 60})
        ...
        assert wait.result(5)["events"]
"""

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import psutil

from rig import canary, processes
from rig.speaker import Ended, Json, Pending, RpcError, Speaker, ToolError

__all__ = ["BRIDGE", "SHIM", "Ended", "Json", "Pending", "RpcError", "ShimProcess", "ToolError"]

SHIM = str(processes.BIN / "pursers-shim")
BRIDGE = str(processes.BIN / "pursers-wait-bridge")

HOST = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
"""A host that does nothing but stand between us and the command: kill it and the pipes stay open, in our hands."""


class ShimProcess(Speaker):
    """Started at once with exactly `environment`. With `hosted`, a separate host process is its parent: see HOST."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        hosted: bool = False,
        cwd: str | None = None,
    ) -> None:
        super().__init__()
        self._hosted = hosted
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  closed by close()
        self.started_at = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST, *command] if hosted else list(command),
            env=dict(environment),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, name=f"shim {self.process.pid}", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id of the command itself, also when it is hosted."""
        if not self._hosted:
            return self.process.pid
        children = psutil.Process(self.process.pid).children()
        assert children, "the host has not started the command yet"
        return int(children[0].pid)

    def close_stdin(self) -> None:
        """End the command's standard input, as a host that leaves."""
        assert self.process.stdin is not None, "stdin is a pipe"
        with self._writing:
            self.process.stdin.close()

    def kill(self, number: int) -> None:
        """Send a signal to the process we started (the host, if hosted)."""
        self.process.send_signal(number)

    def wait(self, timeout: float = 60.0) -> int:
        """Wait until it ends; returns the exit status."""
        return self.process.wait(timeout)

    @property
    def stderr(self) -> str:
        """What it wrote to standard error so far."""
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")

    def close(self) -> None:
        """End it in any case, and wait for that."""
        if not self._stderr.closed:
            processes.stop(self.process, (), patience=5.0)
            self._reader.join(5.0)
            canary.look(f"stderr of {self.process.args}", self.stderr.encode())
            for pipe in (self.process.stdin, self.process.stdout, self._stderr):
                _close(pipe)

    def _write(self, data: bytes) -> None:
        assert self.process.stdin is not None, "stdin is a pipe"
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout is not None, "stdout is a pipe"
        for line in self.process.stdout:
            self._take(line)
        self._end()


def _close(pipe: Any) -> None:
    if pipe is not None:
        try:
            pipe.close()
        except BrokenPipeError:
            return  # unsent bytes to a command that has gone
