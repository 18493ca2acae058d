"""seats/seat: one join for many, time limits, and what makes a seat doubtful. On the real Central: central/test_seats."""

from dataclasses import replace
from typing import Any

import anyio
import pytest

from pursersd.errors import CentralError, ToolFailed, Unreachable
from pursersd.seats import seat as module
from pursersd.seats.seat import Seat, SeatRequest, Seats, SeatTaken, needs_rejoin
from unit.scripted_pool import ScriptedPool, seat
from unit.virtual_time import virtually

pytestmark = pytest.mark.anyio

ANN = seat("ann")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def pool() -> ScriptedPool:
    return ScriptedPool()


@pytest.fixture
def seats(pool: ScriptedPool) -> Seats:
    return Seats(pool.as_pool)


def joins(pool: ScriptedPool) -> list[str]:
    return [asked for asked in pool.asked if "joins" in asked]


async def test_many_that_want_one_seat_join_once(seats: Seats, pool: ScriptedPool) -> None:
    got: list[Seat] = []

    async def one() -> None:
        got.append(await seats.join(ANN.request))

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(one)
    assert got == [ANN] * 10
    assert pool.asked == ["board b", "ann joins as model"]


async def test_another_role_is_another_join(seats: Seats, pool: ScriptedPool) -> None:
    await seats.join(ANN.request, "c-1")
    assert (await seats.join(replace(ANN.request, role="reviewer"), "c-1")).role == "reviewer"
    assert len(joins(pool)) == 2


# --- several users of one seat ----------------------------------------------------------------------------------------

SKILLED = replace(ANN.request, capabilities=(("skills", ("a",)),))
OTHERWISE = replace(ANN.request, capabilities=(("skills", ("b",)),))


async def declared(seats: Seats, pool: ScriptedPool, request: SeatRequest, user: str) -> Any:
    """What Central has heard last after this user's join."""
    await seats.join(request, user)
    return pool.joined[-1].get("capabilities")


async def test_the_eldest_users_declaration_counts_and_does_not_flap(seats: Seats, pool: ScriptedPool) -> None:
    for _ in range(3):
        assert await declared(seats, pool, SKILLED, "c-1") == {"skills": ("a",)}
        assert await declared(seats, pool, OTHERWISE, "c-2") == {"skills": ("a",)}
    assert len(joins(pool)) == 1
    assert [seats.declares(ANN, user) for user in ("c-1", "c-2", "c-3")] == [True, False, False]
    assert seats.of("c-2") == seats.of("c-1")
    await seats.keepalive(ANN)
    assert pool.joined[-1]["capabilities"] == {"skills": ("a",)}
    assert seats.users(ANN) == 2


async def test_when_the_eldest_leaves_the_next_ones_declaration_counts(seats: Seats, pool: ScriptedPool) -> None:
    await seats.join(SKILLED, "c-1")
    await seats.join(OTHERWISE, "c-2")
    assert seats.leave("c-1") == []
    assert await declared(seats, pool, OTHERWISE, "c-2") == {"skills": ("b",)}
    assert len(joins(pool)) == 2


async def test_a_user_may_change_its_own_declaration(seats: Seats, pool: ScriptedPool) -> None:
    await seats.join(SKILLED, "c-1")
    assert await declared(seats, pool, OTHERWISE, "c-1") == {"skills": ("b",)}


async def test_two_roles_on_one_seat_are_a_conflict_that_changes_nothing(seats: Seats, pool: ScriptedPool) -> None:
    await seats.join(ANN.request, "c-1")
    with pytest.raises(SeatTaken, match="used by another conversation as worker") as refused:
        await seats.join(replace(ANN.request, role="reviewer"), "c-2")
    assert "ONBOARD_AGENT_INSTANCE" in str(refused.value)
    assert (await seats.join(replace(ANN.request, role=None), "c-3")).role == "worker"  # who leaves it open takes part
    assert len(joins(pool)) == 1
    assert [seat.role for seat in seats.leave("c-1")] == []
    seats.leave("c-3")
    assert (await seats.join(replace(ANN.request, role="reviewer"), "c-2")).role == "reviewer"


