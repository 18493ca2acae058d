"""What the configuration of every known host says of us: for `pursersctl hosts list` and for `pursersctl doctor`."""

import os
from collections.abc import Iterator
from typing import Literal

from pursersctl import hosts_entry, hosts_places, hosts_target
from pursersctl.hosts_entry import Entry
from pursersctl.hosts_files import Unusable
from pursersctl.hosts_known import ENTRY, HOSTS, Known
from pursersctl.hosts_places import Machine, Place
from pursersctl.hosts_report import Found, HostEntry, HostFile, HostProblem, HostRow
from pursersctl.hosts_target import Target

ORDER: tuple[Found, ...] = ("shim", "bridge", "other")


def check(machine: Machine) -> list[HostRow]:
    """Every known host, installed or not, with its files, our entries in them and what is wrong with them.

    Reads files and looks for programs; starts and changes nothing. `machine` is `hosts_places.this_machine(environ)`.
    """
    return [_row(known, machine) for known in HOSTS]


def _row(known: Known, machine: Machine) -> HostRow:
    installed, program = hosts_places.installed(known, machine)
    files = [_file(known, place, machine) for place in hosts_places.places(known, machine)]
    entries = [entry for file in files for entry in file.entries]
    kinds = {entry.kind for entry in entries}
    return HostRow(
        host=known.name,
        title=known.title,
        installed=installed,
        program=program,
        found=next((kind for kind in ORDER if kind in kinds), "none"),
        command_exists=all(entry.command_exists for entry in entries),
        files=files,
        problems=list(
            dict.fromkeys(problem for file in files for problem in file.problems)
        ),  # a file may be in two scopes
    )


def _file(known: Known, place: Place, machine: Machine) -> HostFile:
    exists = os.path.lexists(place.path)
    try:
        target = hosts_target.read(known, place)
    except Unusable as error:
        problem = HostProblem(code=error.code, severity="fail", text=error.what, action=error.action)
        return HostFile(path=str(place.path), scope=place.scope, exists=exists, entries=[], problems=[problem])
    entries = target.ours()
    if ENTRY in target.servers:
        entries.setdefault(ENTRY, hosts_entry.read(known, target.servers[ENTRY]))
    problems = [problem for name, entry in entries.items() for problem in _problems(target, name, entry, machine)]
    return HostFile(
        path=str(place.path),
        scope=place.scope,
        exists=exists,
        entries=[_entry(name, entry, machine) for name, entry in entries.items()],
        problems=[*problems, *_duplicates(target, entries)],
    )


def _entry(name: str, entry: Entry, machine: Machine) -> HostEntry:
    program = _program(entry)
    return HostEntry(
        name=name,
        kind=entry.kind,
        command=program,
        command_exists=program is None or _is_there(program, machine),
        env=list(entry.env),
    )


def _program(entry: Entry) -> str | None:
    """What is started: behind `env NAME=VALUE`, if that stands before it."""
    return entry.argv[len(entry.start.before)] if entry.start and not entry.start.in_shell else entry.command


def _is_there(program: str, machine: Machine) -> bool:
    return os.access(program, os.X_OK) if os.path.isabs(program) else machine.program((program,)) is not None


def _problems(target: Target, name: str, entry: Entry, machine: Machine) -> Iterator[HostProblem]:
    where, host = f"{name} in {target.place.path}", target.known.name
    option = "" if target.place.scope == "user" else f" --scope {target.place.scope}"
    option += "" if name == ENTRY else f" --entry {name}"
    again = f"pursersctl hosts {'migrate' if entry.kind == 'bridge' else 'add'} {host}{option}"
    program = _program(entry)
    if entry.kind == "bridge":
        yield _warning("bridge", f"{where} starts pursers-wait-bridge.", again)
    if entry.kind == "other" or program is None:
        return
    if not _is_there(program, machine):
        yield _problem("command_missing", "fail", f"{where} starts {program}, which is not there.", again)
    elif entry.kind == "shim" and not os.path.isabs(program):
        text = f"{where} starts {program} without its path; a host with another PATH does not find it."
        yield _warning("command_relative", text, again)
    raw = target.servers[name]
    if raw.get("enabled") is False or raw.get("disabled") is True:
        yield _warning(
            "disabled", f"{where} is switched off.", f"Switch it on in {target.known.title}, or in the file."
        )
    if secrets := hosts_entry.secrets_in(entry):
        text = f"{where} holds a credential: {', '.join(secrets)}."
        yield _warning("secret_in_environment", text, "Store a door with: pursersctl join - (then remove the variable)")
    if entry.kind == "shim" and (lacking := hosts_entry.lacking(target.known, raw)):
        text = f"{where} has no {', '.join(lacking)}; {target.known.title} may not wait for the tools, or ask before each call."
        yield _warning("needs_missing", text, again)


def _duplicates(target: Target, entries: dict[str, Entry]) -> Iterator[HostProblem]:
    """Two entries start two servers in each conversation, and the model has every tool twice."""
    ours = [name for name, entry in entries.items() if entry.kind != "other"]
    if len(ours) > 1:
        text = (
            f"{target.place.path} has several entries of ours: {', '.join(ours)}. Each conversation starts all of them."
        )
        option = "" if target.place.scope == "user" else f" --scope {target.place.scope}"
        yield _warning("duplicate", text, f"pursersctl hosts remove {target.known.name}{option} --entry NAME")


def _warning(code: str, text: str, action: str) -> HostProblem:
    return _problem(code, "warn", text, action)


def _problem(code: str, severity: Literal["warn", "fail"], text: str, action: str) -> HostProblem:
    return HostProblem(code=code, severity=severity, text=text, action=action)
