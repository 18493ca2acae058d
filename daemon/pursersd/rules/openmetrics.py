"""OpenMetrics text (the specification's version 1.0), in the subset that Prometheus' older text format reads as well."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pursersd.rules.histogram import BOUNDS, Histogram

Labels = tuple[tuple[str, str], ...]

BUCKETS = BOUNDS[::4]
"""Bounds that a histogram is shown with: three to each power of ten."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One number. `suffix` is what follows the family's name."""

    value: float
    labels: Labels = ()
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """Numbers of one meaning. A counter's samples have the suffix `_total`."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    samples: Sequence[Sample]


def text(families: Iterable[Family]) -> str:
    """All families, and the mark of the end."""
    lines = [line for family in families for line in _lines(family)]
    return "\n".join([*lines, "# EOF", ""])


def histogram(labels: Labels, found: Histogram) -> list[Sample]:
    """The samples of one histogram; its buckets are cumulative."""
    buckets = [Sample(found.within(bound), (*labels, ("le", _number(bound))), "_bucket") for bound in BUCKETS]
    return [
        *buckets,
        Sample(found.count, (*labels, ("le", "+Inf")), "_bucket"),
        Sample(found.count, labels, "_count"),
        Sample(found.sum_s, labels, "_sum"),
    ]


def _lines(family: Family) -> list[str]:
    return [
        f"# TYPE {family.name} {family.kind}",
        f"# HELP {family.name} {_escaped(family.help)}",
        *(f"{family.name}{sample.suffix}{_labels(sample.labels)} {_number(sample.value)}" for sample in family.samples),
    ]


def _labels(labels: Labels) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
