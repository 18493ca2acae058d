"""What the feed promises, for any interleaving of events, cues, page sizes, lost streams and calls, restarts and re-arms.

The real feed, seats and pool (and, for the conversations, the real engine of a2a_wait) run on an executable model of
Central in virtual time. Invented plays are performed; whoever waits in one is compared with what the model showed to its
seat. The plays are the same in every run; PURSERSD_EXAMPLES is how many each property gets.

* Who passes its cursor back gets what Central's own catchup shows its seat: once each, in order.
* Nobody gets what Central hides from its seat, whoever's page it came from (central.md §6.6).
* A broadcast to N equal waiters costs at most three reads, and silence none.
* Pushed and polled waits are both told in their time, whatever the streams do.
* A seat that waits is a member that listens, and no stream of ours keeps a Central from ending.
* The same of a2a_wait, with cursors and without: from the cursor that Central keeps, with acknowledgements that take long.
"""

import os
from random import Random

import anyio

from pursersd.feed.board import POLL
from unit.model_central import Delays, ModelCentral
from unit.model_chain import Chain, serving
from unit.model_conversation import Conversation
from unit.model_invention import DELAYS, QUICK, Kind, invented, shorter
from unit.model_play import REST, Check, Play, perform
from unit.virtual_time import run

EXAMPLES = int(os.environ.get("PURSERSD_EXAMPLES", "100"))

PUSHED_S = 0.75
"""In how many seconds a pushed wait is told when calls take 10 ms: a round of reads may be under way, another follows."""


def holds(kind: Kind, *checks: Check, share: float = 1.0) -> None:
    """Perform a share of the examples as plays of a kind. AssertionError with the shortest play that still fails."""
    for number in range(max(1, round(share * EXAMPLES))):
        if failure(invented(number, kind), checks) is not None:
            play = shorter(invented(number, kind), lambda play: failure(play, checks) is not None)
            raise AssertionError(f"play {number}: {failure(play, checks)}\n{play}")


def failure(play: Play, checks: tuple[Check, ...]) -> AssertionError | None:
    """What goes wrong in a play."""
    try:
        perform(play, *checks)
    except AssertionError as error:
        return error
    return None


def test_who_passes_its_cursor_back_is_told_everything_once_in_order() -> None:
    holds(Kind(), Chain.check_order, Chain.check_complete, Chain.check_rest, share=1.5)


def test_who_has_lost_its_place_in_the_journal_goes_on_from_its_end() -> None:
    holds(Kind(favourite="compact"), Chain.check_order, Chain.check_complete, Chain.check_rest)


def test_nobody_is_told_what_central_hides_from_its_seat() -> None:
    holds(Kind(page_rows=(1000, 1), paces=(0.0, 0.05)), Chain.check_private)


def test_a_seat_that_waits_is_a_member_that_listens_and_a_central_that_stops_is_let_go() -> None:
    holds(Kind(favourite="seat", faults=("journal", "agent", "reset", "outage")), Chain.check_live)


def test_pushed_and_polled_waits_are_told_in_time() -> None:
    def in_time(chain: Chain) -> None:
        chain.check_time(PUSHED_S, PUSHED_S + POLL)

    holds(Kind(faults=("agent",), delays=QUICK, page_rows=(1000,), paces=(0.0,)), in_time)


def test_a_wait_whose_stream_is_denied_is_told_in_the_time_of_a_polled_one() -> None:
    def in_time(chain: Chain) -> None:
        chain.check_time(PUSHED_S + POLL, PUSHED_S + POLL)

    holds(Kind(faults=("denial",), delays=QUICK, page_rows=(1000,), paces=(0.0,)), in_time, share=0.5)


def test_a_broadcast_to_equal_waiters_costs_at_most_three_reads_and_silence_none() -> None:
    """The cues of an event come together on each stream, as they do; how long each stream takes does not matter."""
    for number in range(EXAMPLES // 2):
        chance = Random(number)
        delays = Delays(*[(chance.choice(DELAYS),) for _ in range(3)])
        seats = [f"s{chance.randrange(9)}" for _ in range(chance.randint(2, 12))]
        acts = [chance.choice(["announce", "create"]) for _ in range(chance.randint(1, 3))]
        run(lambda seats=seats, acts=acts, delays=delays: _broadcasts(seats, acts, delays))


async def _broadcasts(seats: list[str], acts: list[str], delays: Delays) -> None:
    model = ModelCentral(delays)
    board = model.board("a", set(seats))
    async with serving(model) as central, anyio.create_task_group() as tasks:
        chains = [Chain(central, model, "a", seat, push=True, pace=0.0, tasks=tasks) for seat in seats]
        for chain in chains:
            chain.start()
        await anyio.sleep(REST)
        for act in acts:
            before = len(board.reads)
            getattr(board, act)("boss")
            await anyio.sleep(REST)
            assert len(board.reads) - before <= 3, f"{len(board.reads) - before} reads for {seats}: {act}, {delays}"
            assert {chain.cursor for chain in chains} == {board.head}
        before = len(board.reads)
        await anyio.sleep(10 * REST)
        assert len(board.reads) == before, f"there is nothing to read for {seats}"
        tasks.cancel_scope.cancel()


def test_conversations_with_a_cursor_are_told_all_that_is_for_them_once() -> None:
    holds(Kind("with a cursor", favourite="create"), Conversation.check, Conversation.check_rest, share=0.5)


def test_conversations_without_a_cursor_are_told_all_that_is_for_them_once() -> None:
    holds(Kind("without a cursor", favourite="create"), Conversation.check, Conversation.check_rest, share=0.4)
