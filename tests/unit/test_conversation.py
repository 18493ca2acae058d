"""conversation/conversation: what it is doing, whose link is the live one, and when its events are acknowledged."""

import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from pursersd.central.account import Account, current
from pursersd.conversation import conversation as module
from pursersd.conversation.conversation import Conversation
from pursersd.conversation.identity import ProcessIdentity, identify
from pursersd.conversation.lineage import Lineage
from pursersd.conversation.surroundings import Surroundings
from pursersd.errors import ConfigurationError, Unreachable
from pursersd.feed.centrals import Centrals
from pursersd.ids import RequestId
from pursersd.seats.seat import Seat, SeatRequest
from pursersd.settings import resolve
from pursersd.state.stats import StatsWriter, StatsWriters
from pursersd.waits.watched import Watched

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock))
    return clock


def no_files(path: str) -> str:
    raise FileNotFoundError(2, "No such file or directory", path)


def conversation(stats: StatsWriter | None = None, **environ: str) -> Conversation:
    us = identify(os.getpid(), None)
    assert us is not None
    environ = {"ONBOARD_CENTRAL_TOKEN": "token-a", "ONBOARD_BOARD_ID": "b", **environ}
    return Conversation(
        "c-1",
        Lineage(us, ProcessIdentity(7, 7.0), "/cwd", "1.2"),
        Surroundings(lambda: resolve(environ, no_files), stats=stats),
        Centrals(),
    )


def seat(name: str = "ann", board: str = "b") -> Seat:
    return Seat(SeatRequest(board, name, "worker"), f"AI-{board}-{name}", "PR-1", "worker", 900, None)


def board(taken: Seat, *, push: bool = True, reason: str | None = None) -> Watched:
    """A board of a wait, with as much of feed and waiter as `ps` looks at."""
    waiter: Any = SimpleNamespace(push=push, seat=taken, opened=False)
    feed: Any = SimpleNamespace(
        poll_reason=reason,
        polls=lambda waiter: not push or reason is not None,
        catchup=SimpleNamespace(head_of=lambda board: None),
    )
    return Watched(feed, waiter)


# --- states -----------------------------------------------------------------------------------------------------------


async def test_waiting_beats_working_beats_idle(clock: Clock) -> None:
    talk = conversation()
    assert talk.state == "detached"
    talk.attach()
    assert talk.state == "idle"
    with talk.calling("project_registry_get"):
        assert (talk.state, talk.is_busy, talk.last_tool) == ("working", True, "project_registry_get")
        with talk.calling("a2a_wait"), talk.waiting():
            assert (talk.state, talk.is_busy, talk.last_tool) == ("waiting", True, "a2a_wait")
    assert (talk.state, talk.is_busy) == ("idle", False)
    with talk.calling("a2a_wait"), talk.waiting():
        assert (talk.state, talk.is_busy) == ("waiting", False)


async def test_a_failed_call_ends_too() -> None:
    talk = conversation()
    talk.attach()
    with pytest.raises(ZeroDivisionError), talk.calling("a2a_wait"), talk.waiting():
        1 / 0  # noqa: B018
    assert (talk.state, talk.is_busy) == ("idle", False)


async def test_two_waits_at_once_end_one_by_one() -> None:
    talk = conversation()
    talk.attach()
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(talk.waiting())
        second.enter_context(talk.waiting())
        first.close()
        assert talk.state == "waiting"
    assert talk.state == "idle"


async def test_since_is_the_time_in_this_state(clock: Clock) -> None:
    talk = conversation()
    talk.attach()
    clock.now += 10
    with talk.calling("a2a_wait"), talk.waiting():
        clock.now += 3
        with talk.waiting():
            clock.now += 2
            row = talk.row(1)
            assert (row.state, row.since_s, row.age_s) == ("waiting", 5.0, 15.0)
    clock.now += 1
    assert (talk.row(1).state, talk.row(1).since_s) == ("idle", 1.0)


# --- links ------------------------------------------------------------------------------------------------------------


async def test_only_the_newest_link_can_detach() -> None:
    talk = conversation()
    first, second = talk.attach(), talk.attach()
    assert second > first
    talk.detach(first)
    assert talk.state == "idle"
    with talk.waiting():
        talk.detach(second)
        assert talk.state == "detached"
        talk.detach(second)
        assert talk.attach() > second
        assert talk.state == "waiting"


