"""One server entry: what it starts, what it should be, and what must change in it. Data in, data out."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pursersctl import hosts_argv
from pursersctl.hosts_known import Known, Path, Shape
from pursersctl.hosts_report import Kind

SECRETS = frozenset({"ONBOARD_CENTRAL_TOKEN", "PURSERS_BOARD_CONNECTOR_TOKEN"})
"""Variables whose value is a credential."""

_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|PRIVATE_?KEY|BEARER|COOKIE", re.IGNORECASE)
_HARMLESS_NAME = re.compile(r"_(?:FILE|PATH|DIR|SHA256|MATCH)$|^PURSERS_ALLOW_ENV_TOKEN$", re.IGNORECASE)
_REFERENCE = re.compile(r"\$\w+|\$?\{[^{}]+\}")
_FIRST = ("type", "enabled")


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry as every host means it."""

    kind: Kind
    argv: list[str]
    env: dict[str, str]
    shape: Shape
    start: hosts_argv.Start | None

    @property
    def command(self) -> str | None:
        """The program that the host starts."""
        return self.argv[0] if self.argv else None


@dataclass(frozen=True, slots=True)
class Put:
    """One field to set. `keys` begin at the entry; an empty path is the entry itself."""

    keys: Path
    value: Any


def bears_secret(name: str) -> bool:
    """Whether a variable of that name holds a credential itself, and not the place or the digest of one."""
    return name in SECRETS or bool(_SECRET_NAME.search(name) and not _HARMLESS_NAME.search(name))


def read(known: Known, raw: Any) -> Entry:
    """What an entry of the file says; of kind `other` if it is not a program that we know, or no entry at all."""
    shape = next((shape for shape in known.shapes if isinstance(_at(raw, shape.command), str | list)), known.shapes[0])
    command, args, env = (_at(raw, keys) if keys else None for keys in (shape.command, shape.args, shape.env))
    argv = _strings(command if isinstance(command, list) else [command, *(args if isinstance(args, list) else [])])
    start = hosts_argv.start(argv)
    variables = {str(name): str(value) for name, value in env.items()} if isinstance(env, dict) else {}
    return Entry(start.kind if start else "other", argv, variables, shape, start)


def new(known: Known, name: str, shim: str, env: Mapping[str, str], *, plain: bool) -> dict[str, Any]:
    """The entry that `hosts add` writes. `plain`: without what the host needs to wait for our tools and to call them."""
    shape = known.shapes[0]
    variables = {**known.env, **env}
    entry: dict[str, Any] = {key: known.always[key] for key in _FIRST if key in known.always}
    if known.format == "yaml":
        entry["name"] = name
    if shape.args is None:
        entry[shape.command[-1]] = [shim]
    else:
        entry[shape.command[-1]] = shim
        if known.format != "toml":
            entry[shape.args[-1]] = []
    rest = {key: value for key, value in known.always.items() if key not in entry}
    entry |= {**rest, **known.limits, **({} if plain else _needs(known, variables))}
    entry[shape.env[-1]] = variables
    return entry


def refit(
    known: Known, entry: Entry, raw: Mapping[str, Any], shim: str, env: Mapping[str, str], *, plain: bool
) -> list[Put]:
    """What must change so that an entry of the bridge or of the shim starts this shim; the rest stays as it is."""
    assert entry.start is not None
    argv = [*entry.start.before, shim]
    puts: list[Put] = []
    if entry.shape.args is None:
        puts.append(Put(entry.shape.command, argv))
    else:
        puts.append(Put(entry.shape.command, argv[0]))
        if argv[1:] or entry.argv[1:]:
            puts.append(Put(entry.shape.args, argv[1:]))
    variables = {**entry.env, **env}
    puts += [Put((*entry.shape.env, name), value) for name, value in env.items()]
    if len(entry.shape.command) == 1:
        wanted = {**known.limits, **({} if plain else _needs(known, variables))}
        puts += [Put((key,), value) for key, value in wanted.items() if key not in raw]
    return [put for put in puts if _at(raw, put.keys) != put.value]


def lacking(known: Known, raw: Mapping[str, Any]) -> list[str]:
    """The names of the fields that the host needs and that an entry of the shim has not."""
    if not isinstance(raw.get(known.shapes[0].command[0]), str | list):
        return []  # an older shape has other fields
    return [key for key in {**known.limits, **known.needs} if key not in raw and key != "env_vars"]


def secrets_in(entry: Entry) -> list[str]:
    """The variables whose credential stands in the file itself; a reference to another place is none."""
    return [name for name, value in entry.env.items() if bears_secret(name) and not _REFERENCE.fullmatch(value.strip())]


def _needs(known: Known, variables: Mapping[str, str]) -> dict[str, Any]:
    needs = dict(known.needs)
    if "env_vars" in needs:
        needs["env_vars"] = [name for name in needs["env_vars"] if name not in variables]
    return needs


def _at(value: Any, keys: Path) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _strings(values: list[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]
