"""The file that `pursersctl doctor --bundle` writes: what somebody needs to help, and no secret.

A section is a function in SECTIONS. Whatever it yields goes through the redaction; nothing gets into the file beside it.
"""

import contextlib
import importlib.metadata
import io
import os
import platform
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
import psutil

from pursers_shim import __version__
from pursers_shim.wire import readable
from pursersctl import client, doctor_shown, service, sweep
from pursersctl.doctor_install import NEEDED
from pursersctl.doctor_patient import Patient
from pursersctl.errors import CommandError, Failed
from pursersctl.found import Doctor, Finding, Sweep
from pursersctl.redaction import Redaction, is_secret, named_secrets
from pursersctl.render import plain
from pursersctl.sweep_servers import servers
from pursersd import api
from pursersd.errors import DoorsError
from pursersd.rules.door import Door
from pursersd.secret import Secret
from pursersd.state.doors import Doors, folder

VERBS = ("status", "ps", "ended", "reap", "stats")
"""What the daemon is asked; all of it only reads."""

ASK_TIMEOUT = 3.0  # seconds that each question may take
LOG_FILES = ("", ".1", ".2", ".3")
LOG_LIMIT = 2 << 20  # bytes of each log that are taken, from its end
TOKEN_LIMIT = 64 << 10  # bytes of a token file that are read, to know what to leave out

OURS = ("ONBOARD_", "PURSERS_", "PURSERSD_")
TOKEN_FILE_VARIABLE = "ONBOARD_CENTRAL_TOKEN_FILE"

Part = tuple[str, str]
"""Name of a file in the bundle and its text."""

Section = Callable[[Patient], Iterable[Part]]


def write(path: Path, who: Patient, findings: list[Finding]) -> None:
    """Write a new file, 0600 from its first moment. Raises Failed if there is one, or it cannot be written."""
    redaction = Redaction(_known_secrets(who))
    parts = [(name, redaction.clean(text).encode(errors="replace")) for name, text in _parts(who, findings)]
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Failed(f"{path} cannot be made: {error.strerror}") from error
    try:
        with open(file, "wb") as out:
            os.fchmod(file, 0o600)
            out.write(_zip(parts) if path.suffix == ".zip" else _tar(parts))
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink()
        raise Failed(f"{path} cannot be written: {error.strerror}") from error


def _parts(who: Patient, findings: list[Finding]) -> Iterator[Part]:
    report = Doctor(result="pass", findings=findings)
    yield "doctor.txt", plain(doctor_shown.doctor(report, 120))
    yield "doctor.json", _json(findings)
    for section in SECTIONS:
        yield from section(who)


def _versions(_: Patient) -> Iterator[Part]:
    packages = {}
    for name in ("pursersd", "httpx2", "pyjwt", "pursers-central", "pursers-wait-bridge", *NEEDED):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            packages[name] = importlib.metadata.version(name)
    found = {
        "pursersctl": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
    }
    yield "versions.json", _json(found)


def _environment(who: Patient) -> Iterator[Part]:
    """The variables that steer pursersctl; those of conversations stand in their own files."""
    found = {
        readable(name): "<secret>" if is_secret(name) else readable(value)
        for name, value in sorted(who.environ.items())
        if name.startswith(OURS) or name in ("HOME", "PATH", "XDG_STATE_HOME", "TERM", "LANG")
    }
    yield "environment.json", _json(found)


def _daemon(who: Patient) -> Iterator[Part]:
    """What the daemon says of itself, of its conversations, and where each of their settings came from."""
    rows: list[api.SeatRow] = []
    try:
        for verb in VERBS:
            answer = client.ask(who.place, verb, timeout=ASK_TIMEOUT)
            yield f"daemon/{verb}.json", _indented(answer)
            if verb == "ps":
                rows = client.read(answer, api.Ps).seats
        for row in rows:
            with contextlib.suppress(Failed):  # it has ended meanwhile
                answer = client.ask(who.place, "conversation", {"which": row.conversation}, timeout=ASK_TIMEOUT)
                yield f"conversations/{row.conversation}.json", _indented(answer)
    except CommandError as error:  # one that hangs is not asked again
        yield "daemon/error.txt", f"{error}\n"


