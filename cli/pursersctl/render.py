"""What pursersctl shows: structs in, lines out. Nothing here prints, measures the terminal or looks at the clock."""

import textwrap

from pursersctl.table import Column, Line, Span, clean, table
from pursersd import api

UNKNOWN = "–"
DEFAULT_WIDTH = 80

PS_COLUMNS: tuple[Column, ...] = (
    Column("SEAT", keep=100, least=12),
    Column("BOARD", keep=90, least=8),
    Column("ROLE", keep=40, least=6),
    Column("HOST", keep=70, least=8),
    Column("PID", keep=60, right=True),
    Column("SHIM", keep=10, right=True),
    Column("STATE", keep=95),
    Column("VIA", keep=80),
    Column("FOR", keep=75, right=True),
    Column("LAST", keep=50, least=8),
    Column("AGE", keep=30, right=True),
)

VERSION = Column("VERSION", keep=98)
"""Shown when a shim's is not the daemon's."""

ENDED_COLUMNS = (
    Column("ENDED", keep=99, right=True),
    Column("SEAT", keep=98, least=12),
    Column("BOARD", keep=80, least=8),
    Column("HOST", keep=90, least=8),
    Column("PID", keep=60, right=True),
    Column("SHIM", keep=50, right=True),
    Column("LIVED", keep=70, right=True),
    Column("LAST", keep=40, least=8),
    Column("WHY", keep=100, least=20),
)

REAP_COLUMNS = (
    Column("WHAT", keep=99),
    Column("SEAT", keep=80, least=12),
    Column("BOARD", keep=60, least=8),
    Column("HOST", keep=70, least=8),
    Column("PID", keep=75, right=True),
    Column("SHIM", keep=90, right=True),
    Column("WHY", keep=100, least=20),
)
SEEN_IN_PS = ("board_polled", "seat_shared")
"""Warnings that the table itself shows."""

STATE_STYLES = {"waiting": "green", "working": "cyan", "idle": "dim", "detached": "red"}
CENTRAL_STYLES = {"ready": "green", "connecting": "yellow", "unreachable": "red", "refused": "red"}
STARTED_BY = {"auto": "a shim (ends when nobody needs it)", "user": "you", "service": "the service manager"}


def ps(answer: api.Ps, width: int = DEFAULT_WIDTH) -> list[Line]:
    """The table of `pursersctl ps`, and below it why seats poll and links were cut."""
    if not answer.seats:
        return [(("No conversations.", ""),)]
    rows = sorted(answer.seats, key=_order)
    columns, cells = PS_COLUMNS, [_seat_cells(row) for row in rows]
    if answer.version and any(row.shim_version != answer.version for row in rows):
        columns = (*PS_COLUMNS, VERSION)
        for row, line in zip(rows, cells, strict=True):
            line.append((_text(row.shim_version), "yellow" if row.shim_version != answer.version else ""))
    lines = [*table(columns, cells, width), *_poll_reasons(rows, width), *_cut_reasons(rows, width)]
    for warning in answer.warnings:
        if warning.code not in SEEN_IN_PS:
            lines += [(), *wrapped(f"{warning.code}: {warning.text} → {warning.action}", width, style="yellow")]
    return lines


def ended(answer: api.Ended, width: int = DEFAULT_WIDTH) -> list[Line]:
    """The table of `pursersctl ps --ended`, the newest first."""
    if not answer.ended:
        return [(("No conversation has ended since this daemon started.", ""),)]
    return table(ENDED_COLUMNS, [_ended_cells(row) for row in answer.ended], width)


def reap(answer: api.Reap, width: int = DEFAULT_WIDTH) -> list[Line]:
    """The table of `pursersctl reap`, and what happens to it."""
    if not answer.found:
        return [(("Nothing to end: everything has a living host.", ""),)]
    advice = "They are being ended." if answer.ending else "Nothing was ended. End them with: pursersctl reap --yes"
    return [*table(REAP_COLUMNS, [_reap_cells(row) for row in answer.found], width), (), ((advice, ""),)]


