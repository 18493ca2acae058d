"""Chaos: conversations that wait on boards while everything around them is killed, cut, stopped and restarted.

`World` is what can be hurt, `FAULTS` how, `Model` one model that only wants its events: each once and in order.
"""

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil

from rig.central import Central, ToolFailed
from rig.daemon import Home
from rig.proxy import Proxy
from rig.shim import Ended, ShimProcess, ToolError
from rig.speaker import RpcError
from rig.wait import until
from system.chaotic_asker import Asker, prepare
from system.scene import Caller, rows

BOARDS = ("chaos-a", "chaos-b", "chaos-c")
SETTLE = 60.0  # seconds for everybody to be told of everything once the faults are over
TICKET_EVERY = 1.5  # seconds, on average
ASKERS = 2
OPEN = 10
"""Tickets of a board that stay open, about: what is known of open tickets takes memory, which shall not look like a leak."""


class Model(Caller):
    """A model that waits and waits. Its host may die; the next host goes on from the model's cursor."""

    def __init__(self, world: "World", number: int) -> None:
        self.world = world
        self.board = BOARDS[number % len(BOARDS)]
        self.name = f"model-{number}"
        self.is_hosted = number % 4 == 3
        self.failures: Counter[str] = Counter()
        """How often a wait failed, by the code of the error; every one of these may be tried again."""
        self._rearm_at = 0.0
        self._before: list[tuple[ShimProcess, list[int]]] = []
        """The shims of earlier hosts, and what was asked of them."""
        super().__init__(self._start(), cursor=0)
        self.arm()

    def next_host(self) -> None:
        """The old host is gone: what it had printed was read; another one goes on."""
        self.shim.close()
        self.pump()
        self._before.append((self.shim, self._ids))
        self._ids, self.wait = [], None
        self.shim = self._start()
        self.arm()

    def give_up_waiting(self) -> None:
        """Cancel the wait, as a model does that has something better to do; then wait again."""
        if self.wait is not None and not self.wait.done:
            self.shim.cancel(self.wait.id)
            self._cancelled.add(self.wait.id)
        self.arm()

    def pump(self) -> None:
        """Take the result, if there is one, and wait again; an error that may be retried is retried, a moment later."""
        if self.wait is None:
            if time.monotonic() >= self._rearm_at and self.shim.process.poll() is None:
                self.arm()
        elif self.wait.done:
            try:
                result = self.wait.result(0)
            except Ended:
                return  # its shim is gone; next_host() asks again
            except ToolError as error:
                self._failed(error.structured["error"])
                return
            except RpcError as error:
                raise AssertionError(f"{self.name}: {error}") from error
            if result["mode"] == "error":
                assert result["new_seq"] == self.cursor
                self._failed(result["error"])
                return
            self.take()
            self.arm()

    def knows(self, ticket: str) -> bool:
        """Whether it was told of this ticket."""
        return any(event["ticket_id"] == ticket for event in self.events)

    def check(self, tickets: list[str]) -> None:
        """It was told of these tickets in their order and of no other, and no request of it was answered twice."""
        assert [event["ticket_id"] for event in self.events] == tickets, self.name
        seqs = [event["seq"] for event in self.events]
        assert seqs == sorted(set(seqs)), self.name
        for shim, ids in (*self._before, (self.shim, self._ids)):
            assert shim.rubbish == []
            for number in ids:
                count = len(shim.answers(number))
                is_owed = shim is self.shim and number not in self._cancelled
                is_current = self.wait is not None and number == self.wait.id and not self.wait.done
                assert count <= 1, f"{count} answers to {number} of {self.name}"
                assert count == 1 or not is_owed or is_current, f"no answer to {number} of {self.name}"

    def _failed(self, error: dict[str, object]) -> None:
        assert error["retryable"], error
        self.failures[str(error["code"])] += 1
        self.wait = None
        self._rearm_at = time.monotonic() + 0.5

    def _start(self) -> ShimProcess:
        self._cancelled: set[int] = set()
        home, world = self.world.home, self.world
        shim = home.shim(home.environment(world.proxy.url, world.token, self.board, self.name), hosted=self.is_hosted)
        shim.initialize()
        return shim


