"""Stands in for pursersd where a test looks at how it is started: it notes its birth, takes the lock, welcomes everybody.

Run by `stand_in` in place of the interpreter that a shim starts. In its PURSERSD_HOME, a file `slow` holds the seconds
before it takes the lock, and a file `broken` the words that it prints before it ends at once.
"""

import fcntl
import json
import os
import selectors
import signal
import socket
import sys
import time
from pathlib import Path

from pursers_shim.launch import lock_holder
from pursers_shim.paths import place

LIFETIME = 60
"""Seconds after which it ends in any case."""


def stand_in(home: Path) -> str:
    """An executable for `sys.executable` that runs this file."""
    script = home / "python"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__)} "$@"\n')
    script.chmod(0o700)
    return str(script)


def births(home: Path) -> list[dict[str, object]]:
    """What each one that was started noted, oldest first."""
    notes = sorted((home / "births").glob("*.json"), key=lambda note: note.stat().st_mtime_ns)
    return [json.loads(note.read_text()) for note in notes]


def end_all(home: Path) -> None:
    """End every one that was started, also one that has not noted its birth yet, and wait until it is gone."""
    where = place({"PURSERSD_HOME": str(home)})
    pids = [lock_holder(where.start_log), lock_holder(where.lock), *(note["pid"] for note in births(home))]
    for pid in pids:
        if isinstance(pid, int) and pid not in (0, os.getpid()) and _is_running(pid):
            os.kill(pid, signal.SIGKILL)
            while _is_running(pid):
                time.sleep(0.005)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] != b"Z"
    except OSError:
        return False


def main() -> None:
    signal.alarm(LIFETIME)
    home = Path(os.environ["PURSERSD_HOME"])
    _note_birth(home)
    if (home / "broken").exists():
        sys.exit((home / "broken").read_text())
    if (home / "slow").exists():
        time.sleep(float((home / "slow").read_text()))
    where = place(os.environ)
    lock = os.open(where.lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    Path(where.socket).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(where.socket)
    listener.listen(64)
    _serve(listener)


def _note_birth(home: Path) -> None:
    note = {
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "session": os.getsid(0),
        "argv": sys.argv[1:],
        "cwd": str(Path.cwd()),
        "environment": dict(os.environ),
        "descriptors": {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if int(fd) < 3},
        "others": [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 2 and os.path.exists(f"/proc/self/fd/{fd}")],
        "ignored": [int(n) for n in signal.valid_signals() if signal.getsignal(n) == signal.SIG_IGN],
        "blocked": [int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
    }
    folder = home / "births"
    folder.mkdir(exist_ok=True)
    waiting = folder / f"{os.getpid()}.tmp"
    waiting.write_text(json.dumps(note))
    waiting.rename(folder / f"{os.getpid()}.json")


def _serve(listener: socket.socket) -> None:
    watched = selectors.DefaultSelector()
    watched.register(listener, selectors.EVENT_READ, b"")
    while True:
        for key, _ in watched.select():
            if key.fileobj is listener:
                watched.register(listener.accept()[0], selectors.EVENT_READ, b"")
                continue
            link = key.fileobj
            assert isinstance(link, socket.socket)
            data = link.recv(65536)
            if not data:
                watched.unregister(link)
                link.close()
                continue
            *lines, rest = (key.data + data).split(b"\n")
            watched.modify(link, selectors.EVENT_READ, rest)
            for line in lines:
                _answer(link, json.loads(line))


def _answer(link: socket.socket, message: dict[str, object]) -> None:
    answer: dict[str, object]
    if message.get("pursers") == "hello":
        answer = {"pursers": "welcome", "protocol": 1, "version": "t", "daemon_epoch": 1, "link_epoch": 1}
        answer |= {"conversation": "c", "limits": {"line": 1 << 24}}
    elif "id" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"daemon": os.getpid()}}
    else:
        return
    link.sendall(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
