"""A lease's life through the real daemon and shim: claimed by a model elsewhere, kept, paused, resumed, taken, submitted."""

import inspect
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from rig.central import Central
from rig.daemon import Home
from rig.proxy import Proxy
from rig.shim import ShimProcess
from rig.wait import until
from system.model import Model, reap, renewals, set_ttl, ticket
from system.scene import PATIENCE, Caller, Converse, Json, rows, until_blocking, until_listed
from system.test_crash import crash

TTL = 4
AT_ONCE = 6
SHORT = {"PURSERS_KEEPALIVE_IDLE_LIMIT_S": "1"}
FAILED = ["kind", "source", "board_id", "ticket_id", "lease_kind", "error"]
PAUSED = ["kind", "source", "board_id", "ticket_id", "lease_kind", "reason", "idle_limit_s"]


class Models:
    """Makes models with the credential of a scene."""

    def __init__(self, central: Central, board: str, token: str) -> None:
        self._central, self._board, self._token = central, board, token

    def __call__(self, name: str) -> Model:
        return Model(self._central, self._board, self._token, name)


SCENARIOS: dict[str, Callable[..., None]] = {}


def scenario(function: Callable[..., None]) -> Callable[..., None]:
    """Played with the parts of a scene that it names: central, home, board, converse, models, proxy."""
    SCENARIOS[function.__name__] = function
    return function


def play(central: Central, function: Callable[..., None]) -> None:
    """A scenario on a board and in a home of its own."""
    board = f"leases-{list(SCENARIOS).index(function.__name__)}"
    central.create_board(board)
    set_ttl(central, board, TTL)
    token = central.worker("ann", board)
    with Home() as home, Proxy(central.port) as proxy:

        def converse(agent: str, url: str | None = None, **environment: str) -> ShimProcess:
            shim = home.shim(home.environment(url or central.url, token, board, agent, extra=environment))
            shim.initialize()
            return shim

        scene = {
            "central": central,
            "home": home,
            "board": board,
            "converse": converse,
            "models": Models(central, board, token),
            "proxy": proxy,
        }
        function(**{name: scene[name] for name in inspect.signature(function).parameters})


