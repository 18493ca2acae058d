"""A scripted daemon: a real process with the real lock and socket that answers `pursersctl` as it was told.

Run as a program it reads a Script as JSON from its argument and prints "ready" when it holds the lock and listens as told.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TextIO

from pursers_shim import launch, paths
from rig import processes

WELCOME = {"pursers": "welcome", "protocol": 1, "version": "0.1.0"}
RECEIVED = "received"


@dataclass(kw_only=True)
class Script:
    """What the daemon does. `answers` maps a verb to a Reply without id; a verb that is not in it gets no answer."""

    greeting: dict[str, Any] | str | None = field(default_factory=lambda: dict(WELCOME))
    """A message, a raw line, or None for silence."""
    answers: dict[str, Any] = field(default_factory=dict)
    hangs_up_on: list[str] = field(default_factory=list)
    leaves_on_stop: bool = True
    obeys_sigterm: bool = True
    listens: bool = True
    """False: only after SIGUSR1."""


class ScriptedDaemon:
    """Starts the process in the PURSERSD_HOME `home`; a block that ends it."""

    def __init__(self, home: Path, **script: Any) -> None:
        self.home = home
        self.process = subprocess.Popen(
            [sys.executable, __file__, json.dumps(asdict(Script(**script)))],
            env=processes.environment({"PURSERSD_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}),
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"

    @property
    def pid(self) -> int:
        return self.process.pid

    def received(self) -> list[dict[str, Any]]:
        """The messages that clients sent so far; `seen` is what the runtime folder looked like at that moment."""
        file = self.home / RECEIVED
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()


def main(script: Script) -> None:
    place = paths.place(os.environ)
    paths.check_folder(place.folder, create=True)
    assert launch.take_lock(place.lock) is not None
    if not script.obeys_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(place.socket).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    if not script.listens:
        print("ready", flush=True)
        signal.sigwait({signal.SIGUSR1})
    listener.bind(place.socket)
    listener.listen()
    if script.listens:
        print("ready", flush=True)
    with open(f"{place.home}/{RECEIVED}", "a") as received:
        while True:
            link, _ = listener.accept()
            # A client that gave up, as after a SIGSTOP, is no reason to end.
            with link, link.makefile("rb") as lines, contextlib.suppress(ConnectionError):
                serve(script, place, link, lines, received)


def serve(script: Script, place: paths.Place, link: socket.socket, lines: BinaryIO, received: TextIO) -> None:
    """One client, until it goes away or the script says so."""
    for line in lines:
        message = json.loads(line)
        note = {"starting_allowed_to": launch.lock_holder(place.start_lock), "stopped": os.path.lexists(place.stopped)}
        received.write(json.dumps(message | {"seen": note}) + "\n")
        received.flush()
        if "pursers" in message:
            answer = script.greeting
        elif message["verb"] in script.hangs_up_on:
            return
        else:
            answer = script.answers.get(message["verb"])
            answer = {"id": message["id"], **answer} if isinstance(answer, dict) else answer
        if answer is not None:
            link.sendall((answer if isinstance(answer, str) else json.dumps(answer)).encode() + b"\n")
        if message.get("verb") == "stop" and script.leaves_on_stop:
            sys.exit(0)


if __name__ == "__main__":
    main(Script(**json.loads(sys.argv[1])))
