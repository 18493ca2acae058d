"""conversation/requests: what is known of a request over all links, and what is due once its answer is delivered."""

import pytest

from pursersd.conversation import requests as module
from pursersd.conversation.requests import Requests
from pursersd.ids import RequestId


async def due() -> None:
    """What a test waits for to become due."""


async def other() -> None:
    """Another one."""


def answer(requests: Requests, host: RequestId, acknowledge: module.Acknowledge = due) -> None:
    requests.begin(host, host, None)
    requests.acknowledge_when_delivered(host, acknowledge)
    requests.end(host, answered=True)


@pytest.mark.parametrize(("host", "own"), [(1, "pursers-1"), ("1", "pursers-1"), (1, "1"), ("1", 1), (1, 1)])
def test_the_server_asks_by_its_own_id_and_the_shim_tells_by_the_hosts(host: RequestId, own: RequestId) -> None:
    requests = Requests()
    requests.begin(host, own, 4.5)
    assert requests.age_s(own) == 4.5
    assert requests.name(own) == (host, 0)
    requests.acknowledge_when_delivered(own, due)
    assert requests.take_due(host) is None  # it has no answer yet
    requests.end(own, answered=True)
    assert requests.take_due(host) is due
    assert requests.take_due(host) is None


def test_a_request_is_resent_only_if_the_shim_said_so() -> None:
    requests = Requests()
    requests.begin(1, 1, 0.0)
    requests.begin(2, 2, None)
    assert [requests.was_sent_before(own) for own in (1, 2, 3)] == [True, False, False]
    assert [requests.age_s(own) for own in (1, 2, 3)] == [0.0, 0.0, 0.0]


def test_what_was_cancelled_is_never_due() -> None:
    requests = Requests()
    requests.begin(1, 1, None)
    requests.acknowledge_when_delivered(1, due)
    requests.cancelled(1)
    requests.end(1, answered=False)
    answer(requests, 2)
    requests.cancelled(2)  # its answer was on its way, and the shim drops it
    assert requests.take_due(1) is None
    assert requests.take_due(2) is None


def test_a_lost_answer_is_not_acknowledged_for_the_one_that_follows() -> None:
    """The events of the first answer never reached the host."""
    first = Requests()
    answer(first, 1)
    second = first.next_link()
    second.begin(1, 1, 2.0)
    second.end(1, answered=True)  # an error this time
    assert second.take_due(1) is None


def test_an_answer_may_be_reported_on_the_next_link() -> None:
    first = Requests()
    answer(first, 1)
    second = first.next_link()
    assert second.take_due(1) is due


def test_what_an_old_link_still_does_does_not_touch_the_new_one() -> None:
    first = Requests()
    first.begin(1, 1, None)
    second = first.next_link()
    second.begin(1, 1, 3.0)
    second.acknowledge_when_delivered(1, other)
    first.end(1, answered=False)
    assert second.age_s(1) == 3.0
    second.end(1, answered=True)
    assert second.take_due(1) is other


def test_a_resent_request_has_the_same_name_and_a_new_one_with_its_id_another() -> None:
    first = Requests()
    first.begin(1, 1, None)
    first.end(1, answered=True)
    second = first.next_link()
    second.begin(1, 1, 5.0)  # its answer was lost
    assert second.name(1) == (1, 0)
    second.end(1, answered=True)
    second.begin(1, 1, None)
    assert second.name(1) == (1, 1)
    second.begin("1", "x", None)
    assert second.name("x") == ("1", 0)


def test_what_nobody_asks_for_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 3)
    requests = Requests()
    for number in range(5):
        answer(requests, number)
    assert [requests.take_due(number) for number in range(5)] == [None, None, due, due, due]
    requests.begin(0, 0, 1.0)
    assert requests.name(0) == (0, 0)


def test_ids_that_make_no_difference_later_are_not_kept() -> None:
    """A host gives each request a new id: what waits for months must not collect them."""
    requests = Requests()
    for number in range(100):
        answer(requests, number)
        requests.take_due(number)
    requests.begin(100, 100, None)
    requests.cancelled(100)
    requests.end(100, answered=False)
    assert repr(requests) == "<Requests 0 running, 0 undelivered, 0 ids>"


def test_ids_of_which_keys_were_made_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 3)
    requests = Requests()
    for number in range(5):
        requests.begin(number, number, None)
        assert requests.name(number) == (number, 0)
        requests.end(number, answered=True)
    assert repr(requests) == "<Requests 0 running, 0 undelivered, 3 ids>"
    requests.begin(4, 4, None)
    assert requests.name(4) == (4, 1), "another question with the id of an earlier one has a key of its own"


def test_an_id_whose_answer_may_come_to_nothing_is_kept() -> None:
    """The link was lost before the call made its key: with the next link it is still the same request."""
    first = Requests()
    first.begin(1, 1, None)
    assert first.name(1) == (1, 0)
    first.end(1, answered=True)
    first.begin(1, 1, None)
    first.end(1, answered=False)
    second = first.next_link()
    second.begin(1, 1, 0.5)
    assert second.name(1) == (1, 1)


def test_a_cancelled_request_does_not_take_the_id_of_the_one_that_follows() -> None:
    requests = Requests()
    requests.begin(1, 1, None)
    requests.cancelled(1)
    requests.begin(1, "pursers-1", None)
    requests.end(1, answered=False)
    assert requests.name("pursers-1") == (1, 1)


# --- answers that never arrived -----------------------------------------------------------------------------------------


def answered(requests: Requests, lost: list[RequestId]) -> None:
    """An answer to request 1 that is on its way; `lost` tells when it turns out that it will not arrive."""
    requests.begin(1, 1, None)
    requests.withdraw_when_lost(1, lambda: lost.append(1))
    requests.end(1, answered=True, is_call=True)


def test_an_answer_that_is_asked_for_again_was_lost() -> None:
    lost: list[RequestId] = []
    first = Requests()
    answered(first, lost)
    second = first.next_link()
    assert lost == []
    second.begin(1, 1, 2.0)
    assert lost == [1]


@pytest.mark.parametrize("how", ["delivered", "used again", "cancelled", "never sent"])
def test_when_an_answer_counts_as_lost(how: str) -> None:
    lost: list[RequestId] = []
    requests = Requests()
    if how == "never sent":
        requests.begin(1, 1, None)
        requests.withdraw_when_lost(1, lambda: lost.append(1))
        requests.end(1, answered=False)
    else:
        answered(requests, lost)
    match how:
        case "delivered":
            requests.take_due(1)
            requests.cancelled(1)  # too late
        case "used again":
            requests.begin(1, 1, None)
        case "cancelled":
            requests.cancelled(1)
    assert lost == ([] if how in ("delivered", "used again") else [1])


def test_what_was_sent_before_the_first_link_was_sent_to_another_daemon() -> None:
    first = Requests().next_link()
    first.begin(1, 1, 0.0)
    first.begin(2, 2, None)
    second = first.next_link()
    second.begin(1, 1, 3.0)
    assert (first.began_elsewhere(1), first.began_elsewhere(2), second.began_elsewhere(1)) == (True, False, False)
