"""pursersctl.detail: one conversation in lines, compared with a template file."""

from pathlib import Path
from typing import Literal

import pytest
from rich.cells import cell_len

from pursersctl.detail import conversation
from pursersctl.render import plain
from pursersd import api
from unit.ctl_samples import seat

DATA = Path(__file__).parents[1] / "data"


def setting(
    name: str,
    value: str | None,
    origin: Literal["variable", "file", "door", "automatic", "default"] = "default",
    origin_name: str | None = None,
) -> api.Setting:
    return api.Setting(name=name, value=value, origin=origin, origin_name=origin_name)


ANSWER = api.ConversationStatus(
    row=seat(seat="worker-box-1", shared_by=2),
    settings=[
        setting("url", "http://127.0.0.1:8765/mcp", "variable", "ONBOARD_CENTRAL_URL"),
        setting("token", "door-bench-worker-v1/a1b2c3", "door", "door-bench-worker-v1"),
        setting("board", "bench", "file", "SOME_FILE"),
        setting("role", None),
        setting("agent_name", "worker-box-1", "automatic"),
    ],
    doors="/home/me/.pursers/wait-bridge",
    stats="/home/me/stats.json",
    seats=[
        api.SeatStatus(
            board="bench",
            agent_name="worker-box-1",
            agent_id="AI-99",
            principal_id="PR-60",
            role="worker",
            claim_ttl_s=900,
            generation=None,
            shared_by=2,
            declared=False,
        )
    ],
    problems=["PURSERS_TIER_MAX must be 1, 2, or 3. Set it to one of these, or unset it; then call any tool again."],
    notes=["PURSERS_WAIT_MODE must be push or poll; using push"],
)


@pytest.mark.parametrize("width", [80, 120])
def test_a_conversation(width: int) -> None:
    assert plain(conversation(ANSWER, width)) == (DATA / f"ctl_conversation_{width}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [60, 80, 140])
def test_it_fits(width: int) -> None:
    assert all(cell_len(line) <= width for line in plain(conversation(ANSWER, width)).splitlines())


def test_names_with_escapes_are_harmless() -> None:
    bad = api.ConversationStatus(
        row=seat(cwd="/\x1b[31m"),
        settings=[setting("board", "\x1b", "variable", "\x1b")],
        doors=None,
        seats=[],
        problems=["\x1b"],
        notes=[],
    )
    assert "\x1b" not in plain(conversation(bad))
