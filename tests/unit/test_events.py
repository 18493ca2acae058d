"""events and differences: who is told what, bounded for each; what changed between two looks."""

from contextlib import ExitStack
from itertools import pairwise

import anyio
import msgspec
import pytest

from pursersd import api, events
from pursersd.api.events import CentralChanged, Change, LeaseChanged, Snapshot, WarningChanged, Went
from pursersd.differences import differences
from pursersd.events import Events, TooMany
from unit.ctl_samples import STATUS, seat

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def went(at: str, conversation: str = "c-1") -> Went:
    return Went(at=at, conversation=conversation, seat=None, board=None, host="zed", reason="the host ended")


async def test_nothing_is_made_while_nobody_listens() -> None:
    hub = Events()

    def never(at: str) -> Change:
        raise AssertionError

    hub.tell(never)
    with hub.listening():
        pass
    hub.tell(never)


async def test_everybody_is_told_in_order_and_once() -> None:
    hub = Events()
    with hub.listening() as one, hub.listening() as other:
        for name in ("c-1", "c-2"):
            hub.tell(lambda at, name=name: went(at, name))  # type: ignore[misc]
        for listener in (one, other):
            with anyio.fail_after(30):
                await listener.arrived()
            assert [change.conversation for change in listener.take()] == ["c-1", "c-2"]
            assert listener.take() == []


async def test_one_that_takes_nothing_is_slow_for_good_and_keeps_nothing() -> None:
    hub = Events()
    with hub.listening() as slow, hub.listening() as quick:
        for _ in range(events.MOST):
            hub.tell(went)
        assert not slow.is_slow
        quick.take()
        hub.tell(went)
        with anyio.fail_after(30):
            await slow.arrived()
        assert (slow.is_slow, slow.take()) == (True, [])
        hub.tell(went)
        assert slow.take() == []
        assert (quick.is_slow, len(quick.take())) == (False, 2)


async def test_there_is_an_end_to_listeners_and_their_places_come_back() -> None:
    hub = Events()
    for _ in range(3):
        with ExitStack() as listening:
            for _ in range(events.LISTENERS):
                listening.enter_context(hub.listening())
            with pytest.raises(TooMany, match="16 programs"), hub.listening():
                pass


LEASE = api.LeaseRow(board="b", ticket="TK-1", kind="work", state="kept", left_s=600.0)
WARNING = api.Warning(code="seat_shared", since_s=1.0, text="shared: by two", action="Look.")


def snapshot(at: str, **changes: object) -> Snapshot:
    fields: dict[str, object] = {"seats": [seat()], "centrals": STATUS.centrals[:1], "warnings": [], **changes}
    return Snapshot(at=at, version="1", epoch=1, **fields)  # type: ignore[arg-type]


def test_nothing_changes_when_only_times_do() -> None:
    before = snapshot("1", seats=[seat(leases=[LEASE])], warnings=[WARNING])
    later = msgspec.structs.replace(LEASE, left_s=1.0)
    now = snapshot("2", seats=[seat(leases=[later], age_s=9)], warnings=[msgspec.structs.replace(WARNING, since_s=9)])
    assert differences(before, now) == []


def test_a_lease_is_taken_up_paused_and_over() -> None:
    paused = msgspec.structs.replace(LEASE, state="paused")
    looks = [snapshot(str(n), seats=[seat(leases=leases)]) for n, leases in enumerate(([], [LEASE], [paused], []))]
    found = [change for before, now in pairwise(looks) for change in differences(before, now)]
    assert [(c.at, c.change, c.left_s) for c in found if isinstance(c, LeaseChanged)] == [
        ("1", "kept", 600.0),
        ("2", "paused", 600.0),
        ("3", "over", None),
    ]
    assert {(c.conversation, c.seat, c.ticket) for c in found} == {("c-000000000001", "bench-w1", "TK-1")}  # type: ignore[union-attr]


def test_a_warning_begins_and_is_over() -> None:
    without, having = snapshot("1"), snapshot("2", warnings=[WARNING])
    assert differences(without, having) == [WarningChanged(at="2", change="begun", warning=WARNING)]
    assert differences(having, without) == [WarningChanged(at="1", change="over", warning=WARNING)]


def test_a_central_is_used_lost_and_closed() -> None:
    central = STATUS.centrals[0]
    lost = msgspec.structs.replace(central, state="unreachable", detail="refused")
    looks = [snapshot(str(n), centrals=c) for n, c in enumerate(([], [central], [lost], []))]
    found = [change for before, now in pairwise(looks) for change in differences(before, now)]
    assert [(c.state, c.before, c.detail) for c in found if isinstance(c, CentralChanged)] == [
        ("ready", None, None),
        ("unreachable", "ready", "refused"),
        ("closed", "unreachable", None),
    ]
