"""What outlives a link: which lines are sent again, which answers pass, how long a request waits."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursers_shim.message import Notification, Request, read
from pursers_shim.resume import (
    EARLY_AFTER,
    HOPELESS_GRACE,
    RESUME_GRACE,
    START_GRACE,
    Patience,
    Pending,
    Resume,
)

NEVER = float("inf")
WELCOME: dict[str, object] = {"conversation": "c-9", "daemon_epoch": 4, "link_epoch": 2, "version": "x"}


def request(identity: object, method: str = "tools/call", **params: object) -> Request:
    line = {"jsonrpc": "2.0", "id": identity, "method": method} | ({"params": params} if params else {})
    message = read(json.dumps(line).encode())
    assert isinstance(message, Request)
    return message


def note(method: str, **params: object) -> Notification:
    message = read(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())
    assert isinstance(message, Notification)
    return message


def lines(resume: Resume, *, sent: bool = True) -> list[dict[str, object]]:
    """What a new link gets; `sent`: and takes."""
    found = list(resume.attach())
    for _, key in found:
        if sent and key is not None:
            resume.was_sent(key)
    return [json.loads(line) for line, _ in found]


def opened() -> Resume:
    """A conversation after its handshake, on a link."""
    resume = Resume()
    resume.add(request(0, "initialize", protocolVersion="2025-11-25"), 1.0)
    assert [line["method"] for line in lines(resume)] == ["initialize"]
    assert resume.answered("0", is_result=True)
    resume.note(note("notifications/initialized"))
    resume.welcomed(WELCOME)
    return resume


def idle_s(resume: Resume, now: float) -> object:
    said = resume.hello(now)
    assert said is not None
    return said["idle_s"]


def test_the_first_hello_resumes_nothing() -> None:
    resume = Resume()
    resume.add(request(0), 1.0)
    assert resume.hello(5.0) is None


def test_hello_lists_what_the_daemon_may_have_begun_with_its_age() -> None:
    resume = opened()
    for identity in (1, "1", 2):
        resume.add(request(identity), 10.0)
        line, key = resume.hand_over(json.dumps(identity))
        assert json.loads(line)["id"] == identity
        if identity != 2:
            resume.was_sent(key)
    resume.detach()
    resume.add(request(3), 12.0)
    assert resume.hello(12.5) == {
        "conversation": "c-9",
        "daemon_epoch": 4,
        "link_epoch": 2,
        "pending": [{"id": 1, "age_s": 2.5}, {"id": "1", "age_s": 2.5}],
        "idle_s": 0.0,
    }


def test_hello_says_how_long_the_model_has_been_silent() -> None:
    resume = opened()
    assert idle_s(resume, 5.0) is None, "a list of tools is no sign of life"
    resume.add(request(1), 10.0)
    assert idle_s(resume, 70.0) == 0.0, "a call runs"
    resume.answered("1", is_result=True)
    resume.delivered("1", 80.0)
    assert idle_s(resume, 82.5) == 2.5
    resume.add(request(2, "tools/list"), 90.0)
    assert idle_s(resume, 95.0) == 15.0


def test_a_new_link_gets_the_opening_then_the_pending_lines_in_order() -> None:
    resume = opened()
    for identity in (1, "1", 3):
        resume.add(request(identity), 2.0)
        resume.was_sent(resume.hand_over(json.dumps(identity))[1])
    resume.detach()
    assert resume.answered("3", is_result=True) is not None
    resume.note(note("notifications/roots/list_changed"))
    resume.add(request(4), 3.0)
    got = lines(resume)
    assert [line["method"] for line in got] == [
        "initialize",
        "notifications/initialized",
        "tools/call",
        "tools/call",
        "notifications/roots/list_changed",
        "tools/call",
    ]
    assert [line.get("id") for line in got[2:]] == [1, "1", None, 4]
    # The host has had its answer: the second one finds nobody.
    assert got[0]["params"] == {"protocolVersion": "2025-11-25"}
    assert resume.answered(json.dumps(got[0]["id"]), is_result=True) is None


def test_a_replay_does_not_take_the_answer_of_a_request_with_the_same_id() -> None:
    resume = opened()
    resume.add(request(0), 2.0)  # the id that initialize had
    resume.detach()
    replayed, _, again = lines(resume)
    assert again["id"] == 0
    assert resume.answered(json.dumps(replayed["id"]), is_result=True) is None
    pending = resume.answered("0", is_result=True)
    assert pending is not None
    assert pending.request.method == "tools/call"


def test_an_unanswered_initialize_is_sent_again_as_it_was_and_comes_first() -> None:
    resume = Resume()
    resume.add(request(5, "ping"), 1.0)
    resume.add(request(0, "initialize", protocolVersion="x"), 1.0)
    resume.note(note("notifications/initialized"))
    resume.add(request(1, "tools/list"), 1.0)
    for _ in range(2):
        assert [line["method"] for line in lines(resume)] == [
            "initialize",
            "notifications/initialized",
            "ping",
            "tools/list",
        ]
        resume.detach()
    pending = resume.answered("0", is_result=True)
    assert pending is not None
    assert resume.is_open


def test_a_refused_initialize_is_no_opening() -> None:
    # A connection of the modern era refuses it; replaying it would put the next one into the wrong era.
    resume = Resume()
    resume.add(request(0, "initialize"), 1.0)
    lines(resume)
    resume.answered("0", is_result=False)
    resume.note(note("notifications/initialized"))
    resume.detach()
    assert lines(resume) == []
    assert not resume.is_open


def test_each_answer_passes_once() -> None:
    resume = opened()
    resume.add(request(1), 1.0)
    resume.add(request("1"), 1.0)
    assert "1" in resume
    pending = resume.answered('"1"', is_result=True)
    assert pending is not None
    assert pending.request.id == "1"
    assert resume.answered('"1"', is_result=True) is None
    assert resume.answered("7", is_result=True) is None
    assert "1" in resume


def test_a_cancelled_request_is_gone_and_its_late_answer_goes_nowhere() -> None:
    resume = opened()
    resume.add(request(1), 1.0)
    resume.was_sent(resume.hand_over("1")[1])
    pending = resume.cancel("1")
    assert pending is not None
    assert pending.on_link
    assert resume.cancel("1") is None
    assert resume.answered("1", is_result=True) is None
    resume.detach()
    assert [line["method"] for line in lines(resume)] == ["initialize", "notifications/initialized"]


def test_what_was_cancelled_or_given_up_between_two_links_is_told_to_the_daemon() -> None:
    resume = opened()
    for identity in (1, 2, 3):
        resume.add(request(identity), 1.0)
    for key in ("1", "2"):
        resume.was_sent(resume.hand_over(key)[1])
    resume.detach()
    cancelled = resume.cancel("1")
    assert cancelled is not None
    assert not cancelled.on_link
    for pending in resume.pending():
        resume.give_up(pending)
    told = lines(resume)[2:]
    # 3 never left the shim.
    assert [line["method"] for line in told] == ["notifications/cancelled"] * 2
    assert [line["params"]["requestId"] for line in told if isinstance(line["params"], dict)] == [1, 2]
    resume.detach()
    assert len(lines(resume)) == 2


def test_a_cancellation_comes_before_a_later_request_of_the_same_id() -> None:
    resume = opened()
    resume.add(request(1), 1.0)
    resume.was_sent(resume.hand_over("1")[1])
    resume.detach()
    assert resume.cancel("1")
    resume.add(request(1), 2.0)
    assert [line["method"] for line in lines(resume)[2:]] == ["notifications/cancelled", "tools/call"]


def test_an_entry_that_the_link_took_only_in_part_counts_as_unsent() -> None:
    resume = opened()
    resume.add(request(1), 1.0)
    resume.hand_over("1")
    resume.detach()
    resume.was_sent("1")  # too late: that link is gone
    assert resume.hello(2.0) == {
        "conversation": "c-9",
        "daemon_epoch": 4,
        "link_epoch": 2,
        "pending": [],
        "idle_s": 0.0,
    }


def test_a_notification_goes_out_once() -> None:
    resume = opened()
    key = resume.note(note("notifications/progress", progress=1))
    assert key is not None
    resume.was_sent(resume.hand_over(key)[1])
    resume.detach()
    assert len(lines(resume)) == 2


def test_delivery_is_reported_until_a_link_has_taken_it() -> None:
    resume = opened()
    resume.delivered("1", 0.0)
    resume.delivered('"a"', 0.0)
    told = list(resume.reports())
    assert [json.loads(line) for line, _ in told] == [
        {"jsonrpc": "2.0", "method": "pursers/delivered", "params": {"id": 1}},
        {"jsonrpc": "2.0", "method": "pursers/delivered", "params": {"id": "a"}},
    ]
    assert list(resume.reports()) == []
    resume.was_sent(told[0][1])
    resume.detach()
    assert list(resume.reports()) == told[1:]
    resume.was_sent(told[1][1])
    resume.detach()
    assert list(resume.reports()) == []


@given(st.lists(st.tuples(st.sampled_from("acsdxng"), st.integers(0, 3)), max_size=60))
def test_the_byte_counts_are_those_of_the_table(steps: list[tuple[str, int]]) -> None:
    resume = Resume()
    for step, identity in steps:
        key = str(identity)
        if step == "a" and key not in resume:
            resume.add(request(identity, text="x" * identity), 1.0)
        elif step == "c":
            resume.cancel(key)
        elif step == "s" and key in resume:
            resume.was_sent(resume.hand_over(key)[1])
        elif step == "d":
            resume.detach()
        elif step == "x":
            resume.answered(key, is_result=True)
        elif step == "n":
            resume.note(note("notifications/progress"))
        elif step == "g":
            for pending in resume.pending():
                resume.give_up(pending)
    lines(resume)
    assert resume.unsent_bytes == 0
    for pending in resume.pending():
        resume.give_up(pending)
    assert resume.kept_bytes == 0


# --- patience ---


def waiting(method: str, arrived: float) -> Pending:
    return Pending(request(1, method), arrived)


@pytest.mark.parametrize("method", ["initialize", "server/discover", "ping", "tools/list"])
def test_the_opening_is_answered_early(method: str) -> None:
    patience = Patience(100.0)
    assert patience.early_at(waiting(method, 100.01)) == pytest.approx(100.0 + EARLY_AFTER)
    # The wait is spent once per outage.
    assert patience.early_at(waiting(method, 100.9)) == 100.9
    patience.down_since = None
    assert patience.early_at(waiting(method, 100.9)) == pytest.approx(100.9 + EARLY_AFTER)
    patience.is_alive = True
    assert patience.early_at(waiting(method, 100.9)) == NEVER


def test_nothing_else_is_answered_early() -> None:
    patience = Patience(100.0)
    assert patience.early_at(waiting("tools/call", 100.0)) == NEVER
    declined = waiting("tools/list", 100.0)
    declined.declined = True
    assert patience.early_at(declined) == NEVER


def test_a_request_waits_from_its_arrival_or_from_the_loss_that_it_saw() -> None:
    patience = Patience(100.0)
    assert patience.give_up_at(waiting("tools/call", 103.0)) == 103.0 + START_GRACE
    assert patience.give_up_at(waiting("tools/call", 99.0)) == 100.0 + RESUME_GRACE
    patience.is_hopeless = True
    assert patience.give_up_at(waiting("tools/call", 103.0)) == 103.0 + HOPELESS_GRACE
    assert patience.give_up_at(waiting("tools/call", 99.0)) == 100.0 + RESUME_GRACE


def test_while_another_daemon_is_promised_everybody_waits_as_long_as_who_saw_the_loss() -> None:
    patience = Patience(100.0)
    patience.is_promised = True
    assert patience.give_up_at(waiting("tools/call", 103.0)) == 100.0 + RESUME_GRACE
    assert patience.give_up_at(waiting("tools/call", 125.0)) == 125.0 + START_GRACE
    assert patience.give_up_at(waiting("tools/call", 99.0)) == 100.0 + RESUME_GRACE


def test_a_request_that_a_daemon_has_waits_for_ever() -> None:
    patience = Patience(100.0)
    patience.down_since = None
    assert patience.give_up_at(waiting("tools/call", 103.0)) == NEVER
