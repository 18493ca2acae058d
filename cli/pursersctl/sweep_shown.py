"""What `pursersctl sweep` shows: structs in, lines out."""

from collections import Counter
from collections.abc import Sequence

from pursersctl.found import Sweep, SweptRow
from pursersctl.render import DEFAULT_WIDTH, UNKNOWN, counted, duration, size, wrapped
from pursersctl.table import Column, Line, Span, clean, table

COLUMNS = (
    Column("WHAT", keep=95),
    Column("PID", keep=100, right=True),
    Column("AGE", keep=80, right=True),
    Column("MEMORY", keep=70, right=True),
    Column("CENTRAL", keep=60, least=10),
    Column("HOST", keep=90, least=10),
    Column("STATE", keep=99),
)


def sweep(answer: Sweep, width: int = DEFAULT_WIDTH, *, only: Sequence[int] = ()) -> list[Line]:
    """The table, why each is what it is, and what to do. `only`: the process ids that were looked at; none for all."""
    if not answer.processes:
        meant = f" with the pid {' or '.join(map(str, only))}" if only else ""
        return [((f"No bridge and no shim of this user{meant} runs.", ""),)]
    head, *rows = table(COLUMNS, [_cells(row) for row in answer.processes], width)
    lines: list[Line] = [head]
    for row, line in zip(answer.processes, rows, strict=True):
        lines += [line, *wrapped(row.why, width, indent=4, style="dim")]
    return [*lines, (), *wrapped(_advice(answer), width)]


def _cells(row: SweptRow) -> list[Span]:
    host = f"{clean(row.host or UNKNOWN)} {row.host_pid}" if row.host_pid is not None else UNKNOWN
    state, style = _state(row)
    return [
        (row.kind, ""),
        (str(row.pid), ""),
        (duration(row.age_s), ""),
        (size(row.rss_bytes), ""),
        (_connections(row.connections), ""),
        (host, ""),
        (state, style),
    ]


def _state(row: SweptRow) -> Span:
    if not row.orphan:
        return "left alone", "dim"
    return row.outcome or "orphan", "red" if row.outcome in (None, "stays") else "green"


def _connections(addresses: list[str]) -> str:
    """How many connections, and to where."""
    counts = Counter(addresses)
    return ", ".join(f"{count} to {clean(address)}" for address, count in sorted(counts.items())) or UNKNOWN


def _advice(answer: Sweep) -> str:
    orphans = [row for row in answer.processes if row.orphan]
    if not orphans:
        return "Nothing to end: no orphan among them."
    count = counted(len(orphans), "orphan")
    if not answer.ending:
        return f"{count}. Nothing was ended. End them with: pursersctl sweep --yes"
    return f"{count}: {sum(row.outcome != 'stays' for row in orphans)} ended."
