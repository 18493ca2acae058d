"""Carries out the steps of one scenario on a stage and collects what is to be compared."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from parity import asking
from parity.compare import value_at
from parity.normal import normal, outcome
from parity.script import (
    HOME,
    Again,
    Ask,
    AskHuman,
    Blocking,
    Call,
    Cancel,
    Denied,
    Describe,
    Disturbance,
    Do,
    Exists,
    Finish,
    Handshake,
    Heard,
    Held,
    Hold,
    Json,
    Listen,
    Release,
    See,
    Seq,
    Start,
    Step,
    Unreachable,
    Until,
)
from rig.proxy import Proxy
from rig.shim import Ended, Pending, ShimProcess
from rig.shim import Json as Object
from rig.wait import until

PATIENCE = 60.0  # seconds for an answer, beyond the timeout of the call
DEFAULT_TIMEOUT_S = 180
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
BRIEF = 10
"""Seconds that an offer lives in a scenario, at most, if it shall come to its end."""


class Theatre(Protocol):
    """What a play needs of its stage."""

    boards: dict[str, str]
    patience: int
    proxy: Proxy
    process: ShimProcess
    greeting: Object

    def act(
        self,
        who: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        seat: str | None = None,
        times: int = 1,
        board: str = HOME,
    ) -> Object:
        """A member of the cast calls a tool of Central on a board."""

    def head(self, board: str = HOME) -> int:
        """The head of a board's journal."""

    def exists(self, board: str) -> bool:
        """Whether Central has that board."""

    def deny(self, board: str, what: Literal["journal", "seat"], on: bool) -> None:
        """Subscriptions with the journal of a board, or with the seat there, are denied and cut, or no longer denied."""

    @property
    def meta(self) -> Object | None:
        """What each request of the conversation carries in `_meta`."""

    def is_blocking(self, tool: str, since: int, board: str = HOME) -> bool:
        """Whether the wait begun after that mark has asked for its history of a board."""

    def names(self) -> dict[str, str]:
        """Identifiers, and what to call them."""

    def filled_in(self, text: str) -> str:
        """The text with what only the stage knows."""


