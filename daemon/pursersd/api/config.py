"""What `pursersctl config` and `reload` say: the configuration of the daemon itself."""

from typing import Literal

import msgspec

from pursersd.api.schema import SCHEMA


class ConfigRow(msgspec.Struct, frozen=True, kw_only=True):
    """One key."""

    key: str
    value: int | float | str
    """In force now; without a daemon what the next one would use."""
    default: int | float | str
    origin: Literal["flag", "variable", "file", "default"]
    name: str | None
    """Of a flag or a variable: its name."""
    pending: int | float | str | None = None
    """What the file means now, where that is not in force."""
    needs_restart: bool = False
    """Whether another value of this key counts only after a restart."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `config`."""

    file: str
    exists: bool
    rows: list[ConfigRow]
    problems: list[str]
    """What is wrong with the file as it is now."""
    notes: list[str]
    """Variables that are ignored."""
    schema: int = SCHEMA


class ConfigChange(msgspec.Struct, frozen=True, kw_only=True):
    """A key whose value is another one after a reload, or would be after a restart."""

    key: str
    before: int | float | str
    after: int | float | str
    needs_restart: bool


class Reloaded(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to `reload`: the file was read again, and nothing was wrong with it."""

    file: str
    exists: bool
    changes: list[ConfigChange]
    schema: int = SCHEMA