def status(answer: api.Status, *, stopped: bool, version: str, width: int = DEFAULT_WIDTH) -> list[Line]:
    """The page of `pursersctl status`. `stopped`: nobody starts a daemon automatically. `version`: our own."""
    lines = _daemon(answer, stopped)
    if answer.daemon.version != version:
        lines += wrapped(
            f"The daemon is version {answer.daemon.version}, pursersctl is {version}. Run: pursersctl restart",
            width,
            style="yellow",
        )
    for central in answer.centrals:
        lines += [(), *_central(central, width)]
    if answer.warnings:
        lines += [(), (("Warnings", "bold"),)]
    for warning in answer.warnings:
        since = f"  for {duration(warning.since_s)}" if warning.since_s >= 1 else ""
        lines.append((("  ", ""), (clean(warning.code), "yellow"), (since, "dim")))
        lines += wrapped(warning.text, width, indent=4)
        lines += wrapped("→ " + warning.action, width, indent=4)
    return lines + _lossy_windows(answer.lossy_windows, width)


def _lossy_windows(windows: list[api.LossyWindow], width: int) -> list[Line]:
    """Where something may have been lost since the daemon began."""
    opened = [window for window in windows if window.count]
    lines: list[Line] = [(), (("May have been lost", "bold"),)] if opened else []
    for window in opened:
        since = f"  last {duration(window.last_s)} ago" if window.last_s is not None else ""
        lines.append((("  ", ""), (f"{clean(window.name)}: {window.count}", "yellow"), (since, "dim")))
        lines += wrapped(window.text, width, indent=4)
    return lines


def duration(seconds: float) -> str:
    """A length of time in its largest whole unit: 12s, 3m, 2h, 5d."""
    left = max(0, int(seconds))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if left >= size:
            return f"{left // size}{unit}"
    return f"{left}s"


def size(count: int) -> str:
    """Bytes as people read them: 300 B, 512 KiB, 48 MiB."""
    if count < 1024:
        return f"{count} B"
    if count < 1024 * 1024:
        return f"{count // 1024} KiB"
    return f"{count / (1024 * 1024):.0f} MiB"


def plain(lines: list[Line]) -> str:
    """The lines as text without styles, each ended by a newline."""
    return "".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines)


def _order(row: api.SeatRow) -> tuple[bool, str, bool, str, str]:
    return (row.board is None, row.board or "", row.seat is None, row.seat or "", row.conversation)


def _seat_cells(row: api.SeatRow) -> list[Span]:
    return [
        (_seat_name(row), ""),
        (_boards(row), ""),
        (_text(row.role), ""),
        (_text(row.host), ""),
        (_text(row.host_pid), ""),
        (_text(row.shim_pid), ""),
        (row.state, STATE_STYLES.get(row.state, "")),
        (_text(row.delivery), "yellow" if row.delivery == "poll" else ""),
        (duration(row.since_s), ""),
        (_text(row.last_tool), ""),
        (duration(row.age_s), ""),
    ]


def _ended_cells(row: api.EndedRow) -> list[Span]:
    return [
        (duration(row.ago_s) + " ago", ""),
        (_text(row.seat), ""),
        (_text(row.board), ""),
        (_text(row.host), ""),
        (_text(row.host_pid), ""),
        (_text(row.shim_pid), ""),
        (duration(row.age_s), ""),
        (_text(row.last_tool), ""),
        (_text(row.reason), ""),
    ]


def _reap_cells(row: api.ReapRow) -> list[Span]:
    return [
        (row.kind, ""),
        (_text(row.seat), ""),
        (_text(row.board), ""),
        (_text(row.host), ""),
        (_text(row.host_pid), ""),
        (_text(row.shim_pid), ""),
        (_text(row.why), ""),
    ]


def _seat_name(row: api.SeatRow) -> str:
    if row.seat is not None and row.shared_by > 1:
        return f"{clean(row.seat)} ({row.shared_by})"
    return _text(row.seat)


