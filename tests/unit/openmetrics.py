"""A strict reader of OpenMetrics text, written from the specification and not from our writer."""

import math
import re
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{({_LABEL}(?:,{_LABEL})*)?\}})? (\S+)")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|\+Inf|-Inf|NaN")
_SUFFIXES = {"gauge": ("",), "counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}

Labels = tuple[tuple[str, str], ...]


@dataclass
class Family:
    """One family as it was read."""

    kind: str
    help: str | None = None
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)


def read(text: str) -> dict[str, Family]:
    """The families. AssertionError with the line that is not as it should be."""
    assert text.endswith("# EOF\n"), "the mark of the end is missing"
    families: dict[str, Family] = {}
    name = ""
    for line in text.removesuffix("# EOF\n").splitlines():
        if found := re.fullmatch(rf"# TYPE ({_NAME}) (gauge|counter|histogram)", line):
            name = found[1]
            assert name not in families, f"twice: {line}"
            families[name] = Family(found[2])
        elif found := re.fullmatch(rf"# HELP ({_NAME}) ((?:[^\\\n]|\\[\\n\"])+)", line):
            assert (found[1], families[name].help) == (name, None), f"not in its family: {line}"
            families[name].help = found[2]
        else:
            _read_sample(line, name, families[name])
    for name, family in families.items():
        assert family.help, f"{name} does not say what it is"
        if family.kind == "histogram":
            _check_histogram(name, family)
    return families


def _read_sample(line: str, name: str, family: Family) -> None:
    found = _SAMPLE.fullmatch(line)
    assert found, f"no sample: {line}"
    assert found[1].removeprefix(name) in _SUFFIXES[family.kind], f"not of this family: {line}"
    assert _NUMBER.fullmatch(found[found.lastindex or 0]), f"no number: {line}"
    labels = tuple(re.findall(_LABEL, found[2] or ""))
    assert len({key for key, _ in labels}) == len(labels), f"a label twice: {line}"
    key = (found[1].removeprefix(name), labels)
    assert key not in family.samples, f"twice: {line}"
    value = float(found[found.lastindex or 0])
    assert family.kind == "gauge" or value >= 0, f"less than nothing: {line}"
    family.samples[key] = value


def _check_histogram(name: str, family: Family) -> None:
    series: dict[Labels, list[tuple[float, float]]] = {}
    for (suffix, labels), value in family.samples.items():
        if suffix == "_bucket":
            bounds = dict(labels)
            rest = tuple(pair for pair in labels if pair[0] != "le")
            series.setdefault(rest, []).append((float(bounds["le"]), value))
    for labels, buckets in series.items():
        assert [bound for bound, _ in buckets] == sorted(bound for bound, _ in buckets), name
        counts = [count for _, count in buckets]
        assert counts == sorted(counts), f"{name} is not cumulative"
        assert buckets[-1][0] == math.inf
        assert buckets[-1][1] == family.samples["_count", labels]
        assert ("_sum", labels) in family.samples