class World:
    """A Central behind a fault proxy, a home, and models; all of it can be hurt."""

    def __init__(self, central: Central, proxy: Proxy, home: Home, models: int, seed: int) -> None:
        self.central, self.proxy, self.home = central, proxy, home
        self.dice = random.Random(seed)
        self.story: list[str] = []
        """What happened, in order."""
        for board in BOARDS:
            central.create_board(board, {"ann": "member"})
        self.token = central.mint("ann", "board:read board:write", lifetime=24 * 3600)
        self._next_ticket = 0.0
        self._open: dict[str, list[str]] = {board: [] for board in BOARDS}
        self.models = [Model(self, number) for number in range(models)]
        prepare(central)
        self.askers = [Asker(central, home, proxy.url, number) for number in range(ASKERS)]

    def run(self, seconds: float, faults: "dict[Fault, int]") -> None:
        """Let faults happen for so long, drawn with these weights."""
        end = time.monotonic() + seconds
        next_fault = time.monotonic() + 1.0
        began = time.monotonic()
        while time.monotonic() < end:
            self.live(0.05)
            if time.monotonic() >= next_fault:
                (fault,) = self.dice.choices(list(faults), list(faults.values()))
                self.story.append(f"{time.monotonic() - began:.1f} s: {fault.__name__}")
                fault(self)
                next_fault = time.monotonic() + self.dice.uniform(0.2, 1.6)

    def live(self, seconds: float) -> None:
        """Let models wait and tickets be made for so long."""
        end = time.monotonic() + seconds
        while True:
            for model in (*self.models, *self.askers):
                model.pump()
            if time.monotonic() >= self._next_ticket:
                self._next_ticket = time.monotonic() + self.dice.uniform(0, 2 * TICKET_EVERY)
                with contextlib.suppress(OSError, ToolFailed):  # Central may be away; what it has is asked at the end
                    self._make_ticket(self.dice.choice(BOARDS))
            if time.monotonic() >= end:
                return
            time.sleep(0.01)

    def _make_ticket(self, board: str) -> None:
        """One more, and the oldest is cancelled once everybody was told of it."""
        open_here = self._open[board]
        open_here.append(self.central.create_ticket(board, "in the chaos"))
        if len(open_here) > OPEN and all(model.knows(open_here[0]) for model in self.models if model.board == board):
            self.central.call(
                self.central.admin,
                "ticket_cancel",
                board_id=board,
                agent_name="boss",
                ticket_id=open_here.pop(0),
                reason="it has made its noise",
            )

    def tickets(self, board: str) -> list[str]:
        """All tickets of a board, in the order in which they were made."""
        found, cursor = [], None
        while True:
            more = {} if cursor is None else {"cursor": cursor}
            page = self.central.call(
                self.central.admin,
                "ticket_list",
                board_id=board,
                agent_name="boss",
                limit=50,  # of more, Central shortens the last ones
                include_closed=True,
                **more,
            )
            found += page["tickets"]
            if not page["has_more"]:
                return [ticket["ticket_id"] for ticket in sorted(found, key=lambda ticket: ticket["created_at"])]
            cursor = page["next_cursor"]

    def settle(self) -> None:
        """The faults are over: everybody is told of everything."""
        tickets = {board: [*self.tickets(board), self.central.create_ticket(board, "the last one")] for board in BOARDS}
        behind = list(self.models)

        def all_told() -> bool:
            for model in self.models:
                model.pump()
            behind[:] = [m for m in behind if len(m.events) < len(tickets[m.board])]
            assert not behind, [f"{m.name}: {len(m.events)} of {len(tickets[m.board])}" for m in behind]
            return True

        until(all_told, SETTLE, f"everybody is told of everything after {self.story}")
        for model in self.models:
            model.check(tickets[model.board])
        for asker in self.askers:
            asker.settle()
            asker.check()

    def delivered(self) -> int:
        """How many events the models have been told so far."""
        return sum(len(model.events) for model in self.models)

    def __str__(self) -> str:
        events = self.delivered()
        failures: Counter[str] = sum((model.failures for model in self.models), Counter())
        faults = Counter(line.rpartition(" ")[2] for line in self.story)
        questions = Counter(said for asker in self.askers for said in asker.said.values())
        return (
            f"{len(self.models)} conversations, {events} events delivered, faults {dict(faults)}, "
            f"retried errors {dict(failures)}, questions {dict(questions)}"
        )

    def leave(self) -> None:
        """Everybody goes home; nothing is left."""
        for model in (*self.models, *self.askers):
            model.shim.close()
        assert self.home.ctl("stop").returncode == 0
        until(lambda: not self.home.daemons(), SETTLE, "the daemon is gone")
        until(lambda: self.proxy.live == 0, SETTLE, "no connection to Central is left")
        assert not os.path.exists(self.home.place.socket)
        left = [str(file) for file in self.home.folder.rglob("*") if ".tmp" in file.name or file.is_socket()]
        assert left == []