async def test_a_seat_without_a_declared_role_has_the_one_that_central_gave(seats: Seats) -> None:
    await seats.join(replace(ANN.request, role=None), "c-1")
    with pytest.raises(SeatTaken):
        await seats.join(replace(ANN.request, role="reviewer"), "c-2")


async def test_one_that_was_refused_declares_nothing(seats: Seats, pool: ScriptedPool) -> None:
    pool.errors = [ToolFailed("board_join", "invite required")]
    with pytest.raises(ToolFailed):
        await seats.join(replace(ANN.request, role="reviewer"), "c-1")
    assert (await seats.join(ANN.request, "c-2")).role == "worker"
    assert seats.users(ANN) == 1


async def test_two_calls_of_one_user_the_first_of_which_is_refused(seats: Seats, pool: ScriptedPool) -> None:
    pool.errors = [ToolFailed("board_join", "not now")]
    answers: list[object] = []

    async def one() -> None:
        try:
            answers.append(await seats.join(ANN.request, "c-1"))
        except ToolFailed as error:
            answers.append(str(error))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one)
        tasks.start_soon(one)
    assert answers == ["not now", ANN]
    assert seats.leave("c-1") == [ANN]


async def test_a_user_that_leaves_while_it_joins_keeps_nothing(seats: Seats, pool: ScriptedPool) -> None:
    for others in ((), ("c-2",)):
        pool.go = anyio.Event()
        async with anyio.create_task_group() as tasks:
            for user in ("c-1", *others):
                tasks.start_soon(seats.join, ANN.request, user)
            await anyio.wait_all_tasks_blocked()
            assert seats.leave("c-1") == []
            pool.go.set()
        assert seats.users(ANN) == len(others)
    assert len(joins(pool)) == 2
    assert seats.leave("c-2") == [ANN]


async def test_whose_last_join_is_furthest_back(pool: ScriptedPool) -> None:
    times = iter((1.0, 2.0, 3.0))
    seats = Seats(pool.as_pool, clock=lambda: next(times))
    bob = seat("bob")
    await seats.join(ANN.request)
    await seats.join(bob.request)
    assert seats.longest_untouched([ANN, bob]) == ANN
    await seats.keepalive(ANN)
    assert seats.longest_untouched([ANN, bob, ANN]) == bob
    assert seats.longest_untouched([ANN]) == ANN


@virtually
async def test_a_central_that_hangs_fails_all_of_them_together(seats: Seats, pool: ScriptedPool) -> None:
    """Not one after the other: the tenth would wait ten times as long as its host lets it."""
    pool.go = anyio.Event()
    failures: list[BaseException] = []

    async def one() -> None:
        try:
            await seats.join(ANN.request)
        except Unreachable as error:
            failures.append(error)

    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(one)
    assert len(failures) == 10
    assert anyio.current_time() - began == pytest.approx(module.JOIN_TIMEOUT)
    pool.go.set()
    assert await seats.join(ANN.request) == ANN


