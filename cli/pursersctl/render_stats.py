"""The page of `pursersctl stats`: a struct in, lines out."""

from pursersctl import printed
from pursersctl.render import DEFAULT_WIDTH, UNKNOWN, duration, size, wrapped
from pursersctl.table import Column, Line, Span, clean, table

RESULT_COLUMNS = (
    Column("SEAT", keep=100, least=12),
    Column("BOARD", keep=90, least=8),
    Column("RESULTS", keep=95, right=True),
    Column("CUES", keep=80, right=True),
    Column("TIMEOUTS", keep=70, right=True),
    Column("ERRORS", keep=85, right=True),
    Column("DIGESTS", keep=20, right=True),
    Column("SIZE", keep=75, right=True),
)
CALL_COLUMNS = (
    Column("SEAT", keep=100, least=12),
    Column("BOARD", keep=90, least=8),
    Column("CALLS", keep=95, right=True),
    Column("SENT", keep=70, right=True),
    Column("RECEIVED", keep=80, right=True),
    Column("MOST OFTEN", keep=50, least=10),
)


def stats(answer: printed.Stats, *, filtered: bool, width: int = DEFAULT_WIDTH) -> list[Line]:
    """The tables per seat, then who is polled and why. `filtered`: the caller wanted certain seats only."""
    lines: list[Line] = []
    lines += _results("Results for the model in the last hour", [(row, row.hour) for row in answer.seats], width)
    lines += _results("Results for the model in the last 24 hours", [(row, row.day) for row in answer.seats], width)
    lines += _calls(answer.seats, width)
    lines += _fallbacks(answer.seats, width)
    lines = lines[1:] or _nothing(answer, filtered, width)
    for path in answer.other_files:
        lines += [(), *wrapped(f"The daemon counts in {path}, too. See it with: pursersctl stats --file {path}", width)]
    return lines


def _results(title: str, found: list[tuple[printed.SeatStats, printed.ReturnStats]], width: int) -> list[Line]:
    known = [(row, returns) for row, returns in found if returns.returns]
    if not known:
        return []
    columns = [c for c in RESULT_COLUMNS if c.title != "DIGESTS" or any(returns.digests for _, returns in known)]
    rows: list[list[Span]] = []
    for row, returns in known:
        cells: dict[str, Span] = {
            "SEAT": (clean(row.seat), ""),
            "BOARD": (clean(row.board), ""),
            "RESULTS": (str(returns.returns), ""),
            "CUES": (str(returns.cues), ""),
            "TIMEOUTS": (str(returns.timeouts), ""),
            "ERRORS": (str(returns.errors), "red" if returns.errors else ""),
            "DIGESTS": (str(returns.digests), ""),
            "SIZE": (size(returns.response_bytes), ""),
        }
        rows.append([cells[column.title] for column in columns])
    return [(), ((title, "bold"),), *table(tuple(columns), rows, width)]


def _calls(seats: list[printed.SeatStats], width: int) -> list[Line]:
    rows: list[list[Span]] = [
        [
            (clean(row.seat), ""),
            (clean(row.board), ""),
            (str(row.today.calls), ""),
            (size(row.today.request_bytes), ""),
            (size(row.today.response_bytes), ""),
            (_most_often(row.tools), ""),
        ]
        for row in seats
        if row.today.calls
    ]
    return [(), (("Calls to Central today (UTC)", "bold"),), *table(CALL_COLUMNS, rows, width)] if rows else []


def _most_often(tools: dict[str, int]) -> str:
    most = max(tools, key=lambda tool: tools[tool], default=None)
    return UNKNOWN if most is None else f"{clean(most)} {tools[most]}"


def _fallbacks(seats: list[printed.SeatStats], width: int) -> list[Line]:
    lines: list[Line] = []
    for row in seats:
        if row.fallback is not None:
            ago = "" if row.fallback_s is None else f", seen {duration(row.fallback_s)} ago"
            text = f"{clean(row.seat)} on {clean(row.board)} gets events by polling{ago}: {row.fallback}"
            lines += [(), *wrapped(text, width, style="yellow")]
    return lines


def _nothing(answer: printed.Stats, filtered: bool, width: int) -> list[Line]:
    if filtered:
        return wrapped(f"{answer.file} has nothing of such a seat in the last days.", width)
    if answer.seats:
        return wrapped(f"Nothing has been counted in {answer.file} in the last 24 hours.", width)
    return wrapped(
        f"Nothing has been counted in {answer.file} yet. The daemon writes it some seconds after the first call of a "
        "conversation.",
        width,
    )
