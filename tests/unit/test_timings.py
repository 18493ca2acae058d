"""timings: what is counted together, and that names from outside make it no larger."""

from pursersd.rules.resend import TOOLS
from pursersd.timings import HOSTS, OTHER, Timings


class Clock:
    """Time that a test makes."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_calls_waits_and_wakes_are_counted_apart() -> None:
    clock = Clock()
    timings = Timings(clock)
    with timings.calling("project_registry_get", "codex"):
        clock.now += 0.02
    with timings.calling("a2a_wait", "codex"):
        cued_at = clock() + 100
        clock.now += 100.05
        assert round(timings.woke("a2a_wait", "codex", cued_at), 6) == 0.05
    found = {(row.kind, row.tool): row for row in timings.rows()}
    assert set(found) == {("call", "project_registry_get"), ("wait", "a2a_wait"), ("wake", "a2a_wait")}
    assert [round(row.max_s, 3) for row in found.values()] == [0.02, 100.05, 0.05]
    assert {row.count for row in found.values()} == {1}


def test_a_call_that_fails_counts() -> None:
    timings = Timings()
    try:
        with timings.calling("project_registry_get", "zed"):
            raise ValueError
    except ValueError:
        pass
    assert [row.count for row in timings.rows()] == [1]


def test_names_from_outside_make_no_more_series_than_there_are_places() -> None:
    timings = Timings()
    for number in range(200):
        for tool in (f"tool-{number}", "a2a_wait"):
            with timings.calling(tool, f"host-{number}"):
                pass
    rows = timings.rows()
    assert {row.host for row in rows} == {OTHER, *(f"host-{n}" for n in range(HOSTS))}
    assert {row.tool for row in rows} == {OTHER, "a2a_wait"}
    assert sum(row.count for row in rows) == 400
    assert len(rows) <= 3 * (len(TOOLS) + 1) * (HOSTS + 1)


def test_a_host_that_calls_itself_like_a_credential_shows_none() -> None:
    timings = Timings()
    with timings.calling("a2a_wait", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.sig" + "x" * 100):
        pass
    assert [row.host for row in timings.rows()] == ["<secret>"]
