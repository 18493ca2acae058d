"""Which journal a place is in: its number means nothing in that of another Central or of another generation (RB-RPL-001)."""

Journal = tuple[str | None, str | None]
"""The Central's instance id and the board's generation, each None as long as it is not known, or where there is none."""


def differ(before: Journal | None, now: Journal) -> bool:
    """Whether the two are certainly not the same journal of a board; None is one of which nothing is known."""
    pairs = zip(before, now, strict=True) if before is not None else ()
    return any(a is not None and b is not None and a != b for a, b in pairs)
