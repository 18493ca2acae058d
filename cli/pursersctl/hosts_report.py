"""What `pursersctl hosts` tells of the configuration of hosts; docs/json.md describes it. `doctor` reads it, too."""

from typing import Literal

import msgspec

from pursersd.api import SCHEMA

Kind = Literal["shim", "bridge", "other"]
"""What an entry starts: our shim, pursers-wait-bridge, or something else that has our name."""

Scope = Literal["user", "project", "local"]
"""For whom an entry counts: this user everywhere, whoever works in this folder, this user in this folder."""

Found = Literal["none", "shim", "bridge", "other"]


class HostProblem(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a configuration, and what to do about it."""

    code: str
    """Stable: unreadable, broken, too_clever, command_missing, command_relative, bridge, duplicate, disabled,
    secret_in_environment, needs_missing."""
    severity: Literal["warn", "fail"]
    """`fail` where conversations of this host cannot work, or nobody can tell."""
    text: str
    action: str
    """The next command, or what to change by hand."""


class HostEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One server entry of ours in a host's configuration file."""

    name: str
    kind: Kind
    command: str | None
    """The program that the host starts; None if the entry names none."""
    command_exists: bool
    env: list[str]
    """The names of the variables that it sets; never a value."""


class HostFile(msgspec.Struct, frozen=True, kw_only=True):
    """One place where a host looks for servers."""

    path: str
    scope: Scope
    exists: bool
    entries: list[HostEntry]
    problems: list[HostProblem]


class HostRow(msgspec.Struct, frozen=True, kw_only=True):
    """One known host."""

    host: str
    title: str
    """Its name for people."""
    installed: bool
    program: str | None
    """Where its program was found; None if only traces of it were, or nothing."""
    found: Found
    """What its files hold for us: the shim, else the bridge, else something else under our name, else nothing."""
    command_exists: bool
    """Whether every program that these entries start exists; true where there is none."""
    files: list[HostFile]
    problems: list[HostProblem]
    """Those of all its files."""


class HostList(msgspec.Struct, frozen=True, kw_only=True):
    """What `pursersctl hosts list` prints."""

    shim: str
    """The shim that `hosts add` would write."""
    hosts: list[HostRow]
    schema: int = SCHEMA


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """One field of an entry that changes. Values of the environment are not shown unless this command gave them."""

    field: str
    before: str | None
    after: str | None


class EntryChange(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to one entry."""

    entry: str
    action: Literal["added", "updated", "removed", "migrated", "restored", "unchanged"]
    fields: list[FieldChange]


class HostChange(msgspec.Struct, frozen=True, kw_only=True):
    """What `pursersctl hosts add`, `remove` and `migrate` print."""

    host: str
    scope: Scope
    file: str
    """The file that is written, behind symbolic links."""
    entries: list[EntryChange]
    dry_run: bool
    through: Literal["file", "command"]
    """Whether we wrote the file or the host's own command did."""
    backup: str | None
    """Where the file as it was is kept; None if nothing was written or there was no file."""
    notes: list[str]
    schema: int = SCHEMA
