"""Checks of what lies on disk: the runtime folder with socket and lock, the state, the log, the doors, the statistics."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pursers_shim import dial, paths, service, starts
from pursers_shim.paths import PathError
from pursersctl.doctor_patient import Patient, advised, doubtful, ill, well
from pursersctl.found import Finding
from pursersctl.render import size
from pursersd import api, machine
from pursersd.rules.bridge_files import stats_path
from pursersd.rules.stats_document import Damaged, read
from pursersd.state.epoch import read_epoch

ROOM, LEAST_ROOM = 64 << 20, 1 << 20
"""Bytes that should be free for log and state, and those without which nothing works."""

FILE_LIMIT = 16 << 20  # bytes of a file that is read


def runtime_folder(patient: Patient) -> Iterator[Finding]:
    """The folder of socket and lock, which must be ours alone."""
    check = "runtime_folder"
    folder = patient.place.folder
    try:
        paths.place(patient.environ)
        exists = paths.check_folder(folder)
    except PathError as error:
        yield ill(check, *advised(str(error), f"Look at it with: ls -lad {folder}"))
        return
    except OSError as error:
        yield ill(check, f"{folder} cannot be looked at: {error.strerror}", f"Look at it with: ls -lad {folder}")
        return
    if exists or _can_write(_nearest(folder)):
        yield well(check, f"{folder} is {'yours alone' if exists else 'made by the first start'}")
    else:
        yield ill(check, f"{folder} cannot be made: {_nearest(folder)} is not writable", "Make it writable for you")


def state_folder(patient: Patient) -> Iterator[Finding]:
    """The folder of epoch and names: writable, not full, its files sound."""
    whole, folder = api.shared_state_folder(patient.place.home), api.state_folder(patient.place.home)
    yield from _writable("state_folder", folder)
    if folder != whole:
        yield _shared(whole, folder)
    yield from _room(folder)
    epoch = Path(folder, "epoch")
    if os.path.exists(epoch) and read_epoch(Path(folder)) is None:
        yield ill("state_folder", f"{epoch} is damaged: no daemon starts", f"mv {epoch} {epoch}.damaged", of="epoch")
    names = Path(folder, "names.json")
    if os.path.exists(names) and not _is_json(names):
        text = f"{names} cannot be understood: conversations get new names"
        yield doubtful("state_folder", text, "Nothing: the daemon moves it aside when it starts", of="names.json")


def log_folder(patient: Patient) -> Iterator[Finding]:
    """The folder of the log."""
    yield from _writable("log_folder", os.path.dirname(api.log_file(patient.place.home)))


def socket_and_lock(patient: Patient) -> Iterator[Finding]:
    """Who is the daemon, what lies at its socket, and whether the next one would start."""
    place, check = patient.place, "socket"
    try:
        pid = dial.daemon_pid(place)
        found = os.lstat(place.socket).st_mode if os.path.lexists(place.socket) else None
    except PathError as error:
        yield ill(check, *advised(str(error), f"Look at it with: ls -la {place.folder}"))
        return
    except OSError as error:
        text = f"{error.filename or place.folder} cannot be looked at: {error.strerror}"
        yield ill(check, text, f"Look at it with: ls -la {place.folder}")
        return
    if found is not None and not stat.S_ISSOCK(found):
        yield ill(check, f"{place.socket} is no socket", f"mv {place.socket} {place.socket}.old")
    elif pid is None:
        yield from _without_daemon(patient, left=found is not None)
    elif found is None:
        text = f"pursersd {_named(pid)} holds its lock, but its socket is gone: it notices that within seconds"
        yield ill(check, text, "pursersctl restart")
    else:
        yield well(check, f"{place.socket} is served: pursersd {_named(pid)} holds the lock")


def stats_file(patient: Patient) -> Iterator[Finding]:
    """The statistics that `pursersctl stats` shows."""
    check, path = "stats_file", stats_path(patient.environ, patient.place.home, patient.cwd)
    if not os.path.lexists(path):
        yield well(check, f"{path} is made when something is counted")
        return
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Damaged("it is no regular file")
            read(file.read(FILE_LIMIT))
    except OSError as error:
        yield doubtful(check, f"{path} cannot be read: {error.strerror}", f"Make it readable for you: chmod 600 {path}")
    except Damaged as error:
        yield doubtful(check, f"{path} is damaged: {error}", f"mv {path} {path}.damaged")
    else:
        folder = os.path.dirname(path)
        if _can_write(folder):
            yield well(check, f"{path} is sound")
        else:
            yield doubtful(check, f"{folder} is not writable: nothing is counted", "Make it writable for you")


def _without_daemon(patient: Patient, *, left: bool) -> Iterator[Finding]:
    place, check = patient.place, "socket"
    before = starts.read(place)
    if before is not None and (before.refused or starts.last_words(place.start_log) or before.count >= starts.LOOP):
        said = starts.said(place, before) or "it printed nothing"
        which = f"{before.count} starts" if before.count > 1 and not before.refused else "start"
        yield ill(check, f"the last {which} of the daemon failed: {said}", "pursersctl start")
    if os.path.lexists(place.stopped):
        yield doubtful(check, "the daemon was stopped for good: no shim starts it", "pursersctl start")
    elif patient.environ.get(dial.AUTOSTART_VARIABLE) == "0":
        yield doubtful(
            check, f"no daemon runs, and no shim starts one ({dial.AUTOSTART_VARIABLE}=0)", "pursersctl start"
        )
    elif before is None:
        yield well(check, f"no daemon runs; the first conversation {_starts_one(patient, left=left)}")


def _starts_one(patient: Patient, *, left: bool) -> str:
    if service.start_command(patient.place, patient.environ) is not None:
        return "has the service start one"
    return "starts one, and takes the place of the socket that was left" if left else "starts one"


def _shared(whole: str, folder: str) -> Finding:
    """That another machine uses the state folder, or that this one had another id when it did."""
    first, mine = machine.owner(whole), machine.this_machine()
    if first is not None and first.host == mine.host:
        text = f"{whole} belongs to a machine that was called {mine.host}, too, but had another id: {folder} is used"
        return doubtful("state_folder", text, f"If that was this one: rm {whole}/{machine.CLAIM}; pursersctl restart")
    return well("state_folder", f"{whole} belongs to {first.host if first else 'another machine'}; ours is {folder}")


def _named(pid: int) -> str:
    return f"(pid {pid})" if pid else "in another pid namespace"


def _writable(check: str, folder: str) -> Iterator[Finding]:
    """Whether a folder is ours and writable, or can be made."""
    nearest = _nearest(folder)
    if not _can_write(nearest):
        why = "lies on a read-only file system" if _is_read_only(nearest) else "is not writable"
        yield ill(
            check, f"{nearest} {why}", f"Make it writable for you, then: pursersctl restart. See: ls -lad {nearest}"
        )
    elif nearest != folder:
        yield well(check, f"{folder} is made by the first start")
    else:
        mode = stat.S_IMODE(os.stat(folder).st_mode)
        if mode & 0o022:
            yield doubtful(check, f"{folder} can be written by others (mode {mode:04o})", f"chmod 700 {folder}")
        else:
            yield well(check, f"{folder} is writable")


def _room(folder: str) -> Iterator[Finding]:
    nearest = _nearest(folder)
    try:
        found = os.statvfs(nearest)
    except OSError as error:
        yield doubtful("disk", f"{nearest} does not tell its room: {error.strerror}", f"df {nearest}")
        return
    free = found.f_bavail * found.f_frsize
    if free < LEAST_ROOM or (found.f_files and not found.f_favail):
        yield ill("disk", f"no room is left at {nearest}: {size(free)}", f"Make room. See: df -h {nearest}")
    elif free < ROOM:
        yield doubtful("disk", f"only {size(free)} are free at {nearest}", f"Make room. See: df -h {nearest}")
    else:
        yield well("disk", f"{size(free)} are free at {nearest}")


def _nearest(folder: str) -> str:
    """The folder, or the nearest one above it that exists."""
    while not os.path.exists(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    return folder


def _can_write(folder: str) -> bool:
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _is_read_only(folder: str) -> bool:
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _is_json(path: Path) -> bool:
    try:
        msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, RecursionError):
        return False
    return True
