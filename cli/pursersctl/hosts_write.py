"""Write a changed configuration, with a copy of what was there and a record of what was done.

What writes returns where the copy lies, None if there was no file. It raises Unusable; the file is then as it was.
"""

from pathlib import Path

import msgspec

from pursersctl import hosts_edit, hosts_files, hosts_records
from pursersctl.hosts_edit import Edit
from pursersctl.hosts_records import Record, Records, Step
from pursersctl.hosts_target import Target

BY_HAND = "Change it by hand; docs/hosts.md shows how the entry looks."


def edits_written(target: Target, records: Records, edits: dict[str, list[Edit]], action: str) -> str | None:
    """Make the edits of these entries in one write."""
    text = target.changed([edit for of_entry in edits.values() for edit in of_entry], BY_HAND)
    hosts_files.check_writable(target.file)
    copy = records.keep(target.file)
    made = _replace(target, target.file.encoded(text))
    for name, of_entry in edits.items():
        if action == "updated":
            _note_update(target, records, name, text)
        else:
            records.put(record(target, name, action, of_entry, text, copy, made))
    return copy


def record(
    target: Target, name: str, action: str, edits: list[Edit], text: str, copy: str | None, made: list[Path]
) -> Record:
    """What is needed to undo these edits of an entry. `text`: what the file holds now; `made`: the folders that are new."""
    before = target.file
    return Record(
        action=action,
        file=str(before.path),
        keys=target.keys(name),
        after=hosts_records.digest(before.encoded(text)),
        copy=copy,
        undo=[Step(edit.keys, edit.value, edit.gone) for edit in hosts_edit.undone(target.data, edits)],
        top=hosts_edit.outermost_missing(target.data, target.keys(name)),
        inserted=hosts_records.insertion(before.text, text) if before.exists else None,
        folders=[str(folder) for folder in made],
    )


def entry_removed(target: Target, records: Records, name: str) -> str | None:
    """Remove an entry: exactly what `add` did if it can be told, else the entry with its comma or its lines."""
    added = records.find(target.file.path, target.keys(name))
    whole = added is not None and added.action == "added" and _is_untouched(target, added)
    copy = records.keep(target.file)
    if added and whole and added.copy is None:
        hosts_files.check_writable(target.file)
        hosts_files.remove(target.file, [Path(folder) for folder in added.folders])
    else:
        before = hosts_files.read_bytes(Path(added.copy)) if added and whole and added.copy else None
        _replace(target, before if before is not None else target.file.encoded(_without(target, added, name)))
    if added:
        records.forget(added)
    return copy


def restored(target: Target, records: Records, changes: list[Record]) -> str | None:
    """Undo migrations: the file as it was if nothing else happened to it, else the values that changed."""
    copy = records.keep(target.file)
    first, before = changes[0], None
    if first.copy and all(_is_untouched(target, change) and change.copy == first.copy for change in changes):
        before = hosts_files.read_bytes(Path(first.copy))
    if before is None:
        edits = [edit for change in changes for edit in change.edits()]
        before = target.file.encoded(target.changed(edits, BY_HAND))
    _replace(target, before)
    for change in changes:
        records.forget(change)
    return copy


def _replace(target: Target, data: bytes) -> list[Path]:
    return hosts_files.replace(target.file, data, mode=hosts_files.NEW_MODE[target.place.scope])


def _note_update(target: Target, records: Records, name: str, text: str) -> None:
    """The record of an addition, after the entry was changed again; what others changed in between cannot be undone."""
    old = records.find(target.file.path, target.keys(name))
    if old is None:
        return
    after, inserted = "", None
    if _is_untouched(target, old):
        after = hosts_records.digest(target.file.encoded(text))
        if old.copy and Path(old.copy).exists():
            inserted = hosts_records.insertion(hosts_files.read(Path(old.copy)).text, text)
    records.put(msgspec.structs.replace(old, after=after, inserted=inserted))


def _is_untouched(target: Target, change: Record) -> bool:
    """Whether the file is as a change left it."""
    return target.file.data is not None and hosts_records.digest(target.file.data) == change.after


def _without(target: Target, added: Record | None, name: str) -> str:
    """The text without an entry; what was inserted is cut if it still stands there as it was."""
    keys, text = target.keys(name), target.file.text
    if added and added.inserted and text.count(added.inserted) == 1:
        cut = text.replace(added.inserted, "")
        if hosts_edit.is_without(target.known.format, cut, target.data, keys):
            return cut
    edits = [Edit(keys, gone=True)]
    left = hosts_edit.load(target.known.format, target.changed(edits, BY_HAND))
    if added and added.top != keys and hosts_edit.is_hollow(hosts_edit.at(left, added.top)):
        edits.append(Edit(added.top, gone=True))
    return target.changed(edits, BY_HAND)