# --- faults -----------------------------------------------------------------------------------------------------------

Fault = Callable[[World], None]


def kill_daemon(world: World) -> None:
    """SIGKILL."""
    with contextlib.suppress(AssertionError, ProcessLookupError):  # there may be none at this moment
        os.kill(world.home.daemon_pid(), signal.SIGKILL)


def replace_daemon(world: World) -> None:
    """SIGTERM, as a service manager does; the shims find or start the next one."""
    with contextlib.suppress(AssertionError, ProcessLookupError):
        os.kill(world.home.daemon_pid(), signal.SIGTERM)


def freeze_daemon(world: World) -> None:
    """SIGSTOP for a while."""
    with contextlib.suppress(AssertionError, ProcessLookupError), frozen(world.home.daemon_pid()):
        world.live(world.dice.uniform(0.1, 2.0))


def freeze_shim(world: World) -> None:
    """SIGSTOP for a while."""
    with contextlib.suppress(AssertionError, psutil.NoSuchProcess), frozen(world.dice.choice(world.models).shim.pid):
        world.live(world.dice.uniform(0.1, 2.0))


def kill_shim(world: World) -> None:
    """SIGKILL."""
    model = world.dice.choice([*world.models, *world.askers])
    os.kill(model.shim.pid, signal.SIGKILL)
    model.next_host()


def kill_host(world: World) -> None:
    """SIGKILL to a host whose pipes somebody else holds open: its shim must be told to end."""
    model = world.dice.choice([model for model in world.models if model.is_hosted])
    shim = model.shim.pid

    def is_linked() -> bool:
        world.live(0.02)
        return any(row["shim_pid"] == shim and row["state"] != "detached" for row in rows(world.home))

    until(is_linked, SETTLE, "its conversation is linked")
    model.shim.process.send_signal(signal.SIGKILL)
    until(lambda: (world.live(0.02), not psutil.pid_exists(shim))[1], SETTLE, "the shim of a dead host ends")
    model.next_host()


def close_stdin(world: World) -> None:
    """A host that leaves in the middle of a wait."""
    model = world.dice.choice(world.models)
    model.shim.close_stdin()
    assert model.shim.wait() == 0
    model.next_host()


def cancel(world: World) -> None:
    """A few models have something better to do."""
    for model in world.dice.sample(world.models, 3):
        model.give_up_waiting()
    for asker in world.askers:
        asker.give_up()


def cut_streams(world: World) -> None:
    world.proxy.cut_streams()


def overflow_streams(world: World) -> None:
    with contextlib.suppress(AssertionError):  # a stream may be in the middle of an event
        world.proxy.overflow()


def reset_connections(world: World) -> None:
    world.proxy.reset_all()


def lose_answer(world: World) -> None:
    world.proxy.cut_after(world.dice.choice(["board_catchup", "board_join", "ticket_list", "ticket_question_ask"]))


def stall_network(world: World) -> None:
    world.proxy.blackhole()
    world.live(world.dice.uniform(0.1, 2.0))
    world.proxy.blackhole(False)


def refuse_connections(world: World) -> None:
    world.proxy.refuse()
    world.proxy.reset_all()
    world.live(world.dice.uniform(0.1, 1.5))
    world.proxy.refuse(False)


def restart_central(world: World) -> None:
    world.central.restart()


def kill_central(world: World) -> None:
    world.central.kill()
    world.live(0.5)
    world.central.start()


AROUND_THE_DAEMON: dict[Fault, int] = {
    freeze_shim: 2,
    kill_shim: 4,
    kill_host: 2,
    close_stdin: 3,
    cancel: 4,
    cut_streams: 4,
    overflow_streams: 3,
    reset_connections: 3,
    lose_answer: 4,
    stall_network: 3,
    refuse_connections: 3,
    restart_central: 1,
    kill_central: 1,
}
"""Faults that one daemon outlives, and how often each comes."""

FAULTS: dict[Fault, int] = {**AROUND_THE_DAEMON, kill_daemon: 4, replace_daemon: 2, freeze_daemon: 3}


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Stopped by a signal while the block runs."""
    process = psutil.Process(pid)
    process.suspend()
    try:
        yield
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.resume()
