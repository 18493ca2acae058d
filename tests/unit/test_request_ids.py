"""conversation/request_ids: the server never confuses two requests of a host, and the host gets its own ids back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.dispatcher import coerce_request_id
from mcp_types import JSONRPCNotification

from pursersd.conversation.request_ids import RequestIds
from pursersd.ids import RequestId


def cancel(request: object) -> JSONRPCNotification:
    return JSONRPCNotification(
        jsonrpc="2.0", method="notifications/cancelled", params={"requestId": request, "reason": "why"}
    )


def cancelled(ids: RequestIds, request: object) -> object:
    """The id in the cancellation that the server gets; AssertionError if it gets none."""
    message = ids.translate_cancel(cancel(request))
    assert message is not None
    assert message.params is not None
    assert message.params["reason"] == "why"
    return message.params["requestId"]


@pytest.mark.parametrize("host", [0, 1, -7, 2**60, "", "1", "01", "é", "pursers-1"])
def test_a_request_on_its_own_keeps_its_id(host: RequestId) -> None:
    ids = RequestIds()
    own = ids.assign(host)
    assert own == host
    assert type(own) is type(host)
    assert ids.release(own) == host


@pytest.mark.parametrize(
    ("first", "second"),
    [(1, "1"), ("1", 1), (1, "01"), ("1", "+1"), (1, " 1 "), (10, "1_0"), (1, 1), ("a", "a"), (1, "١")],
)
def test_ids_that_the_server_would_confuse_are_kept_apart(first: RequestId, second: RequestId) -> None:
    ids = RequestIds()
    one, two = ids.assign(first), ids.assign(second)
    assert coerce_request_id(one) != coerce_request_id(two)
    for own, host in ((two, second), (one, first)):
        released = ids.release(own)
        assert released == host
        assert type(released) is type(host)


def test_an_id_may_be_used_again_after_its_answer() -> None:
    ids = RequestIds()
    ids.release(ids.assign(1))
    assert ids.assign("1") == "1"


def test_our_own_ids_may_collide_with_the_hosts() -> None:
    ids = RequestIds()
    taken = ids.assign("pursers-1")
    first, second = ids.assign(1), ids.assign("1")
    assert len({taken, first, second}) == 3
    assert [ids.release(own) for own in (second, first, taken)] == ["1", 1, "pursers-1"]


def test_a_cancellation_names_the_request_as_the_server_knows_it() -> None:
    ids = RequestIds()
    ids.assign(1)
    renamed = ids.assign("1")
    assert cancelled(ids, "1") == renamed
    assert cancelled(ids, 1) == 1


@pytest.mark.parametrize("unknown", ["1", "01", 2, True, 1.0, None, [1], {"a": 1}])
def test_a_cancellation_of_something_else_reaches_nobody(unknown: object) -> None:
    """The server takes "01" for 1 and would cancel the wrong request."""
    ids = RequestIds()
    ids.assign(1)
    assert ids.translate_cancel(cancel(unknown)) is None


@pytest.mark.parametrize("params", [None, {}, {"reason": "x"}])
def test_a_cancellation_without_an_id_reaches_nobody(params: dict[str, object] | None) -> None:
    ids = RequestIds()
    ids.assign(1)
    message = JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)
    assert ids.translate_cancel(message) is None


def test_a_cancelled_request_gets_no_answer_and_keeps_its_id_until_the_server_is_done_with_it() -> None:
    ids = RequestIds()
    ids.assign(1)
    cancelled(ids, 1)
    assert ids.translate_cancel(cancel(1)) is None
    later = ids.assign(1)
    assert later != 1
    assert ids.release(1) is None
    assert ids.release(later) == 1
    assert ids.assign("1") == "1"


def test_the_requests_in_progress_are_counted_with_their_bytes() -> None:
    ids = RequestIds()
    one, two = ids.assign(1, 10), ids.assign("a", 30)
    assert (len(ids), ids.size) == (2, 40)
    cancelled(ids, 1)
    assert (len(ids), ids.size) == (2, 40)
    ids.release(one)
    ids.release(two)
    ids.release("unknown")
    assert (len(ids), ids.size) == (0, 0)


IDS = st.one_of(st.integers(-2, 2), st.sampled_from(["", "a", "0", "1", "01", "2", "-1", "pursers-1", "pursers-2"]))


@settings(max_examples=200)
@given(st.lists(st.tuples(IDS, st.booleans()), max_size=12))
def test_whatever_a_host_sends_each_answer_finds_its_request(steps: list[tuple[RequestId, bool]]) -> None:
    ids = RequestIds()
    running: list[tuple[RequestId, RequestId]] = []
    for host, answered in steps:
        own = ids.assign(host)
        assert coerce_request_id(own) not in {coerce_request_id(other) for _, other in running}
        running.append((host, own))
        if answered:
            expected, own = running.pop(0)
            released = ids.release(own)
            assert (released, type(released)) == (expected, type(expected))