@pytest.fixture(scope="module")
def played(central: Central, request: pytest.FixtureRequest) -> Iterator[dict[str, Future[None]]]:
    """All collected scenarios, some at a time: most of their time they wait for leases."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    names = [item.callspec.params["name"] for item in items if item.originalname == test_a_lease.__name__]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        yield {name: threads.submit(play, central, SCENARIOS[name]) for name in names}


def wait(shim: ShimProcess, timeout_s: int = 1, **arguments: object) -> Json:
    """A wait that returns soon."""
    result = shim.call_tool("a2a_wait", {"timeout_s": timeout_s, **arguments})
    assert result["mode"] != "error", result
    return result


def found(shim: ShimProcess, **arguments: object) -> None:
    """A wait sees what is held, however slow everything is; a look may come after the model has gone idle."""
    assert wait(shim, 3, **arguments)["new_seq"] is not None, "it entered"


def cues(result: Json) -> list[Json]:
    """What a result tells of leases."""
    return [event for event in result["events"] if event.get("source") == "bridge_keepalive"]


def leases(home: Home, shim: ShimProcess) -> dict[str, str]:
    """The state of each lease of a conversation, by its ticket."""
    (row,) = [row for row in rows(home) if row["shim_pid"] == shim.pid]
    return {lease["ticket"]: lease["state"] for lease in row["leases"]}


def until_state(home: Home, shim: ShimProcess, expected: dict[str, str]) -> None:
    until(lambda: leases(home, shim) == expected, PATIENCE, f"its leases are {expected}")


@scenario
def fifty_leases_on_a_slow_central_stay_alive_and_others_get_their_turn(
    central: Central, home: Home, board: str, converse: Converse, models: Models, proxy: Proxy
) -> None:
    set_ttl(central, board, 30)
    shims = {f"seat{number}": converse(f"seat{number}", url=proxy.url) for number in range(5)}
    work: dict[str, str] = {}
    for name, shim in shims.items():
        wait(shim)
        for _ in range(10):
            made = central.create_ticket(board, "one of fifty")
            models(name).claim(made)
            work[made] = name
    until(lambda: sum(len(row["leases"]) for row in rows(home)) == 50, 2 * PATIENCE, "all are found")
    proxy.delay(0.03)
    before = proxy.mark()
    sent: Counter[str] = Counter()

    def renewed() -> bool:
        sent.clear()
        sent.update(seen.arguments["ticket_id"] for seen in proxy.seen("lease_renew", before))
        return work.keys() <= sent.keys()

    until(renewed, 3 * PATIENCE, "each lease was renewed")
    reap(central, board)
    listed = central.call(central.admin, "ticket_list", board_id=board, status="claimed", limit=500, view="work")
    assert {row["ticket_id"]: row["claimed_by"] for row in listed["tickets"]} == work
    names = proxy.names(before)
    assert names["board_join"] == 0
    assert names["ticket_list"] + names["board_status"] < names["lease_renew"]
    assert wait(shims["seat0"])["mode"] != "error", "a call in the middle of it is served"


@scenario
def a_claimed_ticket_is_kept_past_several_ttls_and_recorded_as_keepalive(
    central: Central, home: Home, board: str, converse: Converse, models: Models
) -> None:
    shim = converse("kept")
    wait(shim)
    work = central.create_ticket(board, "to keep")
    models("kept").claim(work)
    before = ticket(central, board, work)
    assert before["lease_renewal_source"] == "model"
    seen = renewals(central, board, work, 4)
    assert {lease["renewal_source"] for lease in seen} == {"keepalive"}
    assert len({lease["keepalive_only_since"] for lease in seen}) == 1
    assert {lease["last_model_renewed_at"] for lease in seen} == {before["lease_last_model_renewed_at"]}
    (row,) = rows(home)
    (lease,) = row["leases"]
    assert (lease["board"], lease["ticket"], lease["kind"], lease["state"]) == (board, work, "work", "kept")
    assert 0 < lease["left_s"] <= TTL


@scenario
def leases_outlive_a_sigkill_of_the_daemon_without_a_call_of_the_model(
    central: Central, home: Home, board: str, converse: Converse, models: Models
) -> None:
    """One conversation is in a wait, the other one's model works; both models are silent meanwhile."""
    set_ttl(central, board, 12)
    works, waits = converse("works"), Caller(converse("waits"))
    wait(works)
    wait(waits.shim)
    mine, theirs = (central.create_ticket(board, title) for title in ("of the one that works", "of the one that waits"))
    models("works").claim(mine)
    models("waits").claim(theirs)
    waits.cursor = central.head(board)
    waits.arm()
    until_state(home, works, {mine: "kept"})
    until_state(home, waits.shim, {theirs: "kept"})
    stamps = [ticket(central, board, each)["lease_last_model_renewed_at"] for each in (mine, theirs)]
    crash(home)
    until_listed(home, 2)
    for each, stamp in zip((mine, theirs), stamps, strict=True):
        last = renewals(central, board, each, 2)[-1]
        assert (last["renewal_source"], last["last_model_renewed_at"]) == ("keepalive", stamp)
    assert leases(home, works) == {mine: "kept"}
    assert waits.wait is not None
    assert not waits.wait.done, "nothing was told"


@scenario
def idle_pauses_with_one_cue_and_a_tool_call_resumes(
    central: Central, home: Home, board: str, converse: Converse, models: Models, proxy: Proxy
) -> None:
    set_ttl(central, board, 8)
    shim = converse("idler", url=proxy.url, **SHORT)
    wait(shim)
    work = central.create_ticket(board, "left alone")
    models("idler").claim(work)
    found(shim)
    until_state(home, shim, {work: "paused"})
    before = proxy.mark()
    result = wait(shim, 20)
    (cue,) = cues(result)
    assert list(cue) == PAUSED
    assert cue == {
        "kind": "lease_keepalive_paused",
        "source": "bridge_keepalive",
        "board_id": board,
        "ticket_id": work,
        "lease_kind": "work",
        "reason": "keepalive paused: model idle",
        "idle_limit_s": 1.0,
    }
    assert (result["reason"], result["mode"], result["waited_s"]) == ("journal", "push", 0.0)
    assert result["new_seq"] == central.head(board), "the real cursor, although the caller gave none"
    until_state(home, shim, {work: "kept"})
    until(lambda: proxy.count("lease_renew", before), PATIENCE, "renewed again")
    asked = [seen.name for seen in proxy.seen(None, before) if seen.name in ("ticket_list", "lease_renew")]
    assert asked.index("ticket_list") < asked.index("lease_renew"), "first it is asked who holds it"
    assert ticket(central, board, work)["claimed_by"] == "idler"
    assert cues(wait(shim)) == [], "told once"


