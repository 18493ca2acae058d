"""What pursersctl shows: structs in, lines out. Nothing here prints, measures the terminal or looks at the clock."""

import textwrap

from pursersctl.table import Column, Line, Span, clean, table
from pursersd import api

UNKNOWN = "–"
DEFAULT_WIDTH = 80

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

CENTRAL_STYLES = {"ready": "green", "connecting": "yellow", "unreachable": "red", "refused": "red"}
STARTED_BY = {"auto": "a shim (ends when nobody needs it)", "user": "you", "service": "the service manager"}


def ended(answer: api.Ended, width: int = DEFAULT_WIDTH, *, of: int = 0) -> list[Line]:
    """The table of `pursersctl ps --ended`. `of`: how many there are in all, if some were left out."""
    if not answer.ended:
        if of:
            return wrapped(f"None of the {of} that ended is meant by these options. All: pursersctl ps --ended", width)
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


def counted(count: int, what: str) -> str:
    """So many of something, whose plural takes an s: 1 lease, 2 leases."""
    return f"{count} {what}{'' if count == 1 else 's'}"


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


def _ended_cells(row: api.EndedRow) -> list[Span]:
    return [
        (duration(row.ago_s) + " ago", ""),
        (cell(row.seat), ""),
        (cell(row.board), ""),
        (cell(row.host), ""),
        (cell(row.host_pid), ""),
        (cell(row.shim_pid), ""),
        (duration(row.age_s), ""),
        (cell(row.last_tool), ""),
        (cell(row.reason), ""),
    ]


def _reap_cells(row: api.ReapRow) -> list[Span]:
    return [
        (row.kind, ""),
        (cell(row.seat), ""),
        (cell(row.board), ""),
        (cell(row.host), ""),
        (cell(row.host_pid), ""),
        (cell(row.shim_pid), ""),
        (cell(row.why), ""),
    ]


def cell(value: str | int | None) -> str:
    """A cell: what a terminal would obey is taken out; a dash for what is not known."""
    return UNKNOWN if value is None or value == "" else clean(str(value))


def _daemon(answer: api.Status, stopped: bool) -> list[Line]:
    daemon = answer.daemon
    facts = [
        ("pid", str(daemon.pid)),
        ("up", duration(daemon.uptime_s)),
        ("started by", _started_by(answer)),
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


def _started_by(answer: api.Status) -> str:
    started_by = answer.daemon.started_by
    if started_by == "auto" and answer.local is not None and answer.local.state not in ("none", "down"):
        return "a shim or a command (stays while the local board is up)"
    return STARTED_BY.get(started_by, started_by)


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
