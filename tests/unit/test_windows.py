"""windows and rules/windows: each has a name, a counter, a line in the log and words for who asks (RB-LSE-001)."""

import re
from pathlib import Path

import pytest

import pursersd
from pursersd.rules.windows import LW_RESYNC, WINDOWS, resync_warning
from pursersd.windows import Windows


@pytest.mark.parametrize("name", WINDOWS)
def test_it_is_counted_and_said(name: str, caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    windows = Windows(clock=lambda: now[0])
    assert {(window.count, window.last_s) for window in windows.snapshot()} == {(0, None)}
    windows.opened(name, "somebody", 3)
    now[0] = 104.0
    windows.opened(name, "somebody else")
    now[0] = 105.5
    (found,) = [window for window in windows.snapshot() if window.count]
    assert (found.name, found.counter, found.count, found.last_s) == (name, WINDOWS[name].counter, 4, 1.5)
    assert found.text.startswith("May be lost: ")
    assert f"{name} (" in caplog.text
    assert "somebody else" in caplog.text


def test_it_is_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (LW-[A-Z]+) \| `([a-z_]+)` \|", text, re.MULTILINE)
    assert listed == [(window.name, window.counter) for window in WINDOWS.values()]


def test_each_is_opened_somewhere() -> None:
    sources = (file.read_text(encoding="utf-8") for file in Path(pursersd.__path__[0]).rglob("*.py"))
    opened = re.findall(r"\bopened\(\s*LW_([A-Z]+)", "".join(sources))
    assert {f"LW-{name}" for name in opened} == WINDOWS.keys()


def test_names_and_counters_are_their_own() -> None:
    assert len({window.counter for window in WINDOWS.values()}) == len(WINDOWS)
    assert all(name == window.name and name.startswith("LW-") for name, window in WINDOWS.items())


def test_a_caller_is_told_the_window_and_what_to_do() -> None:
    warning = resync_warning("alpha")
    assert warning["window"] == LW_RESYNC
    assert str(warning["message"]).startswith("LW-RESYNC: the journal of alpha")
    assert "new_seq" in str(warning["message"])
