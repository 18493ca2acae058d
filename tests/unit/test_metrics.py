"""metrics: text that a strict reader understands, the names of docs/metrics.md, and labels that stay few and harmless."""

import re
from pathlib import Path

import msgspec
import pytest

from pursersd import api, metrics
from pursersd.api.measures import DOWN
from pursersd.rules.openmetrics import Family, Sample, text
from pursersd.timings import Timings
from unit import openmetrics
from unit.ctl_samples import SEATS, STATUS, seat

DOCS = Path(__file__).parents[2] / "docs"


def timings() -> Timings:
    now = 0.0
    found = Timings(lambda: now)
    for took in (0.0005, 0.02, 0.02, 3.0, 40_000.0):
        with found.calling("project_registry_get", 'odd "host"\\\n'):
            now += took
        with found.calling("a2a_wait", "codex"):
            now += took
    found.woke("a2a_wait", "codex", now - 0.03)
    return found


def full() -> str:
    """Everything that there can be."""
    lease = api.LeaseRow(board="b", ticket="TK-1", kind="work", state="kept", left_s=9.0)
    window = api.LossyWindow(name="LW-GATE", counter="gates", count=2, last_s=1.0, text="t")
    central = msgspec.structs.replace(STATUS.centrals[0], expires_s=-5.0)
    status = msgspec.structs.replace(STATUS, lossy_windows=[window], centrals=[central, *STATUS.centrals])
    return metrics.exposition(status, [*SEATS, seat(leases=[lease], lag=7)], timings().series())


def test_a_strict_reader_understands_it() -> None:
    families = openmetrics.read(full())
    calls = families["pursersd_call_duration_seconds"].samples
    labels = (("tool", "project_registry_get"), ("host", r"odd \"host\"\\\n"))
    assert calls["_count", labels] == 5
    assert calls["_sum", labels] == pytest.approx(40_003.0405)
    assert calls["_bucket", (*labels, ("le", "0.001"))] == 1
    assert calls["_bucket", (*labels, ("le", "0.022"))] == 3
    assert calls["_bucket", (*labels, ("le", "10000.0"))] == 4
    assert families["pursersd_wake_latency_seconds"].samples["_count", (("tool", "a2a_wait"), ("host", "codex"))] == 1
    assert families["pursersd_conversations"].samples["", (("state", "waiting"),)] == 3
    assert families["pursersd_leases"].samples["", (("state", "kept"),)] == 1
    assert families["pursersd_cursor_lag_entries"].samples["", ()] == 7
    assert families["pursersd_warnings"].samples == {("", (("code", "central_unreachable"),)): 1}
    first, other = (("central", "http://127.0.0.1:8765"),), (("central", "https://board.example"),)
    assert families["pursersd_central_up"].samples == {("", first): 1, ("", other): 0}
    assert families["pursersd_central_requests"].samples["_total", first] == 240
    assert families["pursersd_credential_expires_seconds"].samples == {("", first): -5}


def test_names_types_and_labels_are_those_of_the_documentation() -> None:
    rows = re.findall(r"^\| `(pursersd_\w+)` \| (\w+) \| (.*?) \|", (DOCS / "metrics.md").read_text(), re.MULTILINE)
    documented = {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    found = openmetrics.read(full())
    shown = {
        name: (family.kind, {key for _, labels in family.samples for key, _ in labels} - {"le"})
        for name, family in found.items()
    }
    assert shown == documented


def test_of_a_daemon_that_did_nothing_yet() -> None:
    status = msgspec.structs.replace(STATUS, centrals=[], warnings=[])
    families = openmetrics.read(metrics.exposition(status, [], []))
    assert families["pursersd_conversations"].samples["", (("state", "waiting"),)] == 0
    assert families["pursersd_central_up"].samples == {}


def test_what_is_said_of_no_daemon() -> None:
    down, up = openmetrics.read(DOWN), openmetrics.read(full())
    assert down["pursersd_up"].samples == {("", ()): 0}
    assert up["pursersd_up"].samples == {("", ()): 1}
    assert down["pursersd_up"].help == up["pursersd_up"].help


def test_addresses_show_nothing_but_the_machine_and_there_is_an_end_to_them() -> None:
    secret = msgspec.structs.replace(
        STATUS.centrals[0], url="https://me:secret@example.org:8443/secret?token=secret", credential="secret"
    )
    many = [msgspec.structs.replace(secret, url=f"http://host-{n}:1") for n in range(100)]
    broken = msgspec.structs.replace(secret, url="http://[broken")
    status = msgspec.structs.replace(STATUS, centrals=[secret, broken, *many])
    shown = metrics.exposition(status, [], [])
    assert "secret" not in shown
    origins = {value for _, labels in openmetrics.read(shown)["pursersd_central_up"].samples for _, value in labels}
    assert "https://example.org:8443" in origins
    assert len(origins) == metrics.CENTRALS
    assert "other" in origins


def test_nothing_of_conversations_is_a_label() -> None:
    shown = full()
    for row in SEATS:
        assert row.conversation not in shown
        assert row.seat is None or row.seat not in shown
        assert row.board is None or f'"{row.board}"' not in shown


@pytest.mark.parametrize("wrong", ["pursersd_up 1\n", "# TYPE a gauge\n# HELP a x\na{b=1} 1\n# EOF\n"])
def test_the_reader_is_strict(wrong: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        openmetrics.read(wrong)


def test_what_would_break_a_line_is_escaped() -> None:
    shown = text([Family("a", "gauge", 'one\n"two"\\', [Sample(1, (("b", "\n"),))])])
    assert shown == '# TYPE a gauge\n# HELP a one\\n\\"two\\"\\\\\na{b="\\n"} 1\n# EOF\n'
