"""Write a changed configuration, with a copy of what was there and a record of what was done."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from pursersctl import hosts_edit, hosts_files, hosts_records
from pursersctl.hosts_edit import Edit
from pursersctl.hosts_records import Record, Records, Step
from pursersctl.hosts_target import Target

BY_HAND = "Change it by hand; docs/hosts.md shows how the entry looks."


@dataclass(frozen=True, slots=True)
class Written:
    """What a write left behind."""

    copy: str | None
    """The file as it was."""


def edits_written(target: Target, records: Records, edits: dict[str, list[Edit]], action: str) -> Written:
    """Make the edits of these entries in one write. Raises Unusable; nothing has changed then."""
    text = target.changed([edit for of_entry in edits.values() for edit in of_entry], BY_HAND)
    hosts_files.check_writable(target.file)
    copy = records.keep(target.file)
    data = target.file.encoded(text)
    folders = hosts_files.replace(target.file, data, mode=hosts_files.NEW_MODE[target.place.scope])
    for name, of_entry in edits.items():
        undo = hosts_edit.undone(target.data, of_entry)
        noted(target, records, name, action, text, copy, undo, folders)
    return Written(copy)


def noted(
    target: Target,
    records: Records,
    name: str,
    action: str,
    text: str,
    copy: str | None,
    undo: list[Edit],
    folders: list[Path],
) -> None:
    """Keep what is needed to undo that an entry was added, updated or migrated; `text` is what the file holds now."""
    before, after = target.file, hosts_records.digest(target.file.encoded(text))
    old = records.find(before.path, target.keys(name))
    inserted = hosts_records.insertion(before.text, text) if before.exists else None
    if action == "updated":
        if old is None or before.data is None:
            return
        untouched = hosts_records.digest(before.data) == old.after
        records.put(_updated(old, after if untouched else "", text))
        return
    records.put(
        Record(
            action=action,
            file=str(before.path),
            keys=target.keys(name),
            after=after,
            copy=copy,
            undo=[Step(edit.keys, edit.value, edit.gone) for edit in undo],
            top=hosts_edit.outermost_missing(target.data, target.keys(name)),
            inserted=inserted,
            folders=[str(folder) for folder in folders],
        )
    )


def _updated(old: Record, after: str, text: str) -> Record:
    """The record of an addition, after the entry was changed again."""
    inserted = None
    if after and old.copy and Path(old.copy).exists():
        inserted = hosts_records.insertion(hosts_files.read(Path(old.copy)).text, text)
    return msgspec.structs.replace(old, after=after, inserted=inserted)


def entry_removed(target: Target, records: Records, name: str) -> Written:
    """Remove an entry: exactly what `add` did if it can be told, else the entry with its comma or its lines."""
    record = records.find(target.file.path, target.keys(name))
    copy = records.keep(target.file)
    data = _before(target, record) if record and record.action == "added" else None
    if data is None and record and record.action == "added" and record.copy is None and _untouched(target, record):
        hosts_files.check_writable(target.file)
        hosts_files.remove(target.file, [Path(folder) for folder in record.folders])
    else:
        if data is None:
            data = target.file.encoded(_without(target, record, name))
        hosts_files.replace(target.file, data, mode=hosts_files.NEW_MODE[target.place.scope])
    if record:
        records.forget(record)
    return Written(copy)


def restored(target: Target, records: Records, changes: list[Record]) -> Written:
    """Undo migrations: the file as it was if nothing else happened to it, else the values that changed."""
    copy = records.keep(target.file)
    data = _before(target, changes[0])
    if data is None or {change.after for change in changes} != {changes[0].after}:
        edits = [edit for change in changes for edit in change.edits()]
        data = target.file.encoded(target.changed(edits, BY_HAND))
    hosts_files.replace(target.file, data, mode=hosts_files.NEW_MODE[target.place.scope])
    for change in changes:
        records.forget(change)
    return Written(copy)


def _untouched(target: Target, record: Record) -> bool:
    return target.file.data is not None and hosts_records.digest(target.file.data) == record.after


def _before(target: Target, record: Record) -> bytes | None:
    """The file as it was before a change, if it is as the change left it and the copy is still there."""
    if not record.copy or not _untouched(target, record):
        return None
    return hosts_files.read_bytes(Path(record.copy))


def _without(target: Target, record: Record | None, name: str) -> str:
    """The text without an entry; what was inserted is cut if it still stands there as it was."""
    keys, text = target.keys(name), target.file.text
    if record and record.inserted and text.count(record.inserted) == 1:
        cut = text.replace(record.inserted, "")
        if hosts_edit.is_without(target.known.format, cut, target.data, keys):
            return cut
    text = target.changed([Edit(keys, gone=True)], BY_HAND)
    left = hosts_edit.load(target.known.format, text)
    if record and record.top != keys and hosts_edit.is_hollow(hosts_edit.at(left, record.top)):
        text = target.changed([Edit(keys, gone=True), Edit(record.top, gone=True)], BY_HAND)
    return text