def _logs(who: Patient) -> Iterator[Part]:
    log = api.log_file(who.place.home)
    others = (who.place.start_log, who.place.starts, f"{os.path.dirname(log)}/service.err", _central_log(who))
    for name in (*(log + suffix for suffix in LOG_FILES), *others):
        text = _end(name)
        if text is not None:
            yield f"logs/{os.path.basename(name)}", text


def _central_log(who: Patient) -> str:
    """What the local board's Central printed."""
    return f"{api.local_folder(who.place.home)}/central.log"


def _service(who: Patient) -> Iterator[Part]:
    """The service, as `pursersctl service status` shows it."""
    try:
        yield "service.json", _json(service.look(service.of(who.place, who.environ, None)))
    except CommandError as error:
        yield "service.error.txt", f"{error}\n"


def _doors(who: Patient) -> Iterator[Part]:
    """The stored doors without token and address, as `pursersctl doors` shows them."""
    try:
        stored = _stored(who)
    except DoorsError as error:
        yield "doors.error.txt", f"{error}\n"
        return
    rows = [
        {"board": door.board, "role": door.role, "kid": door.kid, "exp": door.expires, "joined_at": door.joined_at}
        for door in stored
    ]
    yield "doors.json", _json(rows)


def _processes(who: Patient) -> Iterator[Part]:
    found = [sweep.row(one) for one in sweep.survey(who.place)]
    yield "processes.json", _json(Sweep(processes=found, ending=False, boot=sweep.boot_id()))


SECTIONS: tuple[Section, ...] = (_versions, _environment, _daemon, _logs, _service, _doors, _processes)


def _known_secrets(who: Patient) -> Iterator[Secret]:
    """Every secret that can be found out: whatever else a text holds, these are taken out of it."""
    environments = [dict(who.environ)]
    for server in servers():
        with contextlib.suppress(psutil.Error, OSError):
            environments.append(psutil.Process(server.process.pid).environ())
    for environment in environments:
        yield from named_secrets(environment)
        yield from _in_file(environment)
    with contextlib.suppress(DoorsError):
        for door in _stored(who):
            yield door.token


def _in_file(environment: Mapping[str, str]) -> Iterator[Secret]:
    path = environment.get(TOKEN_FILE_VARIABLE, "").strip()
    text = _end(os.path.expanduser(path), TOKEN_LIMIT) if path else None
    if text is not None and text.strip():
        yield Secret(text.strip())


def _stored(who: Patient) -> tuple[Door, ...]:
    return Doors(folder(who.environ, who.place.home, who.cwd)).load()


def _end(path: str, limit: int = LOG_LIMIT) -> str | None:
    """The last bytes of a file from the beginning of a line on: half a secret would not be known; None without file."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            length = os.fstat(file.fileno()).st_size
            file.seek(max(0, length - limit))
            data = file.read(limit)
    except OSError:
        return None
    if length > limit:
        data = data.partition(b"\n")[2]
    return data.decode(errors="replace")


def _json(value: object) -> str:
    return _indented(msgspec.json.encode(value))


def _indented(document: bytes) -> str:
    return msgspec.json.format(document, indent=2).decode() + "\n"


def _tar(parts: list[tuple[str, bytes]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in parts:
            entry = tarfile.TarInfo(f"pursersd/{name}")
            entry.size, entry.mode = len(data), 0o600
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def _zip(parts: list[tuple[str, bytes]]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts:
            entry = zipfile.ZipInfo(f"pursersd/{name}")
            entry.external_attr, entry.compress_type = 0o600 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return packed.getvalue()
