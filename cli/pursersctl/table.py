"""Tables that fit the terminal: which columns there is room for, how wide, and what is cut out of long names."""

from dataclasses import dataclass

from rich.cells import cell_len

ELLIPSIS = "…"
Span = tuple[str, str]
"""Text and its style; "" is plain."""
Line = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. `least` is the width down to which it may be cut, None if cutting makes it worthless.

    `keep` orders the columns when there is no room for all: the smallest is dropped first.
    """

    title: str
    keep: int
    least: int | None = None
    right: bool = False


def clean(text: str) -> str:
    """`text` without anything that a terminal would obey: names come from hosts and other agents."""
    return "".join(c if c.isprintable() else "�" for c in text)


def cut(text: str, width: int) -> str:
    """`text` in at most `width` terminal cells; what does not fit is taken out of the middle."""
    if cell_len(text) <= width:
        return text
    room = max(0, width - 1)
    head = _cells(text, room - room // 2)
    tail = _cells(text[::-1], room // 2)[::-1]
    return head + ELLIPSIS + tail if width > 0 else ""


def table(columns: tuple[Column, ...], rows: list[list[Span]], width: int) -> list[Line]:
    """Head and rows, at most `width` cells wide unless a single column is wider than that."""
    natural = [max(cell_len(text) for text in [c.title, *(r[i][0] for r in rows)]) for i, c in enumerate(columns)]
    fitted, gap = fit(columns, natural, width)
    head: list[Span] = [(c.title, "bold") for c in columns]
    return [_row(cells, columns, fitted, gap) for cells in [head, *rows]]


def fit(columns: tuple[Column, ...], natural: list[int], width: int) -> tuple[dict[int, int], int]:
    """How wide each column becomes, and the gap between two; a column that is not in the answer is dropped.

    Narrow gaps come before cut names, cut names before dropped columns.
    """
    kept = set(range(len(columns)))
    while True:
        for gap in (2, 1):
            room = width - gap * (len(kept) - 1)
            if sum(natural[i] for i in kept) <= room:
                return {i: natural[i] for i in sorted(kept)}, gap
        least = {i: _least(columns[i], natural[i]) for i in kept}
        if sum(least.values()) <= room or len(kept) == 1:
            return _shrink({i: natural[i] for i in sorted(kept)}, least, room), 1
        kept.remove(min(kept, key=lambda i: columns[i].keep))


def _least(column: Column, natural: int) -> int:
    if column.least is None:
        return natural
    return min(natural, max(column.least, len(column.title)))


def _shrink(widths: dict[int, int], least: dict[int, int], room: int) -> dict[int, int]:
    """Take cells from whichever column is furthest above its least width until all fit."""
    fitted = dict(widths)
    while sum(fitted.values()) > room:
        widest = max(fitted, key=lambda i: fitted[i] - least[i])
        if fitted[widest] == least[widest]:
            break
        fitted[widest] -= 1
    return fitted


def _row(cells: list[Span], columns: tuple[Column, ...], widths: dict[int, int], gap: int) -> Line:
    spans: list[Span] = []
    for i, width in widths.items():
        text, style = cells[i]
        text = cut(text, width)
        pad = " " * (width - cell_len(text))
        between = " " * gap if spans else ""
        spans += [(between + pad, ""), (text, style)] if columns[i].right else [(between, ""), (text, style), (pad, "")]
    return tuple(span for span in spans if span[0])


def _cells(text: str, width: int) -> str:
    """The beginning of `text` that fills at most `width` cells."""
    used = 0
    for i, char in enumerate(text):
        used += cell_len(char)
        if used > width:
            return text[:i]
    return text


def fitting(lines: list[Line], room: int) -> list[Line]:
    """As many as there is room for, and how many are missing."""
    if len(lines) <= room:
        return lines
    if room < 1:
        return []
    return [*lines[: room - 1], ((f"… {len(lines) - room + 1} more", "dim"),)]