def _boards(row: api.SeatRow) -> str:
    """The board, and how many others the conversation waits on with it."""
    others = len(row.boards) - 1
    return f"{_text(row.board)} +{others}" if others > 0 else _text(row.board)


def _text(value: str | int | None) -> str:
    return UNKNOWN if value is None or value == "" else clean(str(value))


def _poll_reasons(rows: list[api.SeatRow], width: int) -> list[Line]:
    """Which seats do not get events pushed, and why: one paragraph per reason."""
    seats: dict[str, list[str]] = {}
    for row in rows:
        if row.delivery == "poll" and row.poll_reason:
            seats.setdefault(row.poll_reason, []).append(_text(row.seat))
    lines: list[Line] = []
    for reason, names in seats.items():
        text = f"{', '.join(dict.fromkeys(names))} gets events by polling: {reason}"
        lines += [(), *wrapped(text, width, style="yellow")]
    return lines


def _cut_reasons(rows: list[api.SeatRow], width: int) -> list[Line]:
    """Which links the daemon has cut, and why: one paragraph each."""
    lines: list[Line] = []
    for row in rows:
        if row.cut_reason:
            text = f"The link of shim {row.shim_pid} was cut: {row.cut_reason}. It is served again when it comes back."
            lines += [(), *wrapped(text, width, style="yellow")]
    return lines


def _daemon(answer: api.Status, stopped: bool) -> list[Line]:
    daemon = answer.daemon
    facts = [
        ("pid", str(daemon.pid)),
        ("up", duration(daemon.uptime_s)),
        ("started by", STARTED_BY.get(daemon.started_by, daemon.started_by)),
        ("conversations", str(answer.conversations)),
        ("memory", size(daemon.rss_bytes)),
        ("epoch", str(daemon.epoch)),
        ("home", daemon.home),
        ("socket", daemon.socket),
        ("log", daemon.log),
    ]
    style = "green" if daemon.state == "ready" else "yellow"
    lines: list[Line] = [(("pursersd ", "bold"), (clean(daemon.version), "bold"), ("  ", ""), (daemon.state, style))]
    lines += [fact(name, value) for name, value in facts if value is not None]
    if stopped:
        lines.append(fact("autostart", "off since pursersctl stop. Turn it on with: pursersctl start", "yellow"))
    return lines


def _central(central: api.CentralStatus, width: int) -> list[Line]:
    lines: list[Line] = [
        (
            ("Central ", "bold"),
            (clean(central.url), "bold"),
            ("  ", ""),
            (central.state, CENTRAL_STYLES.get(central.state, "")),
        )
    ]
    if central.detail:
        lines += wrapped(central.detail, width, indent=2, style="yellow")
    counts = (
        f"{central.streams} open",
        f"{central.call_connections} in progress, {central.requests} since connecting",
        f"{central.waits} on {central.seats_listening} listening seats",
        f"{central.cues} cues, {central.reconnects} reconnects",
    )
    boards = wrapped(", ".join(central.boards) or UNKNOWN, width, indent=_FACT_INDENT)
    return [
        *lines,
        fact("credential", central.credential),
        fact("boards", "".join(text for text, _ in boards[0]).strip()),
        *boards[1:],
        *(fact(name, text) for name, text in zip(("streams", "calls", "waits", "events"), counts, strict=True)),
    ]


_FACT_INDENT = 17


def fact(name: str, value: str, style: str = "") -> Line:
    """A name and its value, below one another with others."""
    return ((f"  {name}".ljust(_FACT_INDENT), "dim"), (clean(value), style))


def wrapped(text: str, width: int, *, indent: int = 0, style: str = "") -> list[Line]:
    """`text` as a paragraph; a word longer than the line, such as a path to copy, stays whole."""
    margin = " " * indent
    pieces = textwrap.wrap(clean(text), max(20, width - indent), break_long_words=False, break_on_hyphens=False)
    return [((margin, ""), (piece, style)) if margin else ((piece, style),) for piece in pieces]
