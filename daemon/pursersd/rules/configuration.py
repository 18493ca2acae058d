"""What can be configured about the daemon itself: every key with its default, and which of several values counts.

A flag of `pursersd` comes before its variable, the variable before the file, the file before the default. What one
conversation is, that is, its Central, board and seat, is not configured here but by the environment of its shim and the
stored doors (docs/decisions/0025). Pure: the text of the file and the environment are given.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

Value = int | float | str

OriginKind = Literal["flag", "variable", "file", "default"]

LEVELS = ("debug", "info", "warning")

KIB = 1024


@dataclass(frozen=True, slots=True)
class Configuration:
    """How the daemon works. The defaults stand here and nowhere else."""

    idle_exit_s: float = 600.0
    drain_s: float = 10.0
    stop_drain_s: float = 30.0
    descriptors: int = 8192
    log_level: str = "info"
    log_max_bytes: int = 2 * KIB * KIB
    log_kept: int = 3
    resume_grace_s: float = 10.0
    max_calls: int = 256
    max_call_bytes: int = 32 * KIB * KIB
    stats_every_s: float = 2.0


DEFAULTS = Configuration()


@dataclass(frozen=True, slots=True)
class Key:
    """One thing that can be set. docs/configuration.md lists the same, which a test compares."""

    name: str
    """In the file: section and key."""
    field: str
    """In Configuration."""
    variable: str
    least: float = 0
    most: float = math.inf
    choices: tuple[str, ...] = ()
    """The allowed texts; empty for a number."""
    needs_restart: bool = False

    @property
    def default(self) -> Value:
        """Its value where nothing is set."""
        value: Value = getattr(DEFAULTS, self.field)
        return value

    @property
    def allowed(self) -> str:
        """What it takes, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        kind = "an integer" if isinstance(self.default, int) else "a number of seconds"
        if self.most == math.inf:
            return f"{kind} from {self.least:g} on"
        return f"{kind} from {self.least:.10g} to {self.most:.10g}"


DAY = 86_400.0

KEYS = (
    Key("daemon.idle_exit_s", "idle_exit_s", "PURSERSD_IDLE_EXIT_S"),
    Key("daemon.drain_s", "drain_s", "PURSERSD_DRAIN_S", 0, 60),
    Key("daemon.stop_drain_s", "stop_drain_s", "PURSERSD_STOP_DRAIN_S", 0, 60),
    Key("daemon.descriptors", "descriptors", "PURSERSD_DESCRIPTORS", 256, 1 << 20, needs_restart=True),
    Key("log.level", "log_level", "PURSERSD_LOG_LEVEL", choices=LEVELS),
    Key("log.max_bytes", "log_max_bytes", "PURSERSD_LOG_MAX_BYTES", 64 * KIB, KIB**3),
    Key("log.kept", "log_kept", "PURSERSD_LOG_KEPT", 1, 100),
    Key("conversations.resume_grace_s", "resume_grace_s", "PURSERSD_RESUME_GRACE_S", 1, 3600),
    Key("conversations.max_calls", "max_calls", "PURSERSD_MAX_CALLS", 1, 100_000),
    Key("conversations.max_call_bytes", "max_call_bytes", "PURSERSD_MAX_CALL_BYTES", 64 * KIB, KIB**3),
    Key("statistics.write_every_s", "stats_every_s", "PURSERSD_STATS_EVERY_S", 0.1, DAY),
)

SECTIONS = tuple(dict.fromkeys(key.name.partition(".")[0] for key in KEYS))


@dataclass(frozen=True, slots=True)
class Setting:
    """The value of a key, and where it came from."""

    value: Value
    origin: OriginKind
    name: str | None = None
    """Of a flag or a variable: its name."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Every key's setting, in the order of KEYS, and what was wrong."""

    settings: Mapping[str, Setting]
    problems: tuple[str, ...] = ()
    """What is wrong in the file, each with its place and what is allowed there."""
    notes: tuple[str, ...] = ()
    """Variables that were ignored."""

    @property
    def configuration(self) -> Configuration:
        """The values alone."""
        return Configuration(**{key.field: self.settings[key.name].value for key in KEYS})  # type: ignore[arg-type]