async def test_it_ends_once() -> None:
    talk = conversation()
    talk.end("the shim ended")
    talk.end("the host ended")
    assert talk.ended.is_set()
    assert talk.end_reason == "the shim ended"


async def test_an_ended_conversation_opens_no_central() -> None:
    """Its Central was given back: nobody would close it a second time."""
    talk = conversation()
    talk.end("the shim ended")
    with pytest.raises(ConfigurationError, match="ended: the shim ended"):
        await talk.connect()


async def test_what_prevents_a_connection_is_said() -> None:
    with pytest.raises(ConfigurationError, match="PURSERS_ROLE"):
        await conversation(PURSERS_ROLE="king").connect()
    with pytest.raises(ConfigurationError, match="ONBOARD_CENTRAL_TOKEN is not set"):
        await conversation(ONBOARD_CENTRAL_TOKEN="").connect()


# --- its seat ---------------------------------------------------------------------------------------------------------


async def test_its_seat_is_its_own_or_the_one_that_a_call_names() -> None:
    talk = conversation(
        ONBOARD_AGENT_NAME="ann", ONBOARD_AGENT_INSTANCE="2", PURSERS_ROLE="reviewer", PURSERS_HOST="zed"
    )
    assert talk.seat_request("b") == SeatRequest("b", "ann-2", "reviewer", None, "zed")
    assert talk.seat_request("other", "bob") == SeatRequest("other", "bob", "reviewer", None, "zed")
    assert talk.seat_request("b", "").agent_name == ""  # Central has the last word on names


async def test_a_seat_with_capabilities_can_be_a_key() -> None:
    request = conversation(PURSERS_TIER_MAX="2", PURSERS_SKILLS="b,a", PURSERS_CAN_WORK="1").seat_request("b")
    assert request.capabilities is not None
    assert hash(request) == hash(
        conversation(PURSERS_CAN_WORK="1", PURSERS_SKILLS="b,a", PURSERS_TIER_MAX="2").seat_request("b")
    )


async def test_the_kind_of_its_host_is_the_configured_one_else_what_the_host_says() -> None:
    talk = conversation()
    assert talk.host == "codex"
    talk.client_name = "claude-code"
    assert talk.host == "claude-code"
    configured = conversation(PURSERS_HOST="zed")
    configured.client_name = "Zed"
    assert configured.host == "zed"


# --- acknowledgement --------------------------------------------------------------------------------------------------