@scenario
def a_paused_lease_lapses_and_is_not_renewed_by_a_call_that_comes_too_late(
    central: Central, home: Home, board: str, converse: Converse, models: Models, proxy: Proxy
) -> None:
    shim = converse("late", url=proxy.url, **SHORT)
    wait(shim)
    work = central.create_ticket(board, "to lapse")
    models("late").claim(work)
    found(shim)
    until_state(home, shim, {work: "paused"})
    before = proxy.mark()

    def lapsed() -> bool:
        reap(central, board)
        return bool(ticket(central, board, work)["status"] == "open")

    until(lapsed, PATIENCE, "the ticket is open again")
    assert proxy.count("lease_renew", before) == 0
    told = wait(shim, 20)["events"]
    assert next(event["kind"] for event in told if event["ticket_id"] == work) == "lease_keepalive_paused"
    until_state(home, shim, {})
    assert proxy.count("lease_renew", before) == 0
    assert cues(wait(shim)) == [], "the pause was told, its end is in the journal"


@scenario
def a_ticket_that_another_agent_of_the_credential_holds_is_not_renewed_and_wakes_the_wait(
    central: Central, home: Home, board: str, converse: Converse, models: Models, proxy: Proxy
) -> None:
    """Central would renew it: it looks at the credential, not at the agent."""
    shim = converse("former", url=proxy.url)
    wait(shim)
    work = central.create_ticket(board, "to take over")
    models("former").claim(work)
    until_state(home, shim, {work: "kept"})
    pending = shim.start_tool("a2a_wait", {"timeout_s": 60, "since_seq": central.head(board)})
    until_blocking(home, 1)
    daemon = home.daemon_pid()
    os.kill(daemon, signal.SIGSTOP)  # what a machine that sleeps looks like from outside
    try:
        heir = models("heir")
        heir.central.call(heir._token, "board_join", board_id=board, agent_name="heir", allow_takeover=True)
        models("former").do("ticket_unclaim", work)
        heir.claim(work)
        before = proxy.mark()
    finally:
        os.kill(daemon, signal.SIGCONT)
    (cue,) = pending.result(PATIENCE)["events"]
    assert list(cue) == FAILED
    assert cue["kind"] == "lease_keepalive_failed"
    assert (cue["board_id"], cue["ticket_id"], cue["lease_kind"]) == (board, work, "work")
    assert "released or reassigned" in cue["error"]
    assert proxy.count("lease_renew", before) == 0
    assert leases(home, shim) == {}


@scenario
def a_submitted_ticket_is_let_go_without_a_word(
    central: Central, home: Home, board: str, converse: Converse, models: Models, proxy: Proxy
) -> None:
    shim = converse("diligent", url=proxy.url)
    wait(shim)
    work = central.create_ticket(board, "to submit")
    models("diligent").claim(work)
    renewals(central, board, work, 1)
    models("diligent").submit(work)
    until_state(home, shim, {})
    before = proxy.mark()
    assert cues(wait(shim, 3)) == []
    assert proxy.count("lease_renew", before) == 0


@scenario
def a_review_lease_is_kept_and_let_go_like_one_for_work(
    central: Central, home: Home, board: str, models: Models
) -> None:
    models("author").central.call(models("author")._token, "board_join", board_id=board, agent_name="author")
    work = central.create_ticket(board, "to review")
    models("author").claim(work)
    models("author").submit(work)
    token = central.reviewer("cleo-reviews", board)
    shim = home.shim(home.environment(central.url, token, board, "reviewer", role="reviewer"))
    shim.initialize()
    wait(shim)
    reviewer = Model(central, board, token, "reviewer")
    reviewer.do("ticket_review_claim", work)
    stamp = ticket(central, board, work)["review_lease"]["last_model_renewed_at"]
    seen = renewals(central, board, work, 3, review=True)
    assert {lease["renewal_source"] for lease in seen} == {"keepalive"}
    assert {lease["last_model_renewed_at"] for lease in seen} == {stamp}
    (row,) = rows(home)
    assert [(lease["ticket"], lease["kind"]) for lease in row["leases"]] == [(work, "review")]
    reviewer.do("ticket_review_release", work, reason="not my field")
    until_state(home, shim, {})
    assert cues(wait(shim)) == []


@scenario
def a_shared_seats_lease_lives_as_long_as_one_of_its_conversations(
    central: Central, home: Home, board: str, converse: Converse, models: Models, proxy: Proxy
) -> None:
    leaver, stayer = converse("shared", url=proxy.url), converse("shared", url=proxy.url)
    wait(leaver)
    wait(stayer)
    work = central.create_ticket(board, "of both")
    models("shared").claim(work)
    renewals(central, board, work, 1)
    leaver.close()
    until_listed(home, 1)
    renewals(central, board, work, 2)
    stayer.close()
    until(lambda: rows(home) == [], PATIENCE, "nobody is left")
    before = proxy.mark()

    def lapsed() -> bool:
        reap(central, board)
        return bool(ticket(central, board, work)["status"] == "open")

    until(lapsed, PATIENCE, "nobody keeps it")
    assert proxy.count("lease_renew", before) == 0


