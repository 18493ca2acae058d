"""Coordinator questions among real processes: four principals, lost answers, a daemon that dies, a token that is replaced."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pursers_shim.dial import reserve_start
from rig.central import ADMIN_SEAT, Central
from rig.daemon import Home
from rig.doors import Issuer, token_of
from rig.link import Link
from rig.proxy import Proxy
from rig.shim import Pending, ShimProcess, ToolError
from rig.wait import until
from system.asking import (
    ROLES,
    SCOPES,
    WAIT_S,
    Company,
    answer,
    ask,
    await_answer,
    await_question,
    taken,
)
from system.scene import PATIENCE, Json, rows, until_blocking, until_listed, until_quiet
from system.scene import ask as ask_daemon

ASK, ANSWER = "ticket_question_ask", "ticket_question_answer"


@pytest.fixture
def company(central: Central, home: Home, board: str) -> Company:
    home.start_daemon("--verbose")
    return Company(central, home, board)


@pytest.fixture
def far(central: Central, home: Home, board: str, proxy: Proxy) -> Company:
    """One that reaches Central through the fault proxy."""
    return Company(central, home, board, proxy.url)


def test_each_role_asks_and_answers_with_a_principal_of_its_own(company: Company) -> None:
    shims = {name: company.shim(name) for name in ROLES}
    of_ann, of_rex = company.held("for ann"), company.held("for rex")
    company.act("ann", "ticket_submit", ticket_id=of_rex, summary="Done.")
    company.seat("rex")
    company.act("rex", "ticket_review_claim", ticket_id=of_rex)
    head = company.central.head(company.board)
    arrival = await_question(shims["cora"], head)
    asked = {name: ask(shims[name], ticket) for name, ticket in (("ann", of_ann), ("rex", of_rex))}
    assert {name: found["question"]["asker_role"] for name, found in asked.items()} == {
        "ann": "worker",
        "rex": "reviewer",
    }
    first = taken(arrival)
    second = taken(await_question(shims["cora"], first["new_seq"]))
    assert [found["event"]["seq"] for found in (first, second)] == [a["event"]["seq"] for a in asked.values()]
    waits = {
        name: await_answer(shims[name], ticket, asked[name]["question_id"], head)
        for name, ticket in (("ann", of_ann), ("rex", of_rex))
    }
    until_blocking(company.home, 2)
    # A read that is under way for another reason could bring the answers before their cues do.
    until_quiet(lambda: sum(one["requests"] for one in ask_daemon(company.home, "status")["centrals"]))
    streams = [one["streams"] for one in ask_daemon(company.home, "status")["centrals"] if one["seats_listening"]]
    assert streams == [2, 2, 2], "the waits have none of their own, and cora's and theirs are three credentials"
    for found in (first, second):
        question = found["question"]
        answer(shims["cora"], question["ticket_id"], question["question_id"], f"Yes, {question['asker_role']}.")
    assert {name: taken(wait)["question"]["answer"] for name, wait in waits.items()} == {
        "ann": "Yes, worker.",
        "rex": "Yes, reviewer.",
    }
    assert_seen(company.home)
    made = company.central.create_ticket(company.board, "for whoever comes")
    digest = shims["lea"].call_tool("board_digest")
    assert (digest["data_status"], [ticket["ticket_id"] for ticket in digest["new_tickets"]]) == ("current", [made])
    for name, tool, role in (
        ("lea", ASK, "reviewer or worker"),
        ("lea", "board_question_inbox", "coordinator"),
        ("ann", "board_question_inbox", "coordinator"),
        ("cora", ASK, "reviewer or worker"),
    ):
        given = {"ticket_id": of_ann, "message": "?", "kind": "decision"} if tool == ASK else {}
        with pytest.raises(ToolError, match=f"requires role {role}$"):
            shims[name].call_tool(tool, given)


def assert_seen(home: Home) -> None:
    """Question waits count among what `ps`, `top` and `metrics` show of waits."""
    seen = {row["seat"]: (row["wakes"], row["lag"] is not None) for row in rows(home) if row["wakes"]}
    assert seen == {"ann": (1, True), "rex": (1, True), "cora": (2, True)}
    latency = {(row["kind"], row["tool"]): row for row in ask_daemon(home, "status")["latency"]}
    assert latency["wait", "ticket_question_wait"]["count"] == 2
    assert latency["wait", "board_question_wait"]["count"] == 2
    wake = latency["wake", "ticket_question_wait"]
    assert wake["count"] == 2
    assert 0 < wake["p50_s"] <= wake["max_s"] <= latency["wait", "ticket_question_wait"]["max_s"]


def test_waits_on_a_quiet_board_cost_no_request(far: Company, proxy: Proxy) -> None:
    often = {"PURSERS_BACKLOG_SCAN_INTERVAL_S": "0.02"}
    ann, cora = far.shim("ann", **often), far.shim("cora", **often)
    start_waits(far, ann, cora)

    until(lambda: min(row["since_s"] for row in rows(far.home)) > 2, PATIENCE, "a hundred looks at the ticket")
    assert proxy.count("ticket_get") <= 5, "one at the entry, and one for each stream that was opened since"
    assert proxy.count("board_question_inbox") == 1


def start_waits(company: Company, ann: ShimProcess, cora: ShimProcess) -> tuple[Json, Pending[Json], Pending[Json]]:
    """ann waits for an answer to her question, cora for the next question; both block."""
    asked = ask(ann, company.held("first"))
    asked["ticket_id"] = asked["event"]["ticket_id"]
    seq = asked["event"]["seq"]
    reply = await_answer(ann, asked["ticket_id"], asked["question_id"], seq)
    arrival = await_question(cora, company.central.head(company.board))
    until_blocking(company.home, 2)
    return asked, reply, arrival


def assert_both_end(
    company: Company, cora: ShimProcess, asked: Json, reply: Pending[Json], arrival: Pending[Json]
) -> None:
    """The very waits that were begun bring the next question and the answer."""
    found = taken(arrival)
    assert found["event"]["kind"] == "coordinator_question_asked"
    answer(cora, asked["ticket_id"], asked["question_id"], "Go on.")
    assert taken(reply)["question"]["answer"] == "Go on."
    assert len(company.told("coordinator_question_answered")) == 1


def test_both_waits_go_on_with_the_next_daemon(company: Company) -> None:
    ann, cora = company.shim("ann"), company.shim("cora")
    asked, reply, arrival = start_waits(company, ann, cora)
    held = reserve_start(company.home.place)  # no daemon can be started while we hold this
    assert held is not None
    victim = company.home.daemon_pid()
    os.kill(victim, signal.SIGKILL)
    until(lambda: victim not in {p.pid for p in company.home.daemons()}, PATIENCE, "the daemon is gone")
    question = company.asked(company.held("without a daemon", "ann"), "And this?")
    os.close(held)
    until_listed(company.home, 2)
    assert_both_end(company, cora, asked, reply, arrival)
    for shim, wait in ((ann, reply), (cora, arrival)):
        assert len(shim.answers(wait.id)) == 1
    assert arrival.result()["question"]["question_id"] == question


def test_both_waits_go_on_with_the_token_that_replaced_theirs(company: Company, tmp_path: Path) -> None:
    issuer = Issuer(company.central)

    def replace(verb: str) -> None:
        """Both get a token of the same key; with `rotate` of a new one, and those of the old one are refused."""
        for name in ("ann", "cora"):
            door = issuer.named(company.board, name, SCOPES[name], verb=verb if name == "ann" else "issue")
            company.tokens[name] = token_of(door)
            (tmp_path / name).write_text(company.tokens[name])
        company.own("cora")

    replace("issue")
    ann, cora = (company.shim(name, ONBOARD_CENTRAL_TOKEN_FILE=str(tmp_path / name)) for name in ("ann", "cora"))
    asked, reply, arrival = start_waits(company, ann, cora)
    before = {central["credential"] for central in ask_daemon(company.home, "status")["centrals"]}
    replace("rotate")
    company.asked(company.held("with the next token"), "And this?")
    assert_both_end(company, cora, asked, reply, arrival)
    after = {central["credential"] for central in ask_daemon(company.home, "status")["centrals"]}
    assert len(before | after) == 4, "both have another one"


def test_a_question_whose_answer_is_lost_is_asked_once(far: Company, proxy: Proxy) -> None:
    ann, ticket = far.shim("ann"), far.held("once")
    proxy.cut_after(ASK)
    found = ask(ann, ticket)
    assert found["duplicate"], "Central had it already"
    assert proxy.count(ASK) == 2
    (question,) = far.questions(ticket)
    assert question["question_id"] == found["question_id"]
    ask(ann, ticket)
    assert len(far.questions(ticket)) == 2, "who asks again asks again"


def test_an_answer_whose_answer_is_lost_is_given_once(far: Company, proxy: Proxy) -> None:
    cora, ticket = far.shim("cora"), far.held("once")
    question = far.asked(ticket)
    accept = {"ticket_id": ticket, "question_id": question, "action": "accept"}
    for act, kind in (
        (lambda: cora.call_tool(ANSWER, accept), "coordinator_question_accepted"),
        (lambda: answer(cora, ticket, question, "Yes."), "coordinator_question_answered"),
    ):
        before = proxy.mark()
        proxy.cut_after(ANSWER)
        assert act()["duplicate"]
        assert proxy.count(ANSWER, before) == 1
        assert len(far.told(kind)) == 1
    (stored,) = far.questions(ticket)
    assert stored["answer"] == "Yes."


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_question_of_a_daemon_that_dies_is_asked_once(far: Company, proxy: Proxy, carried_out: bool) -> None:
    ann, ticket = far.shim("ann"), far.held("once")
    proxy.hold(ASK)
    call = ann.start_tool(ASK, {"ticket_id": ticket, "message": "May I?", "kind": "decision"})
    until(lambda: proxy.holding(ASK), PATIENCE, "the question is on its way")
    daemon = far.home.daemon_pid()
    if carried_out:  # and the daemon is never told
        os.kill(daemon, signal.SIGSTOP)
        proxy.release(ASK)
        until(lambda: far.questions(ticket), PATIENCE, "Central has the question")
    os.kill(daemon, signal.SIGKILL)
    if not carried_out:
        proxy.release(ASK)
    found = call.result(PATIENCE)
    assert len(ann.answers(call.id)) == 1
    (question,) = far.questions(ticket)
    assert question["question_id"] == found["question_id"]
    assert len(proxy.seen(ASK)) == 2
    assert len({seen.arguments["message_id"] for seen in proxy.seen(ASK)}) == 1


def test_a_question_is_found_again_when_what_allowed_it_is_over(far: Company, proxy: Proxy) -> None:
    """Central would refuse the repetition: the ticket was canceled meanwhile."""
    ann, ticket = far.shim("ann"), far.held("once")
    proxy.hold(ASK)
    call = ann.start_tool(ASK, {"ticket_id": ticket, "message": "May I?", "kind": "decision"})
    until(lambda: proxy.holding(ASK), PATIENCE, "the question is on its way")
    daemon = far.home.daemon_pid()
    os.kill(daemon, signal.SIGSTOP)
    proxy.release(ASK)
    (question,) = until(lambda: far.questions(ticket), PATIENCE, "Central has the question")
    far.act(ADMIN_SEAT, "ticket_cancel", ticket_id=ticket, reason="not needed")
    os.kill(daemon, signal.SIGKILL)
    found = call.result(PATIENCE)
    assert (found["ok"], found["duplicate"], found["question_id"]) == (True, True, question["question_id"])
    assert found["question"]["message"] == "May I?"
    assert proxy.count(ASK) == 2


BOARDS, ASKERS = 5, 9


class Office:
    """Of one board: conversations that ask about one ticket, and its coordinator."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.names = [f"ann-{number}" for number in range(ASKERS)]
        self.ticket = company.central.create_ticket(company.board, "of all")
        company.promote("ann")  # so that each seat of hers may ask about it
        self._head = company.central.head(company.board)

    def ask(self, agent: str) -> str:
        """Ask and wait; returns the answer."""
        with self._link("ann", agent) as ann:
            asked = ask(ann, self.ticket, self.message(agent))
            found = taken(await_answer(ann, self.ticket, asked["question_id"], asked["event"]["seq"]), WAIT_S)
            assert found["question"]["question_id"] == asked["question_id"]
            return str(found["question"]["answer"])

    def answer(self) -> None:
        """Answer the questions as they come."""
        cursor = self._head
        with self._link("cora", "cora") as cora:
            for _ in self.names:
                found = taken(await_question(cora, cursor), WAIT_S)
                cursor, question = found["new_seq"], found["question"]
                answer(cora, question["ticket_id"], question["question_id"], f"for {question['message']}")

    def message(self, agent: str) -> str:
        return f"{self.company.board} {agent}"

    def _link(self, name: str, agent: str) -> Link:
        company = self.company
        environment = company.home.environment(company.url, company.tokens[name], company.board, agent, ROLES[name])
        link = Link(company.home.place.socket, environment)
        link.initialize()
        return link


def test_fifty_conversations_at_once_get_their_own_answers(central: Central, home: Home, board: str) -> None:
    home.start_daemon()
    offices = []
    for number in range(BOARDS):
        central.create_board(f"{board}-{number}")
        offices.append(Office(Company(central, home, f"{board}-{number}")))
    with ThreadPoolExecutor(BOARDS * (ASKERS + 1)) as threads:
        answering = [threads.submit(office.answer) for office in offices]
        asking = {office.message(name): threads.submit(office.ask, name) for office in offices for name in office.names}
        for message, found in asking.items():
            assert found.result() == f"for {message}"
        for done in answering:
            done.result()
    for office in offices:
        stored = office.company.questions(office.ticket)
        assert {question["message"] for question in stored} == {office.message(name) for name in office.names}
        assert len(stored) == ASKERS