class Acknowledged:
    """Notes which results were acknowledged."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def of(self, name: str) -> Any:
        async def acknowledge() -> None:
            self.names.append(name)

        return acknowledge


def answer(talk: Conversation, request: RequestId, acknowledge: Any) -> None:
    """The server gets the request and answers it."""
    talk.requests.begin(request, request, None)
    talk.requests.acknowledge_when_delivered(request, acknowledge)
    talk.requests.end(request, answered=True)


async def test_events_are_acknowledged_when_their_answer_was_delivered_and_once() -> None:
    talk, done = conversation(), Acknowledged()
    async with anyio.create_task_group() as talk.tasks:
        answer(talk, 5, done.of("five"))
        answer(talk, "5", done.of("text five"))
        talk.delivered(6)
        talk.delivered("5")
        talk.delivered("5")
        await anyio.wait_all_tasks_blocked()
        assert done.names == ["text five"]
        talk.delivered(5)
    assert done.names == ["text five", "five"]


async def test_a_failed_acknowledgement_is_only_noted(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise Unreachable("gone")

    talk = conversation()
    async with anyio.create_task_group() as talk.tasks:
        answer(talk, 5, fail)
        talk.delivered(5)
    assert "delivered but not acknowledged: gone" in caplog.text


async def test_its_calls_and_acknowledgements_are_charged_to_its_seat(tmp_path: Path) -> None:
    writers = StatsWriters(str(tmp_path))
    talk = conversation(stats=writers.of({}, "/"), ONBOARD_AGENT_NAME="ann")
    paid: list[Account | None] = []

    async def acknowledge() -> None:
        paid.append(current())

    with talk.calling("a2a_wait"):
        paid.append(current())
    assert current() is None
    async with anyio.create_task_group() as talk.tasks:
        answer(talk, 5, acknowledge)
        talk.delivered(5)
    assert [account.seat() for account in paid if account] == [("b", "ann")] * 2
    named = talk.account("bob")
    assert named is not None
    assert named.seat() == ("b", "bob")
    assert named.writer.path == str(tmp_path / "state/bridge-stats.json")


async def test_an_account_follows_the_conversation(tmp_path: Path) -> None:
    """It is made before the conversation has its name, and a setting may be repaired."""
    talk = conversation(stats=StatsWriters(str(tmp_path)).of({}, "/"))
    account = talk.account()
    assert account is not None
    talk.configuration.settings = replace(talk.settings, board="c", agent_name="worker-box-1")
    assert account.seat() == ("c", "worker-box-1")


async def test_after_its_end_nothing_is_acknowledged() -> None:
    talk, done = conversation(), Acknowledged()
    answer(talk, 5, done.of("five"))
    talk.delivered(5)
    assert done.names == []


def test_a_cut_link_is_told_until_the_next_one() -> None:
    talk = conversation()
    epoch = talk.attach()
    talk.cut(epoch - 1, "an old link")
    assert talk.row(0).cut_reason is None
    talk.cut(epoch, "it does not read")
    talk.detach(epoch)
    assert talk.row(0).cut_reason == "it does not read"
    talk.attach()
    assert talk.row(0).cut_reason is None


# --- for people -------------------------------------------------------------------------------------------------------


async def test_its_row_before_it_has_a_seat() -> None:
    talk = conversation(PURSERS_ROLE="worker", PURSERS_HOST="claude-code")
    talk.attach()
    row = talk.row(3)
    assert (row.seat, row.board, row.role, row.shared_by, row.delivery) == (None, "b", "worker", 0, None)
    assert (row.host, row.host_pid, row.shim_pid, row.cwd, row.shim_version) == (
        "claude-code",
        7,
        os.getpid(),
        "/cwd",
        "1.2",
    )
    assert row.central == "http://127.0.0.1:8766/mcp"
    talk.client_name = "Claude"
    assert talk.row(0).host == "claude-code", "as it is counted and as `hosts` set it up"
    unnamed = conversation()
    unnamed.attach()
    unnamed.client_name = "Claude"
    assert unnamed.row(0).host == "Claude"


async def test_its_row_shows_the_seat_and_how_events_come() -> None:
    talk, bob = conversation(), seat("bob")
    talk.attach()
    talk.watching([board(bob)])
    row = talk.row(2)
    assert (row.seat, row.delivery, row.poll_reason, row.shared_by, row.boards) == ("bob", "push", None, 2, ["b"])
    talk.watching([board(bob, reason="no stream left")])
    assert (talk.row(2).delivery, talk.row(2).poll_reason) == ("poll", "no stream left")
    talk.watching([board(bob, push=False)])
    assert (talk.row(2).delivery, talk.row(2).poll_reason) == ("poll", "PURSERS_WAIT_MODE=poll")


async def test_a_wait_on_many_boards_shows_the_first_and_that_one_is_polled() -> None:
    talk = conversation()
    talk.watching([board(seat(board="home")), board(seat(board="far"), reason="denied")])
    row = talk.row(1)
    assert (row.board, row.boards, row.delivery, row.poll_reason) == ("home", ["home", "far"], "poll", "denied")


async def test_every_seat_that_it_took_is_its_own_until_it_ends() -> None:
    talk = conversation()
    talk.watching([board(seat(board="home")), board(seat(board="far"))])
    talk.watching([board(seat("bob"))])
    assert {taken.uri for taken in talk.seats} == {seat(board="home").uri, seat(board="far").uri, seat("bob").uri}
    assert talk.seat == seat("bob")


async def test_no_url_is_shown_that_cannot_be_one() -> None:
    assert conversation(ONBOARD_CENTRAL_URL="ftp://x").row(0).central is None


async def test_its_name_in_the_log() -> None:
    assert repr(conversation()) == f"<Conversation c-1 detached seat=– shim={os.getpid()}>"
