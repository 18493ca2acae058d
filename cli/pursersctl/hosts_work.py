"""`pursersctl hosts add`, `remove` and `migrate`: which entry, which change, what is told of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from pursersctl import hosts_claude, hosts_edit, hosts_entry, hosts_files, hosts_places, hosts_target, hosts_write
from pursersctl.errors import Failed
from pursersctl.hosts_edit import Edit
from pursersctl.hosts_known import ENTRY, Known
from pursersctl.hosts_places import Machine
from pursersctl.hosts_records import Records
from pursersctl.hosts_report import EntryChange, FieldChange, HostChange, Scope
from pursersctl.hosts_target import Target
from pursersd.secret import blanked

RESTART = "{title} reads its servers when it starts: start it again, or a new conversation."
SHARED = "This file is for everybody who works in the folder; the path of the shim is that of this machine."
SECRET = (
    "{names} stays in the file as it is. Better keep the credential out of it: in a file that ONBOARD_CENTRAL_TOKEN_FILE names, "
    "or as a door (pursersctl join -)."
)


@dataclass(frozen=True, slots=True)
class Wish:
    """The arguments of a command."""

    known: Known
    machine: Machine
    records: Records
    scope: Scope = "user"
    entry: str | None = None
    env: Mapping[str, str] | None = None
    plain: bool = False
    force: bool = False
    """Also for a host that is not found on this machine."""
    dry_run: bool = False


def add(wish: Wish) -> HostChange:
    """Let a host start the shim. An entry that does already is made right; one of something else is left alone."""
    known, name = wish.known, wish.entry or ENTRY
    if not wish.force and not hosts_places.installed(known, wish.machine)[0]:
        text = f"{known.title} is not found on this machine. If it will be: pursersctl hosts add {known.name} --force"
        raise Failed(text, code="not_installed")
    target = hosts_target.find(known, wish.machine, wish.scope, name)
    shim, env = wish.machine.shim(), wish.env or {}
    raw = target.servers.get(name)
    if raw is not None:
        return _update(wish, target, name, raw, shim)
    entry = hosts_entry.new(known, name, shim, env, plain=wish.plain)
    fields = [FieldChange(field=key, before=None, after=_shown(value)) for key, value in entry.items()]
    edits = {name: [Edit(target.keys(name), entry)]}
    change = _change(wish, target, [EntryChange(entry=name, action="added", fields=fields)], _notes(wish, target))
    argv = hosts_claude.command(known, wish.machine, wish.scope, name, entry)
    if argv is None or (target.file.exists and not target.file.text.strip()):  # blank: broken to Claude Code
        return _written(wish, target, change, edits, "added")
    target.changed(
        edits[name], hosts_write.BY_HAND
    )  # a file that the host would repair in its own way is refused first
    if wish.dry_run:
        return _replaced(change, through="command", notes=[*change.notes, f"Would run: {' '.join(argv[:-1])} …"])
    return _by_command(wish, target, change, edits, argv)


def remove(wish: Wish) -> HostChange:
    """Take the shim out of a host again, exactly as it was put in if that can be told."""
    target = hosts_target.find(wish.known, wish.machine, wish.scope, wish.entry)
    shims = [name for name, entry in target.ours().items() if entry.kind == "shim"]
    names = shims if wish.entry is None else [name for name in target.servers if name == wish.entry]
    if not names:
        nothing = EntryChange(entry=wish.entry or ENTRY, action="unchanged", fields=[])
        return _change(wish, target, [nothing], ["There is no such entry of the shim."])
    if names[0] not in shims:
        text = f"{names[0]} in {target.place.path} does not start the shim. Nothing was changed."
        raise Failed(text, code="other_entry")
    if len(names) > 1:
        text = f"{target.place.path} has several entries of the shim: {', '.join(names)}. Say which: --entry NAME"
        raise Failed(text, code="ambiguous")
    (name,) = names
    record = wish.records.find(target.file.path, target.keys(name))
    notes = [RESTART.format(title=wish.known.title)]
    if record and record.action == "migrated":
        notes.append(f"It was the bridge's before; that entry is in {record.copy}")
    change = _change(wish, target, [EntryChange(entry=name, action="removed", fields=[])], notes)
    target.changed([Edit(target.keys(name), gone=True)], hosts_write.BY_HAND)
    hosts_files.check_writable(target.file)
    if wish.dry_run:
        return change
    return _replaced(change, backup=hosts_write.entry_removed(target, wish.records, name))


def migrate(wish: Wish) -> HostChange:
    """Turn the entries of the bridge into entries of the shim, with the same environment."""
    target = hosts_target.find(wish.known, wish.machine, wish.scope, wish.entry)
    ours = {name: entry for name, entry in target.ours().items() if wish.entry in (None, name)}
    bridges = {name: entry for name, entry in ours.items() if entry.kind == "bridge"}
    if not bridges:
        if ours:
            entries = [EntryChange(entry=name, action="unchanged", fields=[]) for name in ours]
            return _change(wish, target, entries, ["The shim is there already."])
        text = f"{target.place.path} has no entry of pursers-wait-bridge. Add the shim with: pursersctl hosts add "
        raise Failed(f"{text}{wish.known.name}{_scope_option(wish)}", code="no_bridge")
    edits: dict[str, list[Edit]] = {}
    entries, notes = [], _notes(wish, target)
    for name, entry in bridges.items():
        puts = _refitted(wish, target, name, entry)
        edits[name] = [Edit((*target.keys(name), *put.keys), put.value) for put in puts]
        kept = FieldChange(
            field="environment", before=_names(entry.env), after=_names({**entry.env, **(wish.env or {})})
        )
        fields = [_field_change(target, name, put) for put in puts]
        entries.append(EntryChange(entry=name, action="migrated", fields=[*fields, kept] if entry.env else fields))
        if secrets := hosts_entry.secrets_in(entry):
            notes.append(SECRET.format(names=", ".join(secrets)))
    return _written(wish, target, _change(wish, target, entries, notes), edits, "migrated")


def restore(wish: Wish) -> HostChange:
    """Undo `migrate`: the entries start the bridge again."""
    target = hosts_target.find(wish.known, wish.machine, wish.scope, wish.entry)
    changes = [
        record
        for record in wish.records.of(target.file.path, "migrated")
        if record.keys[:-1] == target.place.container and wish.entry in (None, record.keys[-1])
    ]
    if not changes or any(record.keys[-1] not in target.servers for record in changes):
        raise Failed(f"No migration of {target.place.path} is known that could be undone.", code="nothing_to_undo")
    entries = [EntryChange(entry=record.keys[-1], action="restored", fields=[]) for record in changes]
    change = _change(wish, target, entries, [RESTART.format(title=wish.known.title)])
    hosts_files.check_writable(target.file)
    if wish.dry_run:
        return change
    return _replaced(change, backup=hosts_write.restored(target, wish.records, changes))


def _update(wish: Wish, target: Target, name: str, raw: Any, shim: str) -> HostChange:
    """Make an entry of the shim right: its path, what is missing, and what is wished."""
    entry = hosts_entry.read(wish.known, raw)
    if entry.kind == "bridge":
        text = f"{name} in {target.place.path} starts pursers-wait-bridge. Turn it into the shim with: "
        raise Failed(f"{text}pursersctl hosts migrate {wish.known.name}{_scope_option(wish)}", code="bridge")
    if entry.kind != "shim":
        text = f"{name} in {target.place.path} is something else. Choose another name: --entry NAME"
        raise Failed(text, code="other_entry")
    puts = _refitted(wish, target, name, entry)
    fields = [_field_change(target, name, put) for put in puts]
    action = EntryChange(entry=name, action="updated" if puts else "unchanged", fields=fields)
    change = _change(wish, target, [action], _notes(wish, target) if puts else ["It is right already."])
    if not puts:
        return change
    edits = {name: [Edit((*target.keys(name), *put.keys), put.value) for put in puts]}
    return _written(wish, target, change, edits, "updated")


def _refitted(wish: Wish, target: Target, name: str, entry: hosts_entry.Entry) -> list[hosts_entry.Put]:
    assert entry.start is not None
    shim = wish.machine.shim()
    if entry.start.in_shell or entry.start.after:
        how = "in a shell command" if entry.start.in_shell else "with arguments, which the shim does not have"
        text = f"{name} in {target.place.path} starts {'pursers-wait-bridge' if entry.kind == 'bridge' else 'the shim'} {how}."
        raise Failed(f"{text}\nChange it by hand: the command is {shim}, without arguments.", code="too_clever")
    raw = target.servers[name]
    return hosts_entry.refit(wish.known, entry, raw, shim, wish.env or {}, plain=wish.plain)


def _written(wish: Wish, target: Target, change: HostChange, edits: dict[str, list[Edit]], action: str) -> HostChange:
    target.changed([edit for of_entry in edits.values() for edit in of_entry], hosts_write.BY_HAND)
    hosts_files.check_writable(target.file)
    if wish.dry_run:
        return change
    return _replaced(change, backup=hosts_write.edits_written(target, wish.records, edits, action))


def _by_command(
    wish: Wish, target: Target, change: HostChange, edits: dict[str, list[Edit]], argv: list[str]
) -> HostChange:
    """Let the host's own command do it, see what it did, and do it ourselves where it did not."""
    copy = wish.records.keep(target.file)
    failure = hosts_claude.run(argv, wish.machine)
    now = hosts_target.read(wish.known, target.place)
    ((name, (edit,)),) = edits.items()
    if failure is None and name not in now.servers:
        failure = f"it wrote no entry into {target.place.path}"
    if failure is not None:
        note = f"{' '.join(argv[1:3])} did not work ({blanked(failure)}); the file was written instead."
        return _written(wish, now, _replaced(change, notes=[*change.notes, note]), edits, "added")
    text = now.file.text
    missing = [
        Edit((*edit.keys, key), value) for key, value in edit.value.items() if now.servers[name].get(key) != value
    ]
    if missing:
        text = now.changed(missing, hosts_write.BY_HAND)
        hosts_files.replace(now.file, now.file.encoded(text), mode=hosts_files.NEW_MODE[wish.scope])
    wish.records.put(hosts_write.record(target, name, "added", [edit], text, copy, []))
    return _replaced(change, through="command", backup=copy)