@virtually
async def test_a_join_may_wait_for_its_turn_as_long_as_others_are_answered(
    seats: Seats, pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, read = anyio.Lock(), pool.read

    async def slowly(tool: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        async with turns:
            await anyio.sleep(module.JOIN_TIMEOUT / 10)
            return await read(tool, *arguments, **options)

    monkeypatch.setattr(pool, "read", slowly)
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(seats.join, replace(ANN.request, agent_name=f"ann-{number}"))
    assert len(joins(pool)) == 20


async def test_a_refused_join_is_tried_again_by_the_next(seats: Seats, pool: ScriptedPool) -> None:
    pool.errors = [ToolFailed("board_join", "invite required")]
    with pytest.raises(ToolFailed):
        await seats.join(ANN.request)
    assert await seats.join(ANN.request) == ANN


async def test_a_forgotten_seat_joins_afresh_and_is_not_kept_alive_into_being(seats: Seats, pool: ScriptedPool) -> None:
    joined = await seats.join(ANN.request, "c-1")
    assert seats.leave("c-1") == [joined]
    await seats.keepalive(joined)
    await seats.join(ANN.request)
    assert joins(pool) == ["ann joins as model", "ann joins as keepalive", "ann joins as model"]


async def test_a_keepalive_brings_what_has_changed(seats: Seats, pool: ScriptedPool) -> None:
    joined = await seats.join(ANN.request)
    pool.changes = {"claim_ttl_s": 60, "generation_token": "g2"}
    await seats.keepalive(joined)
    assert await seats.join(ANN.request) == replace(ANN, claim_ttl_s=60, generation="g2")


async def test_a_generation_is_the_boards_and_counts_for_every_seat_there(seats: Seats, pool: ScriptedPool) -> None:
    told: list[str] = []
    seats.on_renumbered = told.append
    bob = replace(ANN.request, agent_name="bob")
    pool.changes = {"generation_token": "g1"}
    ann = await seats.join(ANN.request)
    await seats.join(bob)
    pool.changes = {"generation_token": "g2"}
    await seats.keepalive(ann)
    assert (seats.generation("b"), seats.generation("elsewhere"), told) == ("g2", None, ["b"])
    assert (await seats.join(bob)).generation == "g2"
    assert len(joins(pool)) == 3
    seats.forget_all()  # another Central, which knows nothing of it
    await seats.join(bob)
    assert told == ["b"]


async def test_rejoining_is_no_act_of_the_model(seats: Seats, pool: ScriptedPool) -> None:
    joined = await seats.join(ANN.request)
    pool.changes = {"generation_token": "g2"}
    for _ in range(2):
        assert (await seats.keepalive(joined)).generation == "g2"
    assert joins(pool)[1:] == ["ann joins as keepalive"] * 2


@pytest.mark.parametrize(
    ("reads", "joins_more"),
    [
        ([(5, True)], 0),  # just joined: whatever lies in the journal is older
        ([(5, True), (5, True)], 0),
        ([(5, True), (8, False)], 0),  # it saw every row
        ([(5, True), (8, True)], 1),
        ([(5, False), (8, True), (8, True), (9, True)], 2),
        ([(5, False), (3, True), (4, True)], 1),  # another journal
    ],
)
async def test_hidden_rows_cost_one_keepalive(
    seats: Seats, pool: ScriptedPool, reads: list[tuple[int, bool]], joins_more: int
) -> None:
    joined = await seats.join(ANN.request)
    for head, hidden in reads:
        await seats.confirm(joined, head, hidden=hidden)
    assert joins(pool)[1:] == ["ann joins as keepalive"] * joins_more


async def test_the_event_of_its_own_return_is_no_doubt(seats: Seats, pool: ScriptedPool) -> None:
    joined = await seats.join(ANN.request)
    await seats.confirm(joined, 5, hidden=True)
    pool.changes = {"lifecycle_event": {"seq": 9}}
    await seats.confirm(joined, 8, hidden=True)
    pool.changes = {}
    await seats.confirm(joined, 9, hidden=True)
    assert joins(pool)[1:] == ["ann joins as keepalive"]
    await seats.confirm(joined, 10, hidden=True)
    assert joins(pool)[1:] == ["ann joins as keepalive"] * 2


async def test_a_doubt_stays_until_the_keepalive_succeeded(seats: Seats, pool: ScriptedPool) -> None:
    joined = await seats.join(ANN.request)
    await seats.confirm(joined, 5, hidden=True)
    pool.errors = [Unreachable("gone")]
    with pytest.raises(Unreachable):
        await seats.confirm(joined, 8, hidden=True)
    await seats.confirm(joined, 8, hidden=True)
    assert len(joins(pool)) == 3


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"role": "reviewer"}, {"role": "reviewer"}),
        ({"role": None}, {"role": "worker"}),
        ({"claim_ttl_s": None}, {"claim_ttl_s": 900}),
        ({"generation_token": ""}, {"generation": None}),
        ({"generation_token": "g"}, {"generation": "g"}),
    ],
    ids=str,
)
async def test_what_central_says_counts(
    seats: Seats, pool: ScriptedPool, changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    pool.changes = changes
    assert await seats.join(ANN.request) == replace(ANN, **expected)


@pytest.mark.parametrize("changes", [{"agent_id": "AI-other"}, {"agent_id": None}, {"principal_id": "PR-2"}])
async def test_another_identity_than_the_rule_gives_is_refused(
    seats: Seats, pool: ScriptedPool, changes: dict[str, Any]
) -> None:
    pool.changes = changes
    with pytest.raises(CentralError, match="another agent id"):
        await seats.join(ANN.request)


async def test_only_what_is_known_is_sent(seats: Seats, pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, Any]] = []
    read = pool.read

    async def note(tool: str, arguments: Any, **options: Any) -> Any:
        sent.append(dict(arguments))
        return await read(tool, arguments, **options)

    monkeypatch.setattr(pool, "read", note)
    await seats.join(SeatRequest("b", "ann", None))
    await seats.join(SeatRequest("b", "ann", "worker", (("skills", ("a", "b")), ("tier_max", 2)), "zed"))
    common = {"board_id": "b", "agent_name": "ann", "allow_takeover": True, "renewal_source": "model"}
    assert sent == [
        common,
        {**common, "role": "worker", "capabilities": {"skills": ("a", "b"), "tier_max": 2}, "agent_platform": "zed"},
    ]


