"""What `pursersctl hosts` shows: structs in, lines out."""

from pursersctl.hosts_report import EntryChange, FieldChange, HostChange, HostFile, HostList, HostRow
from pursersctl.render import DEFAULT_WIDTH, UNKNOWN, fact, wrapped
from pursersctl.table import Column, Line, Span, clean, table

COLUMNS = (
    Column("HOST", keep=100),
    Column("ENTRY", keep=95, least=8),
    Column("STARTS", keep=98),
    Column("SCOPE", keep=80),
    Column("FILE", keep=90, least=24),
)

_INDENT = 17
"""Where values begin, as in `render.fact`."""

STARTS_STYLES = {"shim": "green", "bridge": "yellow", "other": "yellow", "nothing": "dim"}
ACTION_STYLES = {"added": "green", "updated": "green", "migrated": "green", "restored": "yellow", "removed": "yellow"}
PLANNED = {
    "added": "would be added",
    "updated": "would be updated",
    "migrated": "would be migrated",
    "removed": "would be removed",
    "restored": "would be restored",
}


def listed(answer: HostList, width: int = DEFAULT_WIDTH) -> list[Line]:
    """The table of `pursersctl hosts list`: the hosts that are there, then what is wrong."""
    shown = [row for row in answer.hosts if row.installed or row.found != "none"]
    missing = [row.title for row in answer.hosts if row not in shown]
    lines: list[Line] = []
    if shown:
        lines = table(COLUMNS, [cells for row in shown for cells in _rows(row)], width)
    else:
        lines = [(("No host is found on this machine.", ""),)]
    problems = [problem for row in shown for problem in row.problems]
    for problem in problems:
        style = "red" if problem.severity == "fail" else "yellow"
        lines += [(), *wrapped(problem.text, width, style=style), *wrapped(f"→ {problem.action}", width, indent=2)]
    if missing:
        lines += [(), *wrapped(f"Not found: {', '.join(missing)}.", width, style="dim")]
    without = next((row for row in shown if row.found == "none"), None)
    if without:
        lines += [(), *wrapped(f"Let a host start the shim with: pursersctl hosts add {without.host}", width)]
    return lines


def changed(answer: HostChange, width: int = DEFAULT_WIDTH) -> list[Line]:
    """What `pursersctl hosts add`, `remove` and `migrate` did, or would do."""
    lines: list[Line] = []
    for entry in answer.entries:
        lines += _entry(answer, entry, width)
    lines.append(fact("file", answer.file))
    if answer.backup:
        lines.append(fact("as it was", answer.backup))
    for note in answer.notes:
        lines += wrapped(note, width, indent=2, style="dim")
    if answer.dry_run and any(entry.action != "unchanged" for entry in answer.entries):
        lines.append((("Nothing was written (--dry-run).", "yellow"),))
    return lines


def _rows(row: HostRow) -> list[list[Span]]:
    """A line for each entry; for a host without one the file that it would come into."""
    found = [(file, entry) for file in row.files for entry in file.entries]
    if not found:
        return [[(row.host, ""), (UNKNOWN, ""), _starts("nothing"), (row.files[0].scope, ""), _path(row.files[0])]]
    return [
        [(row.host, ""), (clean(entry.name), ""), _starts(entry.kind), (file.scope, ""), _path(file)]
        for file, entry in found
    ]


def _starts(kind: str) -> Span:
    return kind, STARTS_STYLES[kind]


def _path(file: HostFile) -> Span:
    return clean(file.path), "" if file.exists else "dim"


def _entry(answer: HostChange, entry: EntryChange, width: int) -> list[Line]:
    if entry.action == "unchanged":
        return [((clean(entry.entry), "bold"), (": nothing was changed", ""))]
    word = PLANNED[entry.action] if answer.dry_run else entry.action
    through = f" by {answer.host}'s own command" if answer.through == "command" else ""
    head: Line = (
        (clean(entry.entry), "bold"),
        (f" {word}", ACTION_STYLES[entry.action]),
        (f" for {answer.host} ({answer.scope}){through}", ""),
    )
    indent = max([_INDENT, *(len(field.field) + 4 for field in entry.fields)])
    lines: list[Line] = [head]
    for field in entry.fields:
        first, *more = wrapped(_text(field), width, indent=indent) or [()]
        value = "".join(part for part, _ in first).strip()
        lines += [((f"  {clean(field.field)}".ljust(indent), "dim"), (value, "")), *more]
    return lines


def _text(field: FieldChange) -> str:
    if field.before is None:
        return field.after or UNKNOWN
    return f"{field.after}  (as it is)" if field.before == field.after else f"{field.before} → {field.after}"
