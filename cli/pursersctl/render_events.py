"""One event as lines for people: structs in, lines out."""

from collections import Counter
from datetime import datetime, tzinfo

from pursersctl.render import CENTRAL_STYLES, cell, counted, duration
from pursersctl.render_ps import STATE_STYLES
from pursersctl.table import Line, clean
from pursersd import api
from pursersd.api.events import (
    Came,
    CentralChanged,
    Event,
    LeaseChanged,
    Snapshot,
    StateChanged,
    WarningChanged,
    Went,
    Woke,
)

_INDENT = " " * 18


def event(told: Event, zone: tzinfo | None = None) -> list[Line]:
    """What happened, on a line; of a snapshot one for each conversation. Times are of `zone`, or of where we are."""
    at = datetime.fromisoformat(told.at).astimezone(zone).strftime("%H:%M:%S")
    name, style, text = _told(told)
    lines: list[Line] = [((f"{at}  ", "dim"), (name.ljust(8), style), (text, ""))]
    if isinstance(told, Snapshot):
        lines += [((_INDENT, ""), (_row(row), "")) for row in told.seats]
        lines += [((_INDENT, ""), (f"{w.code}: {clean(w.text)}", "yellow")) for w in told.warnings]
    return lines


def _told(told: Event) -> tuple[str, str, str]:
    """Name, style and words of an event."""
    match told:
        case Snapshot():
            return "now", "bold", _snapshot(told)
        case Came():
            return "came", "green", _row(told.row)
        case Went():
            return "went", "red", f"{_who(told)}: {clean(told.reason)}"
        case StateChanged():
            text = f"{_who(told)}: {told.state}, after {duration(told.before_s)} {told.before}"
            return "state", STATE_STYLES.get(told.state, ""), text + (f" ({clean(told.tool)})" if told.tool else "")
        case Woke():
            return "wake", "cyan", f"{_who(told)}: {_woke(told)}"
        case LeaseChanged():
            left = "" if told.left_s is None else f", {duration(told.left_s)} left"
            text = f"{_who(told)}: {told.kind} lease of {clean(told.ticket)} is {told.change}{left}"
            return "lease", "yellow" if told.change == "paused" else "", text
        case WarningChanged():
            over = "is over: " if told.change == "over" else ""
            text = f"{told.warning.code} {over}{clean(told.warning.text)}"
            return "warning", "yellow", text if over else f"{text} → {clean(told.warning.action)}"
        case CentralChanged():
            detail = f": {clean(told.detail)}" if told.detail else ""
            text = f"{clean(told.url)} ({clean(told.credential)}) is {told.state}{detail}"
            return "central", CENTRAL_STYLES.get(told.state, ""), text


def _snapshot(told: Snapshot) -> str:
    counts = Counter(row.state for row in told.seats)
    states = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    centrals = ", ".join(f"{clean(central.url)} {central.state}" for central in told.centrals)
    text = f"pursersd {clean(told.version)} (epoch {told.epoch}): "
    return text + (states or "no conversations") + (f"; {centrals}" if centrals else "")


def _woke(told: Woke) -> str:
    reason = f" ({clean(told.reason)})" if told.reason else ""
    since = "" if told.wake_s is None else f", {told.wake_s * 1000:.0f} ms after the cue"
    return f"{counted(told.events, 'event')}{reason} after {duration(told.waited_s)}{since}"


def _row(row: api.SeatRow) -> str:
    process = f" pid {row.host_pid}" if row.host_pid else ""
    return f"{clean(row.conversation)}  {_seat(row.seat, row.board)}  {clean(row.host)}{process}  {row.state}"


def _who(told: Went | StateChanged | Woke | LeaseChanged) -> str:
    return f"{clean(told.conversation)}  {_seat(told.seat, told.board)}"


def _seat(seat: str | None, board: str | None) -> str:
    return f"{cell(seat)} on {cell(board)}"
