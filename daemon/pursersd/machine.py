"""Which machine this is, and which part of the state folder is its own: a home may be shared by several (docs/decisions/0031).

The first machine whose daemon uses a state folder has it as it is, and a file in it says so; each other one has a folder of
its own below it. Nothing here waits for a lock: file systems that are shared have none, or some that hang.
"""

import contextlib
import hashlib
import os
import socket
import sys
from collections.abc import Sequence
from typing import NamedTuple

from pursersd import files

CLAIM = "machine"
"""Name of the file that says whose the state folder is."""

ID_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
"""One of these is there in a container, whose machine id is often that of its image or of its host."""

FILE_LIMIT = 512


class Machine(NamedTuple):
    """A machine, or a container, which has processes and a loopback of its own."""

    key: str
    """What tells it from others: twelve hexadecimal digits, no id that anybody else uses."""
    host: str
    """Its name, for people."""


def this_machine(
    *, id_files: Sequence[str] = ID_FILES, container_files: Sequence[str] = CONTAINER_FILES, host: str | None = None
) -> Machine:
    """The machine that we run on. Its name counts only where there is no id, or none of its own: names change."""
    name = host if host is not None else socket.gethostname()
    identity = _hardware() if sys.platform == "darwin" else next(filter(None, map(_read, id_files)), "")
    if not identity or identity == "uninitialized" or any(map(os.path.exists, container_files)):
        identity = f"{identity} {name}"
    return Machine(hashlib.sha256(f"pursersd {identity}".encode()).hexdigest()[:12], name)


def owner(folder: str) -> Machine | None:
    """The machine that has the state folder as it is; None if no daemon has used it, or that cannot be read."""
    words = _read(f"{folder}/{CLAIM}").split(maxsplit=1)
    if not words or len(words[0]) != 12 or not set(words[0]) <= set("0123456789abcdef"):
        return None
    return Machine(words[0], words[1] if len(words) > 1 else "")


def own_part(folder: str) -> str:
    """The part of the state folder that is this machine's. Creates nothing."""
    mine, first = this_machine(), owner(folder)
    whole, part = parts(folder)
    return whole if first is None or first.key == mine.key else part


def parts(folder: str) -> tuple[str, str]:
    """Both folders that this machine may have had: the state folder as it is, and a part of it."""
    return folder, f"{folder}/machine-{this_machine().key}"


def claim(folder: str) -> None:
    """Have the state folder as it is, unless another machine has. What cannot be written says so when it is used."""
    if owner(folder) is not None:
        return
    mine = this_machine()
    fresh, file = f"{folder}/{CLAIM}-{mine.key}.new", f"{folder}/{CLAIM}"
    with contextlib.suppress(OSError):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(fresh, "w", encoding="utf-8") as out:
            out.write(f"{mine.key} {mine.host}\n")
            out.flush()
            os.fsync(out.fileno())
        try:
            os.link(fresh, file)
            os.unlink(fresh)
        except OSError:
            if owner(folder) is None:  # it is damaged, or this file system has no links
                os.replace(fresh, file)
            else:
                os.unlink(fresh)


def _read(path: str) -> str:
    """A small file; empty if it cannot be read."""
    try:
        return files.read(path, FILE_LIMIT).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _hardware() -> str:
    """The id that macOS gives the machine; empty if it gives none."""
    import ctypes  # here, because no other system needs it

    found = ctypes.create_string_buffer(16)
    patience = (ctypes.c_long * 2)(1, 0)  # struct timespec
    try:
        failed = ctypes.CDLL(None).gethostuuid(found, patience)
    except (AttributeError, OSError):
        return ""
    return "" if failed else found.raw.hex()
