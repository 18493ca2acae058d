"""Checks of the running daemon: what it says of itself, its version, its descriptors."""

import resource
from collections.abc import Iterator

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