@scenario
def of_two_conversations_on_a_seat_the_one_that_was_given_the_ticket_keeps_it(
    central: Central, home: Home, board: str, converse: Converse, models: Models
) -> None:
    given, other = Caller(converse("twin", **SHORT)), converse("twin")
    wait(other)
    given.arm()
    until_blocking(home, 1)
    work = central.create_ticket(board, "for the one that waits")
    assert [event["ticket_id"] for event in given.take()["events"]] == [work]
    models("twin").claim(work)
    found(given.shim)
    until_state(home, given.shim, {work: "paused"})
    assert leases(home, other) == {}, "it is not its own, however busy it is"
    assert cues(wait(other)) == []
    (cue,) = cues(wait(given.shim, 20))
    assert cue["kind"] == "lease_keepalive_paused"


@scenario
def a_cue_is_told_to_the_identity_that_it_is_about(
    central: Central, home: Home, board: str, converse: Converse, models: Models
) -> None:
    set_ttl(central, board, 5)
    shim = converse("first", **SHORT)
    wait(shim)
    wait(shim, agent_name="second")
    mine, theirs = (central.create_ticket(board, title) for title in ("of the first", "of the second"))
    models("first").claim(mine)
    models("second").claim(theirs)
    found(shim)
    found(shim, agent_name="second")
    until_state(home, shim, {mine: "paused", theirs: "paused"})
    assert [cue["ticket_id"] for cue in cues(wait(shim, 20))] == [mine]
    assert [cue["ticket_id"] for cue in cues(wait(shim, 20, agent_name="second", boards=[board]))] == [theirs]
    assert cues(wait(shim)) == []


@scenario
def a_claim_beside_a_running_wait_is_found(
    central: Central, home: Home, board: str, converse: Converse, models: Models
) -> None:
    """Some hosts let the model work while a wait runs in the background."""
    set_ttl(central, board, 6)
    shim = converse("both", PURSERS_BACKLOG_SCAN_INTERVAL_S="1")
    wait(shim)
    work = central.create_ticket(board, "claimed meanwhile")
    elsewhere = {"project": "another", "timeout_s": 60, "since_seq": central.head(board)}
    pending = shim.start_tool("a2a_wait", elsewhere)  # for which the open ticket is no work
    until_blocking(home, 1)
    models("both").claim(work)
    until_state(home, shim, {work: "kept"})
    renewals(central, board, work, 1)
    assert not pending.done


@scenario
def another_ttl_counts_from_the_moment_it_is_set(
    central: Central, home: Home, board: str, converse: Converse, models: Models
) -> None:
    set_ttl(central, board, 600)
    shim = converse("observer")
    work = central.create_ticket(board, "for long")
    models("observer").central.call(models("observer")._token, "board_join", board_id=board, agent_name="observer")
    models("observer").claim(work)
    pending = shim.start_tool("a2a_wait", {"timeout_s": 60, "since_seq": central.head(board)})
    until_blocking(home, 1)
    until_state(home, shim, {work: "kept"})
    set_ttl(central, board, TTL)
    assert renewals(central, board, work, 3)[-1]["ttl_s"] == TTL
    assert not pending.done


def capabilities(central: Central, board: str, name: str) -> Json:
    agents = central.call(central.admin, "board_status", board_id=board)["agents"]
    found: Json = next(agent["capabilities"] for agent in agents if agent["agent_name"] == name)
    return found


@scenario
def a_codex_seat_takes_no_work_while_idle_and_does_not_flap(
    central: Central, home: Home, board: str, converse: Converse, proxy: Proxy
) -> None:
    declared = {"PURSERS_CAN_WORK": "true", "PURSERS_HOST": "codex", "PURSERS_TIER_MAX": "3"}
    idler, busy = (converse("codex", url=proxy.url, **declared, **SHORT) for _ in range(2))
    wait(idler)
    pending = busy.start_tool("a2a_wait", {"timeout_s": 2, "since_seq": central.head(board)})
    until_blocking(home, 1)
    joins = proxy.count("board_join")
    assert pending.result(PATIENCE)["timed_out"]
    assert proxy.count("board_join") == joins, "the other conversation of the seat was at work"
    until(lambda: not capabilities(central, board, "codex")["can_work"], PATIENCE, "it takes no work")
    assert not capabilities(central, board, "codex")["can_review"]
    assert capabilities(central, board, "codex")["tier_max"] == 3
    assert proxy.count("board_join") == joins + 1
    wait(idler)
    until(lambda: capabilities(central, board, "codex")["can_work"], PATIENCE, "it takes work again")
    assert proxy.count("board_join") >= joins + 2


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_lease(played: dict[str, Future[None]], name: str) -> None:
    played[name].result()
