"""What `doctor` and `sweep` find and print as JSON. docs/json.md describes it."""

from typing import Literal

import msgspec

from pursersd.api import SCHEMA

Result = Literal["pass", "warn", "fail"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `pursersctl doctor`."""

    check: str
    """Stable name of what was looked at."""
    subject: str | None = None
    """Which one of several, such as a door."""
    result: Result
    text: str
    action: str | None = None
    """What to do about it; None when nothing is to be done."""


class Doctor(msgspec.Struct, frozen=True, kw_only=True):
    """What `pursersctl doctor` prints."""

    result: Result
    """The worst of the findings."""
    findings: list[Finding]
    bundle: str | None = None
    """The file that was written with --bundle."""
    schema: int = SCHEMA


class SweptRow(msgspec.Struct, frozen=True, kw_only=True):
    """One bridge or shim that runs."""

    kind: Literal["bridge", "shim"]
    pid: int
    started: float
    """With pid and `boot` it names the process for ever: clock ticks since boot on Linux, else seconds since 1970."""
    age_s: float
    rss_bytes: int
    connections: list[str]
    """Addresses that it is connected to."""
    host: str | None
    """Name of the process that is, or may be, its host."""
    host_pid: int | None
    orphan: bool
    why: str
    """Why it counts as an orphan, or why it is left alone."""
    outcome: Literal["ended", "killed", "stays"] | None = None
    """What became of an orphan with --yes: SIGTERM ended it, SIGKILL did, or nothing has yet."""


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """What `pursersctl sweep` prints."""

    processes: list[SweptRow]
    ending: bool
    """Orphans were ended."""
    boot: str | None
    """Id of this boot of the machine; None where there is none."""
    schema: int = SCHEMA