@dataclass
class Play:
    """One scenario being played. `bases` is where the journal of each board ended when it began, the home board's first."""

    stage: Theatre
    bases: Mapping[str, int]
    outcomes: list[Any] = field(default_factory=list)
    tickets: list[tuple[str, str]] = field(default_factory=list)
    """Board and id of each ticket that was created and not canceled."""
    _kept: dict[str, str] = field(default_factory=dict)
    _last: int | dict[str, int] = 0
    """The new_seq of the newest a2a_wait."""
    _started: tuple[Pending[Object], str, float, int] | None = None
    """What was started, its tool, its timeout_s, and the mark in the network's log when it was."""
    _heard: int = 0
    """How many notifications the host had received when it was last looked."""
    _listening: int | None = None
    """The id of the host's subscription."""

    def take(self, step: Step) -> None:
        """Carry out one step."""
        match step:
            case Do():
                self.do(step)
            case Until():
                until(lambda: self._has_come(step), PATIENCE, f"{step.do.tool} gives {step.value} as {step.path}")
            case See():
                found = self.stage.act(step.who, step.tool, self.filled_in(step.arguments), board=step.board)
                self._note({step.path: _at(found, step.path)})
            case Exists():
                self._note({step.board: self.stage.exists(step.board)})
            case Handshake():
                self._note(self.stage.greeting)
            case Describe():
                listed = self._list_tools()
                self._note(next(tool for tool in listed if tool["name"] == step.tool))
            case Ask():
                self._note(self._asked(step))
            case Listen():
                self._listen(step)
            case Heard():
                self._hear(step)
            case Again():
                until(lambda: self._has_settled(step), PATIENCE, f"{step.tool} gives {step.until}")
                self._start(step)
                self._finish()
            case Start():
                self._start(step)
            case AskHuman():
                self._note(asking.ask(self, step))
            case Call():
                self._start(step)
                self._finish()
            case Blocking():
                self._wait_until_blocking(step.boards)
            case Finish():
                self._finish()
            case Cancel():
                self._cancel()
            case _:
                self._disturb(step)

    def _disturb(self, step: Disturbance) -> None:
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
            case Denied():
                self.stage.deny(step.board, step.what, step.on)

    def do(self, step: Do) -> Object:
        """A member of the cast acts."""
        arguments = self.filled_in(step.arguments)
        if arguments.get("offer_ttl_s", BRIEF) < BRIEF:  # as much longer as the waits that must come before its end
            arguments["offer_ttl_s"] *= self.stage.patience
        result = self.stage.act(step.who, step.tool, arguments, seat=step.seat, times=step.times, board=step.board)
        for name, path in step.keep.items():
            kept = self._kept[name] = str(_at(result, path))
            if kept.startswith("TK-"):
                self.tickets.append((step.board, kept))
        if step.tool == "ticket_cancel":
            self.tickets.remove((step.board, arguments["ticket_id"]))
        return result

    def _has_come(self, step: Until) -> bool:
        found = _at(self.do(step.do), step.path)
        return bool(found) if step.value is None else bool(found == step.value)

    def _has_settled(self, step: Again) -> bool:
        data = self.stage.process.call_tool(step.tool, self.filled_in(step.arguments), PATIENCE, meta=self.stage.meta)
        wanted = {self.filled_in(path): self.filled_in(value) for path, value in step.until.items()}
        found = {path: value_at(data, path) for path in wanted}
        return all(bool(found[path]) if value is None else found[path] == value for path, value in wanted.items())

    def _asked(self, step: Ask) -> Any:
        params = {**self.filled_in(step.params), **({} if self.stage.meta is None else {"_meta": self.stage.meta})}
        message = self.stage.process.start(step.method, params).message(PATIENCE)
        found = {name: value for name, value in message.items() if name != "id"}
        for content in found.get("result", {}).get("contents", ()):
            content["text"] = json.loads(content["text"])
        return found

    def _listen(self, step: Listen) -> None:
        self._heard = len(self.stage.process.notifications)
        params = {"notifications": {"resourceSubscriptions": self.filled_in(step.uris)}, "_meta": self.stage.meta}
        self._listening = self.stage.process.start("subscriptions/listen", params).id
        self._hear(Heard("notifications/subscriptions/acknowledged"))

    def _hear(self, step: Heard) -> None:
        def heard() -> list[Object]:
            return [x for x in self.stage.process.notifications[self._heard :] if x["method"] == step.method]

        until(lambda: bool(heard()), PATIENCE, f"the host hears {step.method}")
        distinct = {json.dumps(x["params"], sort_keys=True): x["params"] for x in heard()}
        self._heard = len(self.stage.process.notifications)
        known = {"_meta": {SUBSCRIPTION: self._listening}}
        self._note(
            [
                {**x, "_meta": "<of the subscription>"} if x.get("_meta") == known["_meta"] else x
                for x in distinct.values()
            ]
        )

    def _start(self, step: Call) -> None:
        arguments = self.filled_in(step.arguments)
        timeout = arguments.get("timeout_s", DEFAULT_TIMEOUT_S)
        if type(timeout) is int and 0 < timeout < DEFAULT_TIMEOUT_S and self.stage.patience > 1:
            timeout = arguments["timeout_s"] = timeout * self.stage.patience
        mark = self.stage.proxy.mark()
        pending = self.stage.process.start_tool(step.tool, arguments, meta=self.stage.meta)
        self._started = pending, step.tool, timeout if isinstance(timeout, int) else DEFAULT_TIMEOUT_S, mark

    def _finish(self) -> None:
        assert self._started is not None, "nothing was started"
        pending, _, timeout_s, _ = self._started
        self._started = None
        try:
            found = outcome(pending.message(max(0.0, timeout_s) + PATIENCE))
        except Ended:
            found = {"ended": self.stage.process.wait()}
        if found.get("data") and isinstance(seq := found["data"].get("new_seq"), int | dict):
            self._last = seq
        self._note(found, timeout_s)

    def _cancel(self) -> None:
        assert self._started is not None, "nothing was started"
        pending, *_ = self._started
        self._started = None
        self.stage.process.cancel(pending.id)
        # The answer to what was sent later through the same pipe proves that the cancellation was read.
        self._list_tools()
        assert not pending.done, "a cancelled call gets no answer"

    def _wait_until_blocking(self, boards: tuple[str, ...]) -> None:
        assert self._started is not None, "nothing was started"
        pending, tool, _, mark = self._started

        def blocking() -> bool:
            assert not pending.done, f"it has returned already: {pending.message()}"
            return all(self.stage.is_blocking(tool, mark, board) for board in boards)

        until(blocking, PATIENCE, "the wait blocks")
        # Central carries out one call after the other: once it has answered this one, it has answered those of the wait.
        self.stage.head()

    def _list_tools(self) -> list[Object]:
        meta = self.stage.meta
        listed: list[Object] = self.stage.process.request("tools/list", meta and {"_meta": meta})["tools"]
        return listed

    def _note(self, found: Any, timeout_s: float = 0.0) -> None:
        names = self.stage.names() | {value: f"<{name}>" for name, value in self._kept.items()}
        self.outcomes.append(normal(found, names, self.bases, timeout_s))

    def filled_in(self, value: Any) -> Any:
        """A value of the script, with what its names stand for."""
        match value:
            case Mapping():
                return {self.filled_in(name): self.filled_in(member) for name, member in value.items()}
            case list() | tuple():
                return [self.filled_in(member) for member in value]
            case Json():
                return json.dumps(self.filled_in(value.value))
            case Seq():
                return self._place(value)
            case str() if value.startswith("$"):
                return self.stage.boards.get(value[1:]) or self._kept[value[1:]]
            case str():
                return self.stage.filled_in(value)
            case _:
                return value

    def _place(self, seq: Seq) -> int | dict[str, int]:
        match seq.of:
            case "last" if isinstance(self._last, dict):
                return self._last
            case "last":
                return self._last + seq.plus
            case "head":
                return self.stage.head(seq.board) + seq.plus
            case "base":
                return self.bases[self.stage.boards[seq.board]] + seq.plus


def _at(found: Any, path: str) -> Any:
    """What is at a dotted path; `name=value` chooses the element of a list."""
    for part in path.split("."):
        if isinstance(found, list):
            name, _, value = part.partition("=")
            found = next(element for element in found if element[name] == value)
        else:
            found = found[part]
    return found
