"""Questions to the human at the host outlive what happens between question and answer, and Central is answered once."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from mcp.server.request_state import AESGCMRequestStateCodec

from pursersd.state.keyring import Keyring
from rig.central import Central
from rig.daemon import Home
from rig.link import Link
from rig.proxy import Proxy
from rig.shim import BRIDGE, RpcError, ShimProcess, ToolError
from rig.wait import until
from system.host import FORMS, LATER, MANY, NO, ONE, SCOPE, YES, LegacyHost, ModernHost, Office
from system.scene import PATIENCE, Json, ask
from system.test_secrets import outputs


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """One home for all of these tests; who needs a daemon and finds none starts it."""
    with Home() as home:
        home.start_daemon()
        yield home


@pytest.fixture
def office(central: Central, home: Home, board: str, proxy: Proxy) -> Iterator[Office]:
    yield Office(central, home, board, proxy.url)
    home.end_shims()
    Path(home.place.starts).unlink(missing_ok=True)  # the next test's crashes are its own


FIFTY = 50


def restart(office: Office, how: str) -> None:
    if how == "crash":
        office.crash()
    else:
        assert office.home.ctl("restart").returncode == 0


def accepted(result: Json, question: Json) -> None:
    named = {"board": question["board_id"], "ticket_id": question["ticket_id"], "request_id": question["request_id"]}
    assert result["resolved"] == [{**named, "action": "accept", "disposition": "reopen"}]
    assert result["ok"] is True


@pytest.mark.parametrize("how", ["crash", "restart"])
def test_a_form_of_the_newer_era_is_answered_to_the_next_daemon(office: Office, how: str) -> None:
    host, question = office.modern(), office.ask()
    asked = host.asked(ONE, question)
    many = host.asked(MANY, {"boards": [office.board]})
    restart(office, how)
    accepted(host.respond(ONE, question, asked, YES).result(PATIENCE)["structuredContent"], question)
    # The other round asks the same question; it is answered already.
    (error,) = host.respond(MANY, {"boards": [office.board]}, many, YES).result(PATIENCE)["structuredContent"]["errors"]
    assert error["error"] == "human request is not pending"
    assert office.answers() == 1


@pytest.mark.parametrize(("how", "tool"), [("crash", ONE), ("forced restart", MANY)])
def test_a_form_of_the_older_era_is_taken_back_and_shown_again_by_the_next_daemon(
    office: Office, how: str, tool: str
) -> None:
    host, question = office.legacy(), office.ask()
    call = host.call(tool, **(question if tool == ONE else {"boards": [office.board]}))
    first = host.question()
    if how == "crash":
        office.crash()
    else:  # the daemon would give the human some time first
        daemon = office.home.daemon_pid()
        os.kill(daemon, signal.SIGTERM)
        # Two signals at once may arrive as one.
        until(lambda: ask(office.home, "status")["daemon"]["state"] == "draining", PATIENCE, "the daemon leaves")
        os.kill(daemon, signal.SIGTERM)
    second = host.question()
    assert second["params"] == first["params"]
    assert second["id"] != first["id"]
    assert host.taken_back() == [first["id"]]
    host.respond(first, NO)  # a host that did not hear of it
    assert office.answers() == 0
    host.respond(second, YES)
    accepted(call.result(PATIENCE), question)
    host.respond(second, NO)
    assert host.shim.request("ping") == {}
    assert len(host.shim.answers(call.id)) == 1
    resolution = office.resolution(question)
    assert resolution is not None
    assert (resolution["action"], resolution["content"], office.answers()) == ("accept", {"colour": "red"}, 1)


def test_what_the_human_said_to_an_earlier_daemon_is_in_the_result(office: Office) -> None:
    """The older era asks one by one; the daemon dies while the last of four forms is open."""
    host, questions = office.legacy(), [office.ask() for _ in range(4)]
    call = host.call(MANY, boards=[office.board])
    shown = sorted(questions, key=lambda question: str(question["ticket_id"]))
    for said in (YES, NO, LATER):
        host.respond(host.question(), said)
    host.question()
    office.crash()
    host.respond(host.question(), NO)  # who wanted to be asked later is asked again
    last = host.question()
    office.act("ticket_human_resolve", shown[3]["ticket_id"], request_id=shown[3]["request_id"], action="decline")
    office.crash()
    result = call.result(PATIENCE)
    assert [(x["ticket_id"], x["action"], x["disposition"]) for x in result["resolved"]] == [
        (shown[0]["ticket_id"], "accept", "reopen"),
        (shown[1]["ticket_id"], "decline", "park"),
        (shown[2]["ticket_id"], "decline", "park"),
    ]
    assert [(x["ticket_id"], x["error"]) for x in result["errors"]] == [
        (shown[3]["ticket_id"], "human request is not pending")
    ]
    assert (result["ok"], result["mode"], result["deferred"], result["unasked"]) == (False, "legacy", [], [])
    assert last["id"] in host.taken_back()
    assert office.answers() == 3, "each of ours once"


def test_a_daemon_that_leaves_in_order_lets_the_human_finish(office: Office) -> None:
    """Also if the answer and the news of the leave cross."""
    host, question = office.legacy(), office.ask()
    call = host.call(ONE, **question)
    form = host.question()
    os.kill(host.shim.pid, signal.SIGSTOP)
    os.kill(office.home.daemon_pid(), signal.SIGTERM)
    until(lambda: ask(office.home, "status")["daemon"]["state"] == "draining", PATIENCE, "the daemon leaves")
    host.respond(form, YES)
    os.kill(host.shim.pid, signal.SIGCONT)
    accepted(call.result(PATIENCE), question)
    assert host.taken_back() == []


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_an_answer_that_central_has_and_nobody_heard_of_is_not_given_twice(
    office: Office, proxy: Proxy, era: str
) -> None:
    question = office.ask()
    proxy.cut_after("ticket_human_resolve")
    if era == "legacy":
        host = office.legacy()
        call = host.call(ONE, **question)
        host.respond(host.question(), YES)
        found = call.result(PATIENCE)
    else:
        modern = office.modern()
        found = modern.respond(ONE, question, modern.asked(ONE, question), YES).result(PATIENCE)["structuredContent"]
    accepted(found, question)
    assert found["result"]["duplicate"] is True
    assert found["result"]["ticket"]["status"] == "open"
    assert (office.answers(), proxy.count("ticket_human_resolve")) == (1, 1)


def lost_with_the_daemon(office: Office, proxy: Proxy) -> None:
    """The answer is at Central; then the daemon dies before it hears of it."""
    until(lambda: proxy.count("ticket_human_resolve"), PATIENCE, "the answer is on its way to Central")
    until(office.answers, PATIENCE, "Central has the answer")
    until(lambda: proxy.holding("ticket_get"), PATIENCE, "the daemon looks what became of it")
    office.crash()
    proxy.release("ticket_get")


def test_a_form_of_the_older_era_whose_answer_was_lost_with_the_daemon_is_not_shown_again(
    office: Office, proxy: Proxy
) -> None:
    host, question = office.legacy(), office.ask()
    call = host.call(ONE, **question)
    form = host.question()
    proxy.cut_after("ticket_human_resolve")
    proxy.hold("ticket_get")
    host.respond(form, YES)
    lost_with_the_daemon(office, proxy)
    found = call.result(PATIENCE)
    accepted(found, question)
    assert found["result"]["duplicate"] is True
    assert office.answers() == 1
    assert [x for x in host.shim.received if x.get("method") == "elicitation/create"] == [form]


@pytest.mark.parametrize("tool", [ONE, MANY, "answer"])
def test_a_second_round_whose_answer_was_lost_with_the_daemon_ends_in_that_answer(
    office: Office, proxy: Proxy, tool: str
) -> None:
    host, question = office.modern(), office.ask()
    if tool == "answer":
        given = {"ticket_id": question["ticket_id"], "action": "accept", "content": {"colour": "red"}}
        arguments: Json = {"boards": [office.board], "answer": given}
    else:
        arguments = question if tool == ONE else {"boards": [office.board]}
        asked = host.asked(tool, arguments)
    proxy.cut_after("ticket_human_resolve")
    proxy.hold("ticket_get" if tool != ONE else "nothing")
    if tool == ONE:
        # Its look before asking is a ticket_get, too: hold only the one after the answer.
        proxy.hold("ticket_human_resolve")
        call = host.respond(tool, arguments, asked, YES)
        until(lambda: proxy.holding("ticket_human_resolve"), PATIENCE, "the answer is on its way to Central")
        proxy.hold("ticket_get")
        proxy.release("ticket_human_resolve")
    elif tool == MANY:
        call = host.respond(tool, arguments, asked, YES)
    else:
        call = host.call(MANY, arguments)
    lost_with_the_daemon(office, proxy)
    found = call.result(PATIENCE)["structuredContent"]
    assert [(x["ticket_id"], x["action"]) for x in found["resolved"]] == [(question["ticket_id"], "accept")]
    assert found["ok"] is True
    assert office.answers() == 1


def test_an_answer_of_somebody_else_that_came_in_between_stands(office: Office) -> None:
    host, question = office.legacy(), office.ask()
    call = host.call(ONE, **question)
    host.question()
    office.crash()
    office.act("ticket_human_resolve", question["ticket_id"], request_id=question["request_id"], action="decline")
    with pytest.raises(ToolError, match=f"no pending human request found for {office.board}/"):
        call.result(PATIENCE)
    resolution = office.resolution(question)
    assert resolution is not None
    assert resolution["action"] == "decline"


def test_an_answer_that_may_have_come_and_cannot_be_looked_up_is_unknown(office: Office, proxy: Proxy) -> None:
    secret = "a-word-that-is-nobodys-business"
    host, question = office.modern(), office.ask()
    given = {"ticket_id": question["ticket_id"], "action": "accept", "content": {"colour": secret}}
    proxy.cut_after("ticket_human_resolve")
    proxy.hold("ticket_get")
    call = host.call(MANY, {"boards": [office.board], "answer": given})
    until(lambda: proxy.holding("ticket_get"), PATIENCE, "the daemon looks what became of it")
    office.act("ticket_request_human", question["ticket_id"], message="Again?", kind="decision")
    proxy.release("ticket_get")
    result = call.result(PATIENCE)
    error = result["structuredContent"]["error"]
    assert (result["isError"], error["code"]) == (True, "outcome_unknown")
    assert error["target"] == {"boards": [office.board], "answer.ticket_id": question["ticket_id"]}
    assert secret not in json.dumps(result)
    assert office.answers() == 1


@pytest.mark.parametrize("tool", [ONE, MANY])
def test_ten_rounds_of_one_question(office: Office, tool: str) -> None:
    host, question = office.modern(), office.ask()
    arguments = question if tool == ONE else {"boards": [office.board]}
    asked = host.asked(tool, arguments)
    states = {asked["requestState"]}
    for number in range(9):
        if number == 4:
            office.crash()
        following = host.asked(tool, arguments, inputResponses={}, requestState=asked["requestState"])
        assert following["inputRequests"] == asked["inputRequests"]
        states.add(following["requestState"])
        asked = following
    assert len(states) == 10
    accepted(host.respond(tool, arguments, asked, YES).result(PATIENCE)["structuredContent"], question)


def write_keys(office: Office, *keys: str) -> None:
    fresh = office.keys.with_suffix(".fresh")
    fresh.write_text("\n".join(keys) + "\n")
    fresh.chmod(0o600)
    fresh.replace(office.keys)


def test_keys_are_rotated_with_rounds_open_and_without_a_restart(office: Office) -> None:
    host = office.modern()

    def opened() -> tuple[Json, Json]:
        question = office.ask()
        return question, host.asked(ONE, question)

    def finish(question: Json, asked: Json) -> None:
        accepted(host.respond(ONE, question, asked, YES).result(PATIENCE)["structuredContent"], question)

    first, forgotten = opened(), opened()
    old, new = office.keys.read_text().strip(), "n" * 43
    assert office.keys.stat().st_mode & 0o777 == 0o600
    write_keys(office, old, new)
    finish(*first)
    second = opened()
    write_keys(office, new, old)
    finish(*second)
    third = opened()
    write_keys(office, new)
    finish(*third)
    with pytest.raises(RpcError) as refused:
        finish(*forgotten)
    assert (refused.value.code, refused.value.message) == (-32602, "Invalid or expired requestState")
    assert refused.value.data == {"reason": "invalid_request_state"}
    assert office.answers() == 3


def test_keys_that_cannot_be_used_are_named_before_anybody_is_asked(office: Office) -> None:
    host, question = office.modern(), office.ask()
    asked = host.asked(ONE, question)
    office.keys.chmod(0o644)
    for tool, arguments in ((ONE, question), (MANY, {"boards": [office.board]})):
        result = host.call(tool, arguments).result(PATIENCE)
        assert result["isError"]
        (shown,) = result["content"]
        assert f"request-state key file permissions must be 0600: see {office.keys}. Correct" in shown["text"]
    with pytest.raises(RpcError) as refused:
        host.respond(ONE, question, asked, YES).result(PATIENCE)
    assert refused.value.code == -32602
    office.keys.chmod(0o600)
    accepted(host.respond(ONE, question, asked, YES).result(PATIENCE)["structuredContent"], question)


def test_no_key_is_made_for_who_is_not_asked(office: Office) -> None:
    host, question = office.modern(), office.ask()
    with pytest.raises(RpcError) as refused:
        host.call(ONE, question, capabilities={}).result(PATIENCE)
    assert refused.value.code == -32021
    listed = host.call(MANY, {"boards": [office.board]}, capabilities={}).result(PATIENCE)["structuredContent"]
    assert listed["elicitation_declared"] is False
    assert not office.keys.exists()


def test_a_state_that_expired_is_refused(office: Office) -> None:
    host, question = office.modern(), office.ask()
    asked = host.asked(ONE, question)
    codec = AESGCMRequestStateCodec(Keyring(str(office.keys)).load())
    claims = json.loads(codec.unseal(asked["requestState"]))
    assert 3590 < claims["exp"] - time.time() <= 3600
    assert claims["aud"] == "Pursers Wait Bridge"
    late = codec.seal(json.dumps({**claims, "iat": time.time() - 3601, "exp": time.time() - 1}).encode())
    with pytest.raises(RpcError) as refused:
        host.respond(ONE, question, {**asked, "requestState": late}, YES).result(PATIENCE)
    assert (refused.value.code, refused.value.message) == (-32602, "Invalid or expired requestState")
    assert office.answers() == 0


def bridge(office: Office) -> ModernHost[ShimProcess]:
    return ModernHost(ShimProcess([BRIDGE], office.environment))


def test_what_the_bridge_asked_is_answered_to_us_and_what_we_asked_to_the_bridge(office: Office) -> None:
    ours, theirs = office.modern(), bridge(office)
    try:
        for asking, answering in ((theirs, ours), (ours, theirs)):
            for tool in (ONE, MANY):
                question = office.ask()
                arguments = question if tool == ONE else {"boards": [office.board]}
                asked = asking.asked(tool, arguments)
                accepted(answering.respond(tool, arguments, asked, YES).result(PATIENCE)["structuredContent"], question)
    finally:
        theirs.shim.close()
    assert office.answers() == 4


def test_a_question_of_another_board_is_answered_from_a_seat_that_never_joined_it(
    central: Central, home: Home, board: str
) -> None:
    other = f"{board}-other"
    central.create_board(other)
    here, there = Office(central, home, board, central.url), Office(central, home, other, central.url)
    here.environment["ONBOARD_CENTRAL_TOKEN"] = central.mint("cora", SCOPE)
    question = there.ask()
    host = here.modern()
    asked = host.asked(ONE, question)
    accepted(host.respond(ONE, question, asked, YES).result(PATIENCE)["structuredContent"], question)
    again = there.ask()
    given = {"ticket_id": again["ticket_id"], "action": "decline"}
    found = host.call(MANY, {"boards": [board, other], "answer": given}).result(PATIENCE)["structuredContent"]
    assert found["resolved"][0]["board_id"] == other
    home.end_shims()


def test_ten_questions_to_one_human(office: Office) -> None:
    host = office.legacy()
    for said, action in [(YES, "accept"), (NO, "decline"), (LATER, None)] * 3 + [(YES, "accept")]:
        question = office.ask()
        call = host.call(ONE, **question)
        host.respond(host.question(), said)
        assert [x["action"] for x in call.result(PATIENCE)["resolved"]] == ([action] if action else [])
        if action is None:
            office.act("ticket_cancel", question["ticket_id"], reason="asked later")
    assert office.answers() == 7


def test_the_humans_of_fifty_conversations_answer_at_once_each_its_own_question(office: Office) -> None:
    """Half of them in each era; the forms are all open before the first one is answered."""
    office.modern()  # there is a daemon
    questions = [office.ask(f"Question {number}?") for number in range(FIFTY)]

    def said(number: int) -> Json:
        return {"action": "accept", "content": {"colour": f"answer {number}", "disposition": "reopen"}}

    with ExitStack() as links:
        opened = [links.enter_context(Link(office.home.place.socket, office.environment)) for _ in questions]
        older = [(number, LegacyHost(opened[number])) for number in range(0, FIFTY, 2)]
        newer = [(number, ModernHost(opened[number])) for number in range(1, FIFTY, 2)]
        calls = {number: host.call(ONE, **questions[number]) for number, host in older}
        first = {number: host.call(ONE, questions[number]) for number, host in newer}
        forms = {number: host.question() for number, host in older}
        asked = {number: call.result(PATIENCE) for number, call in first.items()}
        for number, form in forms.items():
            assert f"Question {number}?" in form["params"]["message"]
        for number, host in older:
            host.respond(forms[number], said(number))
        second = {number: host.respond(ONE, questions[number], asked[number], said(number)) for number, host in newer}
        for number, question in enumerate(questions):
            found = calls[number].result(PATIENCE) if number in calls else second[number].result(PATIENCE)
            accepted(found.get("structuredContent", found), question)
    for number, question in enumerate(questions):
        resolution = office.resolution(question)
        assert resolution is not None
        assert resolution["content"] == {"colour": f"answer {number}"}


def test_a_call_that_the_host_cancels_takes_the_form_back(office: Office) -> None:
    host, question = office.legacy(), office.ask()
    call = host.call(ONE, **question)
    form = host.question()
    host.shim.cancel(call.id)
    until(lambda: host.taken_back() == [form["id"]], PATIENCE, "the form is taken back")
    office.crash()  # the next daemon asks nobody, and the form is not taken back twice
    assert host.shim.request("ping") == {}
    host.respond(form, YES)
    assert host.shim.request("ping") == {}
    assert host.taken_back() == [form["id"]]
    assert (host.shim.answers(call.id), office.answers()) == ([], 0)


def test_forms_that_were_lost_are_counted(office: Office) -> None:
    def counted() -> int:
        windows = {window["counter"]: window["count"] for window in ask(office.home, "status")["lossy_windows"]}
        return int(windows["forms_cancelled"])

    host = office.legacy()
    host.call(ONE, **office.ask())
    host.question()
    before = counted()
    host.shim.close()
    until(lambda: counted() == before + 1, PATIENCE, "the form is counted")


def test_what_a_human_says_is_nowhere_but_at_central(central: Central, board: str) -> None:
    with Home() as home:
        home.start_daemon("--verbose")
        look_for_what_a_human_says(Office(central, home, board, central.url))


def look_for_what_a_human_says(office: Office) -> None:
    secret = "a-word-that-is-nobodys-business"
    legacy, modern = office.legacy(), office.modern()
    boards = {"boards": [office.board]}
    good = {"colour": secret, "disposition": "reopen"}
    for content in (good, {**good, "disposition": secret}, {"other": secret}):
        said = {"action": "accept", "content": content}
        question = office.ask()
        modern.respond(MANY, boards, modern.asked(MANY, boards), said).message(PATIENCE)
        question = office.ask()
        modern.respond(ONE, question, modern.asked(ONE, question), said).message(PATIENCE)
        question = office.ask()
        call = legacy.call(ONE, **question)
        legacy.respond(legacy.question(), said)
        call.message(PATIENCE)
        given = {"ticket_id": question["ticket_id"], "action": "accept", "content": content}
        modern.call(MANY, {**boards, "answer": given}).message(PATIENCE)
        modern.call(MANY, {**boards, "answer": secret}).message(PATIENCE)
    office.ask()
    call = legacy.call(MANY, **boards)
    while not call.done:
        legacy.respond(legacy.question(), {"action": [secret], "content": 5})
        until(lambda: call.done or legacy.is_asked, PATIENCE, "the next question or the end")
    assert secret not in json.dumps(call.message())
    assert office.answers() > 0
    for where, text in outputs(office.home, [legacy.shim, modern.shim]):
        assert secret.encode() not in text, where


def test_a_form_goes_only_to_a_host_that_declared_it_for_this_call(office: Office) -> None:
    host, question = office.modern(), office.ask()
    boards = {"boards": [office.board]}
    for capabilities, declared in ((FORMS, True), ({}, False), (FORMS, True), ({"elicitation": {"url": {}}}, False)):
        result = host.call(MANY, boards, capabilities=capabilities).result(PATIENCE)
        assert ("inputRequests" in result) is declared
    silent = office.home.shim(office.environment)
    silent.initialize()
    listed = silent.call_tool(MANY, boards)
    assert [x["ticket_id"] for x in listed["pending"]] == [question["ticket_id"]]
    with pytest.raises(RpcError) as refused:
        silent.call_tool(ONE, question)
    assert refused.value.code == -32021
    assert not [x for x in silent.received if x.get("method") == "elicitation/create"]


def test_where_the_keys_are_by_default(central: Central, home: Home, board: str) -> None:
    central.admit(board, "cora")
    token = central.mint("cora", SCOPE, board)
    office = Office(central, home, board, central.url)
    office.environment = home.environment(central.url, token, board, "cora", role="coordinator")
    office.modern().asked(ONE, office.ask())
    assert Path(home.folder, "state", "request-state.keys").exists()
    home.end_shims()


def test_what_was_answered_before_central_went_away_is_told(office: Office, proxy: Proxy) -> None:
    host, questions = office.legacy(), [office.ask(), office.ask()]
    call = host.call(MANY, boards=[office.board])
    host.respond(host.question(), NO)
    second = host.question()
    proxy.refuse()
    proxy.reset_all()
    host.respond(second, NO)
    found = call.result(PATIENCE)
    proxy.refuse(False)
    told = {x["ticket_id"] for part in ("resolved", "errors") for x in found[part]}
    assert told == {question["ticket_id"] for question in questions}
    assert (len(found["resolved"]), found["ok"]) == (1, False)
    assert "Central is unreachable" in found["errors"][0]["error"]
