"""What `pursersctl status --conversation` shows: structs in, lines out."""

from pursersctl.render import DEFAULT_WIDTH, UNKNOWN, duration, fact, wrapped
from pursersctl.table import Column, Line, Span, clean, table
from pursersd import api

COLUMNS = (
    Column("SETTING", keep=100),
    Column("VALUE", keep=90, least=16),
    Column("FROM", keep=80, least=12),
)


def conversation(answer: api.ConversationStatus, width: int = DEFAULT_WIDTH) -> list[Line]:
    """One conversation: who it is, its problems, its settings with their origins, its seats."""
    row = answer.row
    facts = [
        ("host", f"{row.host} (pid {row.host_pid})" if row.host_pid else row.host),
        ("shim", str(row.shim_pid)),
        ("folder", row.cwd),
        ("state", f"{row.state} for {duration(row.since_s)}"),
        ("doors", answer.doors),
        ("statistics", answer.stats),
    ]
    lines: list[Line] = [(("Conversation ", "bold"), (clean(row.conversation), "bold"))]
    lines += [fact(name, value) for name, value in facts if value]
    lines += _paragraphs("Problems", answer.problems, width, "red")
    lines += _paragraphs("Notes", answer.notes, width, "yellow")
    lines += [(), *table(COLUMNS, [_cells(setting) for setting in answer.settings], width)]
    for seat in answer.seats:
        lines += [(), *_seat(seat)]
    return lines


def _paragraphs(title: str, texts: list[str], width: int, style: str) -> list[Line]:
    lines: list[Line] = [(), ((title, "bold"),)] if texts else []
    for text in texts:
        lines += wrapped(text, width, indent=2, style=style)
    return lines


def _cells(setting: api.Setting) -> list[Span]:
    value = UNKNOWN if setting.value is None else clean(setting.value)
    return [(setting.name, ""), (value, ""), (_origin(setting), "dim" if setting.origin == "default" else "")]


def _origin(setting: api.Setting) -> str:
    name = clean(setting.origin_name or "")
    match setting.origin:
        case "variable":
            return name
        case "file":
            return f"file in {name}"
        case "door":
            return f"door {name}"
        case origin:
            return origin


def _seat(seat: api.SeatStatus) -> list[Line]:
    where = f"  {clean(seat.role)} on {clean(seat.board)}"
    facts = [
        ("agent", seat.agent_id),
        ("principal", seat.principal_id),
        ("claim TTL", duration(seat.claim_ttl_s)),
        ("generation", seat.generation),
        ("declared", None if seat.declared else "as an older conversation wants it"),
        ("shared by", f"{seat.shared_by} conversations" if seat.shared_by > 1 else None),
    ]
    return [
        (("Seat ", "bold"), (clean(seat.agent_name), "bold"), (where, "")),
        *(fact(name, value) for name, value in facts if value),
    ]
