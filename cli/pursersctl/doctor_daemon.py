"""Checks of the running daemon: what it says of itself, its version, its descriptors."""

import resource
from collections.abc import Iterator
from pathlib import Path

from pursers_shim import __version__
from pursersctl import client
from pursersctl.doctor_patient import Patient, advised, doubtful, ill, well
from pursersctl.errors import CommandError, NotRunning
from pursersctl.found import Finding
from pursersctl.render import counted, duration, size
from pursersd import api

FAILING = ("credential_refused", "central_unreachable", "settings_wrong", "descriptors_short")
"""Warnings of the daemon that mean that somebody cannot work."""

FEW_DESCRIPTORS = 512
"""Descriptors that a daemon should be allowed: a conversation takes three."""


def daemon(patient: Patient) -> Iterator[Finding]:
    """Whether it answers, and every warning that it has."""
    try:
        status = client.read(client.ask(patient.place, "status"), api.Status)
    except NotRunning:
        yield well("daemon", "not running; nothing to ask")
        yield from _allowed()
        return
    except CommandError as error:
        yield ill("daemon", *advised(str(error), "pursersctl logs"))
        return
    yield _itself(status)
    yield _whose(status.daemon, control_group(status.daemon.pid))
    if status.daemon.version != __version__:
        text = f"the daemon is version {status.daemon.version}, pursersctl is {__version__}"
        yield doubtful("daemon", text, "pursersctl restart", of="version")
    for warning in status.warnings:
        say = ill if warning.code in FAILING else doubtful
        yield say("daemon", warning.text, warning.action, of=warning.code)
    yield _used(status.daemon)


def _itself(status: api.Status) -> Finding:
    found = status.daemon
    if found.state != "ready":
        return doubtful("daemon", f"pursersd (pid {found.pid}) is leaving", "Look again: pursersctl status")
    conversations = counted(status.conversations, "conversation")
    text = f"pursersd {found.version} (pid {found.pid}) is ready: {conversations}, up {duration(found.uptime_s)}"
    return well("daemon", f"{text}, {size(found.rss_bytes)}")


def _whose(found: api.DaemonStatus, group: str | None) -> Finding:
    """Who started it, and what ends it: a control group is inherited, whatever else a process lets go of."""
    if found.started_by == "service":
        return well("daemon", "the service manager started it and looks after it", of="started_by")
    who = "a shim" if found.started_by == "auto" else "a person, or a program of yours,"
    with_what = f" It is in the control group {group} and ends with it." if group else ""
    after = "if it is ended, the next call starts another one and waits go on"
    return well("daemon", f"{who} started it, no service.{with_what} Nothing is lost then: {after}", of="started_by")


def control_group(pid: int) -> str | None:
    """The unit of systemd that a process is in, which is that of whoever started it; None where there is none."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    paths = [line.partition("::" if line.startswith("0::") else "name=systemd:")[2] for line in lines]
    units = [path.rpartition("/")[2] for path in paths if path.strip("/")]
    return next((unit for unit in units if unit.endswith((".scope", ".service", ".slice"))), None)


def _used(found: api.DaemonStatus) -> Finding:
    text = f"{found.descriptors} of {found.descriptor_limit} file descriptors are in use"
    if found.descriptors * 10 > found.descriptor_limit * 8:
        return doubtful("descriptors", text, "Close chats that nobody uses, or raise the limit: ulimit -n")
    return well("descriptors", text)


def _allowed() -> Iterator[Finding]:
    """What a daemon that is started from here may have; it asks for as many as it can get."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FEW_DESCRIPTORS:
        text = f"a daemon may have only {hard} file descriptors, three for each conversation"
        yield doubtful("descriptors", text, "Raise the limit: ulimit -Hn, or in /etc/security/limits.conf")
    else:
        yield well("descriptors", "a daemon may have as many as it wants")
