"""The table of `pursersctl ps`: structs in, lines out."""

from collections.abc import Sequence

from pursersctl.render import DEFAULT_WIDTH, cell, duration, wrapped
from pursersctl.table import Column, Line, Span, clean, fitting, table
from pursersd import api

COLUMNS: tuple[Column, ...] = (
    Column("SEAT", keep=100, least=12),
    Column("BOARD", keep=90, least=8),
    Column("ROLE", keep=40, least=6),
    Column("HOST", keep=70, least=8),
    Column("PID", keep=60, right=True),
    Column("SHIM", keep=10, right=True),
    Column("STATE", keep=95),
    Column("VIA", keep=80),
    Column("FOR", keep=75, right=True),
    Column("TICKET", keep=72, least=8),
    Column("LEFT", keep=71, right=True),
    Column("LAG", keep=35, right=True),
    Column("WAKES", keep=5, right=True),
    Column("LAST", keep=50, least=8),
    Column("AGE", keep=30, right=True),
    Column("VERSION", keep=98),
    Column("CONVERSATION", keep=4),
    Column("CENTRAL", keep=3, least=12),
    Column("FOLDER", keep=2, least=12),
)

WIDE_ONLY = ("WAKES", "CONVERSATION", "CENTRAL", "FOLDER")
"""Shown with --wide; LAG, TICKET with LEFT, and VERSION also when there is something to see in them."""

LEAST_ROWS = 4
"""Lines that the table keeps on a terminal that is too low for it, whatever stands below."""

UNCUT = 10_000
"""Columns of a terminal on which nothing is cut."""

SEEN_IN_TABLE = ("board_polled", "seat_shared")
"""Warnings that the table itself shows."""

STATE_STYLES = {"waiting": "green", "working": "cyan", "idle": "dim", "detached": "red"}

URGENT = 60.0
"""Seconds below which what is left of a lease stands out."""

NOBODY = (
    "No conversations. Each chat of a host that starts pursers-shim appears here by itself. "
    "What hosts start: pursersctl hosts list. Those that have ended: pursersctl ps --ended"
)


def ps(
    answer: api.Ps,
    width: int = DEFAULT_WIDTH,
    *,
    wide: bool = False,
    of: int | None = None,
    height: int | None = None,
) -> list[Line]:
    """The table in the order of the answer, and below it why seats poll and links were cut.

    `wide`: every column, and nothing cut. `of`: how many conversations there are in all, if some were left out.
    `height`: lines that there are; where they are few, what is below the table comes before its last rows.
    """
    if not answer.seats:
        return wrapped(_nothing(of), width)
    rows = answer.seats
    lines = seats(rows, width, version=answer.version, wide=wide)
    below = [*_poll_reasons(rows, width), *_cut_reasons(rows, width)]
    for warning in answer.warnings:
        if warning.code not in SEEN_IN_TABLE:
            below += [(), *wrapped(f"{warning.code}: {warning.text} → {warning.action}", width, style="yellow")]
    if height is None:
        return [*lines, *below]
    return fitting([*fitting(lines, max(LEAST_ROWS, height - len(below))), *below], height)


def seats(rows: Sequence[api.SeatRow], width: int, *, version: str = "", wide: bool = False) -> list[Line]:
    """The table alone. `version` is the daemon's, empty if it is not known."""
    hidden = {title for title in ("TICKET", "LEFT") if not any(row.leases for row in rows)}
    hidden |= {"LAG"} if not any(row.lag for row in rows) else set()
    hidden |= {"VERSION"} if not version or all(row.shim_version == version for row in rows) else set()
    hidden = set() if wide else hidden | set(WIDE_ONLY)
    shown = [i for i, column in enumerate(COLUMNS) if column.title not in hidden]
    cells = [_cells(row, version) for row in rows]
    columns = tuple(COLUMNS[i] for i in shown)
    return table(columns, [[line[i] for i in shown] for line in cells], UNCUT if wide else width)


def _nothing(of: int | None) -> str:
    if not of:
        return NOBODY
    return f"None of the {of} conversations is meant by these options. All of them: pursersctl ps"


def _cells(row: api.SeatRow, version: str) -> list[Span]:
    return [
        (_seat_name(row), ""),
        (_boards(row), ""),
        (cell(row.role), ""),
        (cell(row.host), ""),
        (cell(row.host_pid), ""),
        (cell(row.shim_pid), ""),
        (row.state, STATE_STYLES.get(row.state, "")),
        (cell(row.delivery), "yellow" if row.delivery == "poll" else ""),
        (duration(row.since_s), ""),
        (_ticket(row), ""),
        _left(row),
        (cell(row.lag), "yellow" if row.lag else ""),
        (cell(row.wakes), ""),
        (cell(row.last_tool), ""),
        (duration(row.age_s), ""),
        (cell(row.shim_version), "yellow" if version and row.shim_version != version else ""),
        (cell(row.conversation), ""),
        (cell(row.central), ""),
        (cell(row.cwd), ""),
    ]


def _seat_name(row: api.SeatRow) -> str:
    if row.seat is not None and row.shared_by > 1:
        return f"{clean(row.seat)} ({row.shared_by})"
    return cell(row.seat)


def _boards(row: api.SeatRow) -> str:
    """The board, and how many others the conversation waits on with it."""
    others = len(row.boards) - 1
    return f"{cell(row.board)} +{others}" if others > 0 else cell(row.board)


def _ticket(row: api.SeatRow) -> str:
    """The ticket that it holds and whose lease is the first to lapse, and how many others."""
    if not row.leases:
        return cell(None)
    first = min(row.leases, key=lambda lease: lease.left_s)
    return f"{clean(first.ticket)} +{len(row.leases) - 1}" if len(row.leases) > 1 else clean(first.ticket)


def _left(row: api.SeatRow) -> Span:
    """How long that lease lasts if it is not renewed; one that is paused is not."""
    if not row.leases:
        return (cell(None), "")
    first = min(row.leases, key=lambda lease: lease.left_s)
    if first.state == "paused":
        return (f"{duration(first.left_s)} paused", "red")
    return (duration(first.left_s), "yellow" if first.left_s < URGENT else "")


def _poll_reasons(rows: Sequence[api.SeatRow], width: int) -> list[Line]:
    """Which seats do not get events pushed, and why: one paragraph per reason."""
    seats: dict[str, list[str]] = {}
    for row in rows:
        if row.delivery == "poll" and row.poll_reason:
            seats.setdefault(row.poll_reason, []).append(cell(row.seat))
    lines: list[Line] = []
    for reason, names in seats.items():
        text = f"{', '.join(dict.fromkeys(names))} gets events by polling: {reason}"
        lines += [(), *wrapped(text, width, style="yellow")]
    return lines


def _cut_reasons(rows: Sequence[api.SeatRow], width: int) -> list[Line]:
    """Which links the daemon has cut, and why: one paragraph each."""
    lines: list[Line] = []
    for row in rows:
        if row.cut_reason:
            text = f"The link of shim {row.shim_pid} was cut: {row.cut_reason}. It is served again when it comes back."
            lines += [(), *wrapped(text, width, style="yellow")]
    return lines
