"""The feed on a model of Central."""

import os
from dataclasses import dataclass
from itertools import combinations
from math import lcm
from typing import Any

import anyio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unit.model_central import Delays, ModelBoard, ModelCentral
from unit.model_chain import Chain, serving
from unit.virtual_time import run

PAUSES = (0.0, 0.0, 0.0, 0.001, 0.001, 0.002, 0.003, 0.004, 0.005, 0.01, 0.02, 0.04, 0.06, 0.1, 0.3, 3.0, 70.0)
DELAYS = (0.0, 0.001, 0.002, 0.003, 0.005, 0.01, 0.03, 0.1, 0.3)
SEATS = ("s0", "s1", "s2")
QUIET = 40.0

Step = tuple[Any, ...]
ACTORS = ("boss", *SEATS)


def table(*weighted: tuple[int, list[Step]]) -> st.SearchStrategy[Step]:
    """One of the steps, each list as often as its weight says."""
    period = lcm(*(len(steps) for _, steps in weighted))
    return st.sampled_from([step for weight, steps in weighted for step in steps * (weight * period // len(steps))])


SUBSETS = [told for size in (1, 2, 3) for told in combinations(SEATS, size)]
ACTS = table(
    (12, [("tell", actor, *told) for actor in ("boss", "boss", *SEATS) for told in SUBSETS]),
    (2, [("create", actor, assignee) for actor in ("boss", "s0") for assignee in (None, "s1", "s2")]),
    (2, [("claim", actor, number) for actor in ACTORS for number in range(2)]),
    (3, [(name, number) for name in ("unclaim", "lapse", "end_offer") for number in range(2)]),
    (2, [(name, actor, number) for name in ("finish", "annotate") for actor in ("boss", "s0") for number in range(2)]),
    (1, [("offer", number, seat) for number in range(2) for seat in SEATS]),
    (2, [(name, actor) for name in ("change_state", "whisper", "retire", "announce") for actor in ACTORS]),
    (1, [("rename", actor, seat) for actor in ("boss", "s0") for seat in SEATS]),
    (1, [("archive",)]),
)
FAULTS = table(
    (4, [(fault, part) for fault in ("cut", "overflow") for part in ("journal", "agent")]),
    (1, [("reset",)]),
    (2, [("down", mode) for mode in ("down", "refusing", "overloaded", "up", "up")]),
)
CALLERS = table((1, [(name, number) for name in ("stop", "start", "rearm", "rearm") for number in range(5)]))
BOARDS = st.sampled_from("aaaaaab")
KINDS = st.sampled_from(["act"] * 7 + ["fault"] * 2 + ["caller"] * 2)


@st.composite
def steps(draw):
    kind = draw(KINDS)
    if kind == "act":
        return (kind, draw(BOARDS), draw(ACTS))
    return (kind, draw(FAULTS if kind == "fault" else CALLERS))


STEPS = steps()
delays = st.lists(st.sampled_from(DELAYS), min_size=1, max_size=6)


@dataclass
class Play:
    chains: Any
    bursts: Any
    delays: Any
    page_rows: int
    dispatch: bool
    coordinates: bool


PLAYS = st.builds(
    Play,
    chains=st.lists(
        st.tuples(BOARDS, st.sampled_from(SEATS), st.sampled_from([True] * 7 + [False])), min_size=2, max_size=5
    ),
    bursts=st.lists(
        st.lists(st.tuples(st.sampled_from(PAUSES), STEPS), min_size=2, max_size=8), min_size=2, max_size=4
    ),
    delays=st.builds(Delays, calls=delays, journal=delays, seats=delays),
    page_rows=st.sampled_from([1000, 1, 2, 3]),
    dispatch=st.booleans(),
    coordinates=st.booleans(),
)


def act(board: ModelBoard, step: tuple[Any, ...]) -> None:
    name, *arguments = step
    if name in ("claim", "unclaim", "lapse", "finish", "annotate", "offer", "end_offer"):
        if not board.tickets:
            return
        ids = list(board.tickets)
        arguments = [ids[a % len(ids)] if isinstance(a, int) else a for a in arguments]
    arguments = [board.agent(a) if a in ("boss", *SEATS) else a for a in arguments]
    getattr(board, name)(*arguments)


async def play(p: Play) -> None:
    model = ModelCentral(Delays(p.delays.calls, p.delays.journal, p.delays.seats), coordinates=p.coordinates)
    for name in "ab":
        board = model.board(name, dispatch=p.dispatch)
        board.page_rows = p.page_rows
        for seat in SEATS:
            board.agent(seat)
    async with serving(model) as central, anyio.create_task_group() as tasks:
        chains = [Chain(central, model.boards[board], name, push) for board, name, push in p.chains]

        def start(chain):
            if chain.scope is None:
                chain.scope = anyio.CancelScope()
                tasks.start_soon(chain.run)

        for chain in chains:
            start(chain)
        for burst in [*p.bursts, []]:
            for pause, (kind, *step) in burst:
                await anyio.sleep(pause)
                if kind == "act":
                    act(model.boards[step[0]], step[1])
                elif kind == "fault":
                    getattr(model, step[0][0])(*step[0][1:])
                else:
                    chain = chains[step[0][1] % len(chains)]
                    if step[0][0] != "start":
                        await chain.stop()
                    if step[0][0] != "stop":
                        start(chain)
            model.down("up")
            await anyio.sleep(QUIET)
            for chain in chains:
                if chain.scope is not None:
                    chain.check_rest()
        for chain in chains:
            start(chain)
        await anyio.sleep(QUIET)
        for chain in chains:
            chain.check()
            chain.check_rest()
        tasks.cancel_scope.cancel()


@settings(
    max_examples=int(os.environ.get("EX", "300")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    report_multiple_bugs=False,
)
@given(PLAYS)
def test_everybody_is_told(p: Play) -> None:
    run(lambda: play(p))
