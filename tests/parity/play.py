"""Carries out the steps of one scenario on a stage and collects what is to be compared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from parity.normal import normal, outcome
from parity.script import (
    Blocking,
    Call,
    Cancel,
    Describe,
    Do,
    Exists,
    Finish,
    Handshake,
    Held,
    Hold,
    Release,
    See,
    Seq,
    Start,
    Step,
    Unreachable,
)
from rig.proxy import Proxy
from rig.shim import Ended, Json, Pending, ShimProcess
from rig.wait import until

PATIENCE = 20.0  # seconds for an answer, beyond the timeout of the call
DEFAULT_TIMEOUT_S = 180


class Theatre(Protocol):
    """What a play needs of its stage."""

    board: str
    proxy: Proxy
    process: ShimProcess
    greeting: Json

    def act(self, who: str, tool: str, arguments: Mapping[str, Any], seat: str | None = None, times: int = 1) -> Json:
        """A member of the cast calls a tool of Central."""

    def head(self) -> int:
        """The head of the board's journal."""

    def exists(self, board: str) -> bool:
        """Whether Central has that board."""

    def is_blocking(self, since: int) -> bool:
        """Whether the wait begun after that mark has asked for its history."""

    def names(self) -> dict[str, str]:
        """Identifiers, and what to call them."""


@dataclass
class Play:
    """One scenario being played. `base` is the head of the journal when it began."""

    stage: Theatre
    base: int
    outcomes: list[Any] = field(default_factory=list)
    _kept: dict[str, str] = field(default_factory=dict)
    _last: int = 0
    """The new_seq of the newest a2a_wait."""
    _started: tuple[Pending[Json], float, int] | None = None
    """What was started, its timeout_s, and the mark in the network's log when it was."""

    @property
    def tickets(self) -> list[str]:
        """The tickets that were created."""
        return [kept for kept in self._kept.values() if kept.startswith("TK-")]

    def take(self, step: Step) -> None:
        """Carry out one step."""
        match step:
            case Do():
                self._do(step)
            case See():
                found = self.stage.act(step.who, step.tool, self._filled_in(step.arguments))
                self._note({step.path: _at(found, step.path)})
            case Exists():
                self._note({step.board: self.stage.exists(step.board)})
            case Handshake():
                self._note(self.stage.greeting)
            case Describe():
                listed = self.stage.process.request("tools/list")["tools"]
                self._note(next(tool for tool in listed if tool["name"] == step.tool))
            case Start():
                self._start(step)
            case Call():
                self._start(step)
                self._finish()
            case Blocking():
                self._wait_until_blocking()
            case Finish():
                self._finish()
            case Cancel():
                self._cancel()
            case _:
                self._disturb(step)

    def _disturb(self, step: Hold | Held | Release | Unreachable) -> None:
        proxy = self.stage.proxy
        match step:
            case Hold():
                proxy.hold(step.name)
            case Held():
                until(lambda: proxy.holding(step.name), PATIENCE, f"{step.name} is held")
            case Release():
                proxy.release(step.name)
            case Unreachable():
                proxy.refuse(step.on)
                proxy.reset_all()

    def _do(self, step: Do) -> None:
        result = self.stage.act(step.who, step.tool, self._filled_in(step.arguments), step.seat, step.times)
        for name, path in step.keep.items():
            self._kept[name] = str(_at(result, path))

    def _start(self, step: Call) -> None:
        arguments = self._filled_in(step.arguments)
        timeout = arguments.get("timeout_s", DEFAULT_TIMEOUT_S)
        mark = self.stage.proxy.mark()
        pending = self.stage.process.start_tool(step.tool, arguments)
        self._started = pending, timeout if isinstance(timeout, int) else DEFAULT_TIMEOUT_S, mark

    def _finish(self) -> None:
        assert self._started is not None, "nothing was started"
        pending, timeout_s, _ = self._started
        self._started = None
        try:
            found = outcome(pending.message(max(0.0, timeout_s) + PATIENCE))
        except Ended:
            found = {"ended": self.stage.process.wait()}
        if found.get("data") and isinstance(seq := found["data"].get("new_seq"), int):
            self._last = seq
        self._note(found, timeout_s)

    def _cancel(self) -> None:
        assert self._started is not None, "nothing was started"
        pending, _, _ = self._started
        self._started = None
        self.stage.process.cancel(pending.id)
        # The answer to what was sent later through the same pipe proves that the cancellation was read.
        self.stage.process.request("ping")
        assert not pending.done, "a cancelled call gets no answer"

    def _wait_until_blocking(self) -> None:
        assert self._started is not None, "nothing was started"
        pending, _, mark = self._started

        def blocking() -> bool:
            assert not pending.done, f"it has returned already: {pending.message()}"
            return self.stage.is_blocking(mark)

        until(blocking, PATIENCE, "the wait blocks")
        # Central carries out one call after the other: once it has answered this one, it has answered those of the wait.
        self.stage.head()

    def _note(self, found: Any, timeout_s: float = 0.0) -> None:
        names = self.stage.names() | {value: f"<{name}>" for name, value in self._kept.items()}
        self.outcomes.append(normal(found, names, self.base, timeout_s))

    def _filled_in(self, value: Any) -> Any:
        match value:
            case Mapping():
                return {self._filled_in(name): self._filled_in(member) for name, member in value.items()}
            case list() | tuple():
                return [self._filled_in(member) for member in value]
            case Seq():
                places = {"base": self.base, "last": self._last}
                return (self.stage.head() if value.of == "head" else places[value.of]) + value.plus
            case "$board":
                return self.stage.board
            case str() if value.startswith("$"):
                return self._kept[value[1:]]
            case _:
                return value


def _at(found: Any, path: str) -> Any:
    for part in path.split("."):
        found = found[part]
    return found
