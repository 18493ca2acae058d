"""The bridges and shims of this user that run now, and what the system shows of their hosts. Looking changes nothing."""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import psutil

from pursers_shim.wire import readable
from pursersctl import sweep_pipes
from pursersctl.sweep_pipes import Ends, Pipes
from pursersd.conversation.identity import DEPTH, ProcessIdentity, is_wrapper, started_at
from pursersd.rules.hosting import Process, Scene, Verdict, verdict
from pursersd.rules.reaping import Subject, orphan
from pursersd.rules.server_command import Kind, hosts_nobody, server_kind

RUNNERS = ("UV", "UV_RUN_RECURSION_DEPTH", "npm_execpath")
"""Variables that package runners leave to what they start."""


@dataclass(frozen=True, slots=True)
class Server:
    """One stdio server of this user."""

    kind: Kind
    identity: ProcessIdentity
    process: Process
    age_s: float
    rss_bytes: int
    connections: tuple[str, ...]
    """Addresses that it is connected to: a bridge talks to its Central alone, a shim to nobody."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A server, whether it is there for nobody, and why."""

    server: Server
    verdict: Verdict
    is_orphan: bool
    held_by: str | None = None
    """Who keeps its input open although its host has ended."""


def servers(*, now: Callable[[], float] = time.time) -> list[Server]:
    """All that run, the oldest first. Those of other users, zombies and what ends meanwhile are left out."""
    connections = _Connections()
    found = [server for one in psutil.process_iter() if (server := _server(one, connections, now)) is not None]
    return sorted(found, key=lambda server: (-server.age_s, server.process.pid))


def judged(found: list[Server], of_shims: Callable[[int], Verdict | None]) -> Iterator[Judged]:
    """Each with its verdict. `of_shims` says what the daemon knows of the shim with a pid."""
    surroundings = Surroundings()
    for server in found:
        known = of_shims(server.process.pid) if server.kind == "shim" else None
        decided = known or verdict(surroundings.scene(server.process))
        subject = Subject(has_ended=False, is_detached=False, shim_lives=True, host_lives=decided.host_lives)
        is_orphan = orphan(subject) is not None
        yield Judged(server, decided, is_orphan, surroundings.held_by(server.process) if is_orphan else None)


class Surroundings:
    """What is around servers, looked at once, and only as far as somebody asks."""

    def scene(self, server: Process) -> Scene:
        """Everything that tells whether the server's host lives."""
        wrappers, above = _ancestors(server)
        by_runner = any(name in _environment(server.pid) for name in RUNNERS)
        scene = Scene(server, wrappers, above, by_runner=by_runner)
        if verdict(scene).host_lives:
            return scene  # its host stands above it: nothing else is asked
        ends = self._pipes.readers(server.pid) if self._pipes is not None else None
        outermost = wrappers[-1] if wrappers else server
        return Scene(
            server,
            wrappers,
            above,
            readers=None if ends is None else self._processes(ends, {server, *wrappers}),
            is_read_unseen=ends is not None and ends.is_unseen,
            on_terminal=ends is not None and ends.on_terminal,
            by_runner=by_runner,
            group=() if ends is not None else tuple(_group(outermost.group, server.pid)),
        )

    def held_by(self, server: Process) -> str | None:
        """Who can still write to its stdin, in words; None for nobody, or where that cannot be told."""
        ends = self._pipes.writers(server.pid) if self._pipes is not None else None
        if ends is None:
            return None
        names = [str(process) for process in self._processes(ends, {server})]
        return ", ".join(names) or ("somebody else" if ends.is_unseen else None)

    @cached_property
    def _pipes(self) -> Pipes | None:
        return sweep_pipes.look()

    @staticmethod
    def _processes(ends: Ends, without: set[Process]) -> tuple[Process, ...]:
        found = (process_of(pid) for pid in ends.pids)
        return tuple(process for process in found if process is not None and process not in without)


def process_of(pid: int) -> Process | None:
    """The living process with this pid; None when there is none."""
    started = started_at(pid)
    if started is None:
        return None
    try:
        process = psutil.Process(pid)
        return Process(pid, started, os.getpgid(pid), readable(process.name()), hosts_nobody(process.cmdline()))
    except psutil.AccessDenied:
        return Process(pid, started, os.getpgid(pid), "")
    except (psutil.Error, OSError):
        return None


def _server(process: psutil.Process, connections: "_Connections", now: Callable[[], float]) -> Server | None:
    try:
        if os.getuid() not in (process.uids().real, process.uids().effective):
            return None
        kind = server_kind(process.cmdline())
        found = process_of(process.pid) if kind is not None else None
        if kind is None or found is None:
            return None
        return Server(
            kind,
            ProcessIdentity(found.pid, found.started),
            found,
            max(0.0, now() - process.create_time()),
            process.memory_info().rss,
            connections.of(process),
        )
    except (psutil.Error, OSError):
        return None


class _Connections:
    """The TCP connections of all processes, listed once and only if somebody asks: the list may be long."""

    def of(self, process: psutil.Process) -> tuple[str, ...]:
        """The addresses that a process is connected to."""
        try:
            found = self._of_all[process.pid] if self._of_all is not None else process.net_connections(kind="tcp")
        except psutil.AccessDenied:
            return ()
        return tuple(sorted(f"{end.raddr.ip}:{end.raddr.port}" for end in found if end.raddr))

    @cached_property
    def _of_all(self) -> dict[int | None, list[Any]] | None:
        """By process; None where only root may list them all (macOS)."""
        found: dict[int | None, list[Any]] = defaultdict(list)
        try:
            for end in psutil.net_connections(kind="tcp"):
                found[end.pid].append(end)
        except psutil.AccessDenied:
            return None
        return found


def _ancestors(server: Process) -> tuple[tuple[Process, ...], Process | None]:
    """The wrappers above a server, the nearest first, and the first process above them."""
    wrappers: list[Process] = []
    above = _parent(server.pid)
    while above is not None and is_wrapper(above.name) and len(wrappers) < DEPTH:
        wrappers.append(above)
        above = _parent(above.pid)
    return tuple(wrappers), above


def _parent(pid: int) -> Process | None:
    try:
        above = psutil.Process(pid).ppid()
    except psutil.Error:
        return None
    return process_of(above) if above > 0 else None


def _environment(pid: int) -> dict[str, str]:
    try:
        return psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return {}


def _group(group: int, without: int) -> Iterator[Process]:
    for pid in psutil.pids():
        try:
            if pid == without or os.getpgid(pid) != group:
                continue
        except OSError:
            continue
        found = process_of(pid)
        if found is not None:
            yield found
