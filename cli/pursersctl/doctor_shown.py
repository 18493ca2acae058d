"""What `pursersctl doctor` shows: structs in, lines out."""

from collections import Counter

from pursersctl.found import Doctor, Finding, Result
from pursersctl.render import DEFAULT_WIDTH, counted, wrapped
from pursersctl.table import Line

STYLES: dict[Result, str] = {"pass": "green", "warn": "yellow", "fail": "red"}
NAME = 16
"""Cells for the name of a check."""

INDENT = 6 + NAME


def doctor(answer: Doctor, width: int = DEFAULT_WIDTH) -> list[Line]:
    """A line for each finding, below it what to do, and the count."""
    lines = [line for finding in answer.findings for line in _finding(finding, width)]
    lines += [(), ((_count(answer.findings), STYLES[answer.result]),)]
    if answer.bundle is not None:
        lines += wrapped(f"Written, without secrets: {answer.bundle}", width)
    return lines


def _finding(finding: Finding, width: int) -> list[Line]:
    first, *rest = wrapped(finding.text, width, indent=INDENT) or [()]
    text = "".join(span for span, _ in first).strip()
    lines: list[Line] = [
        ((finding.result, STYLES[finding.result]), ("  ", ""), (finding.check.ljust(NAME), "dim"), (text, "")),
        *rest,
    ]
    return lines + (wrapped(f"→ {finding.action}", width, indent=INDENT) if finding.action else [])


def _count(findings: list[Finding]) -> str:
    counts = Counter(finding.result for finding in findings)
    return f"{counts['pass']} passed, {counted(counts['warn'], 'warning')}, {counted(counts['fail'], 'failure')}."