def _notes(wish: Wish, target: Target) -> list[str]:
    notes = [RESTART.format(title=wish.known.title)]
    if wish.scope == "project":
        notes.append(SHARED)
    return notes


def _change(wish: Wish, target: Target, entries: list[EntryChange], notes: list[str]) -> HostChange:
    return HostChange(
        host=wish.known.name,
        scope=wish.scope,
        file=str(target.file.path),
        entries=entries,
        dry_run=wish.dry_run,
        through="file",
        backup=None,
        notes=notes,
    )


def _replaced(change: HostChange, **fields: Any) -> HostChange:
    return msgspec.structs.replace(change, **fields)


def _field_change(target: Target, name: str, put: hosts_entry.Put) -> FieldChange:
    before = hosts_edit.at(target.servers[name], put.keys)
    return FieldChange(
        field=".".join(put.keys), before=None if before is None else _shown(before), after=_shown(put.value)
    )


def _shown(value: Any) -> str:
    """A value for people, without what looks like a credential."""
    if isinstance(value, list):
        value = ["NAME=…" if _assigns(item) else item for item in value]
    return blanked(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _assigns(item: Any) -> bool:
    return isinstance(item, str) and "=" in item and hosts_entry.bears_secret(item.partition("=")[0])


def _names(env: Mapping[str, str]) -> str:
    return ", ".join(env)


def _scope_option(wish: Wish) -> str:
    return "" if wish.scope == "user" else f" --scope {wish.scope}"
