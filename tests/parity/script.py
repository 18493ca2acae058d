"""The words that scenarios are written in: plain data, the same for both sides.

Arguments may hold names: `"$A"` stands for what `keep` remembered as A, `"$board"` for the home board, `"$second"` for
the further board of that name, `Seq` for a place in a journal, `Json` for the text of what it holds. In longer texts
`{board}`, `{second}`, `{principal ann}`, `{seat ann}` (its id on the home board), `{binding ann}` (the host binding of that
seat) and `{closed}` (a URL where nobody listens) are filled in.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

HOME = "board"
"""What the home board of a place is called in scripts."""


@dataclass(frozen=True, slots=True)
class Seq:
    """A place in a journal: `base` is its head when the scenario began, `head` its head now, `last` what the newest
    a2a_wait returned as new_seq, a map of many boards too."""

    of: Literal["base", "head", "last"] = "base"
    plus: int = 0
    board: str = HOME


@dataclass(frozen=True, slots=True)
class Json:
    """The JSON text of this value, with the names in it replaced."""

    value: Any


@dataclass(frozen=True, slots=True)
class Do:
    """A member of the cast calls a tool of Central. `seat` is its agent name, by default its own name.

    `keep` maps a name to the dotted path of what to remember of the result; of a ticket also the board.
    """

    who: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seat: str | None = None
    keep: Mapping[str, str] = field(default_factory=dict)
    times: int = 1
    board: str = HOME


@dataclass(frozen=True, slots=True)
class Until:
    """The same again and again until the field at this path of its result has that value, or, without one, is not empty:
    what happens by the clock."""

    do: Do
    path: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class See:
    """What Central says is compared, too: one field of the result of a tool."""

    who: str
    tool: str
    arguments: Mapping[str, Any]
    path: str
    board: str = HOME


@dataclass(frozen=True, slots=True)
class Exists:
    """Whether there is such a board is compared."""

    board: str


@dataclass(frozen=True, slots=True)
class Handshake:
    """The answer to `initialize` is compared."""


@dataclass(frozen=True, slots=True)
class Describe:
    """What tools/list says of one tool is compared."""

    tool: str


@dataclass(frozen=True, slots=True)
class Call:
    """The conversation under test calls a tool; its outcome is compared."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Again(Call):
    """The same, again and again until these fields of its data have these values, or are not empty if that is None; the
    last outcome is compared. For what the bridge learns by and by."""

    until: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ask:
    """The conversation's host makes another request; the whole answer is compared."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Listen:
    """The host subscribes to these resources, as the newer era does, and waits for the acknowledgement."""

    uris: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Heard:
    """Wait until the host is notified of something after what it had been by the step before; each notification is
    compared, but not how often it came."""

    method: str


@dataclass(frozen=True, slots=True)
class AskHuman(Call):
    """The same, and the human at the host is asked: what is asked and the outcome are compared.

    `says` are the human's responses to the questions, in order: results of `elicitation/create`, with `error` JSON-RPC
    errors, None for none at all. In the newer era the host declares `capabilities` with each call.
    """

    says: tuple[Mapping[str, Any] | None, ...] = ()
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    meanwhile: tuple[Do, ...] = ()
    """What happens before the first response."""
    state: Literal["kept", "spoiled", "lost"] = "kept"
    """What the host does with the sealed state of the newer era."""
    again: Mapping[str, Any] | None = None
    """The arguments of the call that brings the responses; None: the same."""


@dataclass(frozen=True, slots=True)
class Start(Call):
    """The same, but the script goes on meanwhile."""


@dataclass(frozen=True, slots=True)
class Blocking:
    """Wait until the started a2a_wait has read the history of these boards: what happens now is live.

    Something must have happened on each of them since the wait before.
    """

    boards: tuple[str, ...] = (HOME,)


@dataclass(frozen=True, slots=True)
class Finish:
    """Take the outcome of what was started."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """The host cancels what was started: it must get no answer."""


@dataclass(frozen=True, slots=True)
class Hold:
    """From now on the network keeps requests for this tool or method."""

    name: str


@dataclass(frozen=True, slots=True)
class Held:
    """Wait until such a request is being kept."""

    name: str


@dataclass(frozen=True, slots=True)
class Release:
    """The network lets them go."""

    name: str


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The network refuses new connections and cuts the open ones, or stops doing so."""

    on: bool = True


@dataclass(frozen=True, slots=True)
class Denied:
    """From now on subscriptions with the journal of this board, or with the conversation's seat on it, are denied, and all
    open ones cut; or no longer."""

    board: str = HOME
    what: Literal["journal", "seat"] = "journal"
    on: bool = True


Disturbance = Hold | Held | Release | Unreachable | Denied
Step = (
    Do
    | Until
    | See
    | Exists
    | Handshake
    | Describe
    | Ask
    | Listen
    | Heard
    | Call
    | AskHuman
    | Blocking
    | Finish
    | Cancel
    | Disturbance
)


@dataclass(frozen=True, slots=True)
class Board:
    """A further board of a place. `memberships` are those that differ from the cast's; None: not admitted."""

    name: str
    memberships: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """A conversation with settings of its own, and boards of its own. Scenarios at one place share both, in turn.

    `member` is whose credential and name the conversation has; with further boards the credential is confined to none.
    `variables` are set on top, None removes one; `{unbound}` in their values is a token that may found boards.
    """

    name: str
    member: str = "ann"
    variables: Mapping[str, str | None] = field(default_factory=dict)
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    """What the host declares in the handshake of the older era."""
    seats: tuple[str, ...] = ()
    """Members who have joined the boards beforehand, beside the conversation's own."""
    modern: bool = False
    """Whether the host speaks 2026-07-28."""
    further: tuple[Board, ...] = ()
    follows: bool = False
    """Whether the bridge's subscriptions to journals alone are let through: its digests are made of them."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One script. `about` says what the model should get to know."""

    id: str
    about: str
    place: Place
    steps: tuple[Step, ...]
    extended: bool = False
    """Whether only `make parity` plays it."""

    @property
    def boards(self) -> set[str]:
        """The boards of its place that it has to do with."""
        said = set(_texts(self.steps))
        further = {board.name for board in self.place.further}
        return {HOME} | (further if "registry" in said else further & said)


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value.removeprefix("$")
        case Mapping():
            yield from _texts([*value, *value.values()])
        case list() | tuple():
            for member in value:
                yield from _texts(member)
        case _ if is_dataclass(value):
            yield from _texts([getattr(value, own.name) for own in fields(value)])
