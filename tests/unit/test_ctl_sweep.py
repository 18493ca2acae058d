"""pursersctl.sweep_shown: structs in, lines out, compared with template files."""

from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from pursersctl.found import Sweep, SweptRow
from pursersctl.render import plain
from pursersctl.sweep_shown import sweep

DATA = Path(__file__).parents[1] / "data"

ORPHAN = SweptRow(
    kind="bridge",
    pid=20411,
    started=5012345.0,
    age_s=180000.0,
    rss_bytes=84 << 20,
    connections=["127.0.0.1:8766", "127.0.0.1:8766", "127.0.0.1:8766"],
    host=None,
    host_pid=None,
    orphan=True,
    why="its host has ended, adopted by systemd (pid 1402): nobody reads its output; sleep (pid 881) keeps its input open",
)
LIVING = SweptRow(
    kind="bridge",
    pid=20890,
    started=5912345.0,
    age_s=7300.0,
    rss_bytes=81 << 20,
    connections=["[2001:db8::1]:8766"],
    host="claude",
    host_pid=20880,
    orphan=False,
    why="its host claude (pid 20880) lives",
)
SHIM = SweptRow(
    kind="shim",
    pid=21001,
    started=5912999.0,
    age_s=42.0,
    rss_bytes=11 << 20,
    connections=[],
    host="a-program-with-a-remarkably-long-name",
    host_pid=1020880,
    orphan=False,
    why="its host a-program-with-a-remarkably-long-name (pid 1020880) lives",
)
FOUND = Sweep(processes=[ORPHAN, LIVING, SHIM], ending=False, boot=None)


@pytest.mark.parametrize("width", [80, 120])
def test_sweep(width: int) -> None:
    assert plain(sweep(FOUND, width)) == (DATA / f"ctl_sweep_{width}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_it_fits(width: int) -> None:
    assert all(cell_len(line) <= width for line in plain(sweep(FOUND, width)).splitlines())


def test_what_became_of_them() -> None:
    stays = msgspec.structs.replace(ORPHAN, outcome="stays")
    killed = msgspec.structs.replace(ORPHAN, outcome="killed")
    shown = plain(sweep(Sweep(processes=[stays, killed, LIVING], ending=True, boot=None), 120))
    assert shown.endswith("2 orphans: 1 ended.\n")
    assert [line.split()[-1] for line in shown.splitlines() if line.startswith("bridge")] == [
        "stays",
        "killed",
        "alone",
    ]


def test_nothing_to_do() -> None:
    nobody = Sweep(processes=[], ending=False, boot=None)
    assert plain(sweep(nobody)) == "No bridge and no shim of this user runs.\n"
    assert plain(sweep(nobody, only=(7, 8))) == "No bridge and no shim of this user with the pid 7 or 8 runs.\n"
    shown = plain(sweep(Sweep(processes=[LIVING], ending=True, boot=None)))
    assert shown.endswith("\nNothing to end: no orphan among them.\n")