@pytest.mark.parametrize(
    ("error", "needed"),
    [
        (ToolFailed("t", "agent is not active; call board_onboard or board_join before more work"), True),
        (ToolFailed("t", "agent is not a member of this board"), True),
        (ToolFailed("t", "stale or missing board generation; rejoin with board_join or board_onboard"), True),
        (ToolFailed("t", "board access denied: principal is not a member"), False),
        (ToolFailed("t", "ticket not found"), False),
        (Unreachable("agent is not a member of this board"), False),
    ],
)
async def test_what_calls_for_another_join(error: CentralError, needed: bool) -> None:
    assert needs_rejoin(error) is needed


# --- seats that nobody uses yet ----------------------------------------------------------------------------------------


async def test_an_introduction_takes_nothing_over_and_is_not_kept(seats: Seats, pool: ScriptedPool) -> None:
    assert await seats.introduce(ANN.request, ask_first=False) == ANN
    assert pool.joined[-1]["allow_takeover"] is False
    assert (pool.asked, seats.users(ANN)) == (["ann joins as model"], 0)
    await seats.join(ANN.request, "c-1")
    assert len(joins(pool)) == 2


async def test_a_board_that_may_not_exist_is_asked_for_before_an_introduction(seats: Seats, pool: ScriptedPool) -> None:
    await seats.introduce(ANN.request, ask_first=True)
    assert pool.asked == ["board b", "ann joins as model"]


async def test_an_introduction_is_sent_once(seats: Seats, pool: ScriptedPool) -> None:
    pool.errors = [Unreachable("cut"), Unreachable("cut")]
    with pytest.raises(Unreachable):
        await seats.introduce(ANN.request, ask_first=False)
    assert len(pool.errors) == 1


async def test_an_introduction_that_takes_too_long(
    seats: Seats, pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "JOIN_TIMEOUT", 0.01)
    pool.go = anyio.Event()
    with pytest.raises(Unreachable, match="did not answer the join of b"):
        await seats.introduce(ANN.request, ask_first=False)


async def test_an_introduction_is_taken_back(seats: Seats, pool: ScriptedPool) -> None:
    await seats.withdraw(await seats.introduce(ANN.request, ask_first=False))
    assert pool.asked[-1] == "ann retires"