def resolve(
    flags: Mapping[str, tuple[str, Value]], environ: Mapping[str, str], text: str | None, file: str
) -> Resolved:
    """What counts. `flags` maps a key to flag and value; `text` is that of the file at `file`, None where there is none."""
    found, problems = read(text, file) if text is not None else ({}, ())
    settings: dict[str, Setting] = {}
    notes: list[str] = []
    for key in KEYS:
        settings[key.name] = Setting(key.default, "default")
        if key.name in found:
            settings[key.name] = Setting(found[key.name], "file")
        given = environ.get(key.variable, "").strip()
        if given:
            value = _accepted(key, _parsed(key, given))
            if value is None:
                notes.append(f"{key.variable} must be {key.allowed}; it is ignored")
            else:
                settings[key.name] = Setting(value, "variable", key.variable)
        if key.name in flags:
            flag, value = flags[key.name]
            settings[key.name] = Setting(value, "flag", flag)
    return Resolved(settings, tuple(problems), tuple(notes))


def read(text: str, file: str) -> tuple[dict[str, Value], list[str]]:
    """The values in the text of a file, by key, and what is wrong with the rest of it."""
    import tomllib  # here, because most daemons have no file, and all should have their lock soon

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return {}, [f"{file}: it is not TOML: {error}"]
    found: dict[str, Value] = {}
    problems: list[str] = []
    known = {key.name: key for key in KEYS}
    for name, value in _entries(document):
        key = known.get(name)
        where = f"{file}, line {_line(text, name)}"
        if key is None:
            problems.append(f"{where}: {_unknown(name)}")
        elif (accepted := _accepted(key, value)) is None:
            problems.append(f"{where}: {name} must be {key.allowed}")
        else:
            found[name] = accepted
    return found, problems


def flag_value(name: str, text: str) -> Value:
    """The value of a flag for the key `name`. Raises ValueError with what is allowed."""
    key = next(key for key in KEYS if key.name == name)
    value = _accepted(key, _parsed(key, text))
    if value is None:
        raise ValueError(f"must be {key.allowed}")
    return value


def _entries(document: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for section, content in document.items():
        if section in SECTIONS and isinstance(content, Mapping):
            yield from ((f"{section}.{name}", value) for name, value in content.items())
        else:
            yield section, content


def _unknown(name: str) -> str:
    section, _, key = name.partition(".")
    if section not in SECTIONS:
        return f"there is no section {section!r}; there are {', '.join(f'[{known}]' for known in SECTIONS)}"
    if not key:
        return f"{section!r} is a section: write [{section}] and its keys below it"
    keys = ", ".join(key.name.partition(".")[2] for key in KEYS if key.name.startswith(f"{section}."))
    return f"there is no key {key!r} in [{section}]; there are {keys}"


def _accepted(key: Key, value: object) -> Value | None:
    if key.choices:
        return value if isinstance(value, str) and value in key.choices else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(key.default, int):
        return value if isinstance(value, int) and key.least <= value <= key.most else None
    return float(value) if math.isfinite(value) and key.least <= value <= key.most else None


def _parsed(key: Key, text: str) -> object:
    if key.choices:
        return text.lower()
    try:
        return int(text) if isinstance(key.default, int) else float(text)
    except ValueError:
        return None


def _line(text: str, name: str) -> int:
    """Where a key stands: tomllib does not say it. The line of its section for a spelling that is not looked for."""
    section, _, key = name.partition(".")
    found = 1
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if heading := re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line):
            title = re.sub(r"[\"' ]", "", heading[1])
            if title == name:
                return number
            inside = title == section
            found = number if inside else found
        written = re.match(r"\s*([\w.\"' -]+?)\s*=", line)
        bare = re.sub(r"[\"' ]", "", written[1]) if written else ""
        if bare and (bare == name or bare.startswith(f"{name}.") or (inside and bare == key)):
            return number
        if bare and not inside and bare.partition(".")[0] == section and not key:
            return number
    return found
