"""rules/hosts: the table of bridge.md §2.2."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules.hosts import TIMEOUTS_S, profile


@pytest.mark.parametrize(
    ("host", "timeout_s", "margin_s", "block_limit_s", "progress_every_s", "platform"),
    [
        ("codex", 620, 60, 560, None, None),
        ("codex-cli", 620, 60, 560, None, None),
        ("zed", 620, 60, 560, None, "zed"),
        ("goose", 300, 30, 270, None, None),
        ("claude-code", 21600, 60, 21540, 300.0, None),
        ("claude-desktop", 240, 40, 200, None, None),
        ("headless", 21600, 60, 21540, None, None),
    ],
)
def test_known_hosts(
    host: str,
    timeout_s: int,
    margin_s: int,
    block_limit_s: int,
    progress_every_s: float | None,
    platform: str | None,
) -> None:
    found, note = profile(host, None)
    assert note is None
    assert (found.name, found.known_name) == (host, host)
    assert (found.timeout_s, found.margin_s, found.block_limit_s) == (timeout_s, margin_s, block_limit_s)
    assert (found.progress_every_s, found.platform) == (progress_every_s, platform)


@pytest.mark.parametrize(
    ("override", "block_limit_s"),
    [
        (2, 1),
        (31, 1),
        (60, 30),
        (90, 60),
        (120, 90),
        (180, 150),
        (240, 210),
        (310, 279),
        (400, 360),
        (600, 540),
        (1800, 1740),
        (10**30, 10**30 - 60),
    ],
)
def test_timeout_override(override: int, block_limit_s: int) -> None:
    for host in ("codex", "goose", "claude-code"):
        found, note = profile(host, f" {override} ")
        assert (found.timeout_s, found.block_limit_s, note) == (override, block_limit_s, None)


def test_claude_desktop_keeps_its_margin_under_an_override() -> None:
    assert profile("claude-desktop", "60")[0].block_limit_s == 20
    assert profile("claude-desktop", "31")[0].block_limit_s == 1


@pytest.mark.parametrize(
    ("override", "margin_s"), [("2", 1), ("20", 19), ("31", 30), ("300", 30), ("301", 31), ("601", 60)]
)
def test_the_margin_is_a_tenth_within_bounds_and_never_the_whole(override: str, margin_s: int) -> None:
    assert profile("codex", override)[0].margin_s == margin_s


@pytest.mark.parametrize("override", ["1", "0", "-5", "x", "1.5", "9" * 5000])
def test_a_bad_override_is_noted_and_the_profile_used(override: str) -> None:
    found, note = profile("goose", override)
    assert found.block_limit_s == 270
    assert note is not None
    assert "PURSERS_HOST_TIMEOUT_S" in note


def test_an_unknown_host_has_the_shortest_limit_of_all_and_keeps_its_name() -> None:
    found, note = profile(" MyHost ", None)
    assert (found.name, found.known_name, found.platform, found.progress_every_s) == ("myhost", "codex", None, None)
    assert (found.timeout_s, found.margin_s, found.block_limit_s) == (240, 40, 200)
    assert found.block_limit_s == min(profile(known, None)[0].block_limit_s for known in TIMEOUTS_S)
    assert note is not None
    assert "PURSERS_HOST" in note
    assert "claude-desktop" in note


def test_an_unknown_host_may_say_how_long_it_waits() -> None:
    for override in ("60", "600"):
        found, note = profile("myhost", override)
        assert note is None
        assert (found.timeout_s, found.block_limit_s) == (int(override), profile("codex", override)[0].block_limit_s)


@pytest.mark.parametrize("host", [None, "", "  "])
def test_no_host_is_codex_without_a_note(host: str | None) -> None:
    assert profile(host, None) == profile("codex", None)


@given(st.sampled_from([*TIMEOUTS_S, "other"]), st.integers(2, 10**6))
def test_a_wait_always_ends_before_the_host_gives_up(host: str, timeout_s: int) -> None:
    found, _ = profile(host, str(timeout_s))
    assert 1 <= found.block_limit_s < found.timeout_s
