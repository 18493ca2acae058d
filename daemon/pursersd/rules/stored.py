"""Checking a stored JSON document: a value that knows where it stands, and the checks from which a shape is made.

No refusal quotes a value: a credential may have got into any field by mistake.
"""

from collections.abc import Callable, Collection, Mapping

from pursersd.errors import RegistryError

REPAIR = (
    "pursers-registry edits only a registry without faults: store the corrected JSON under the state key project_registry "
    "with board_state_update, then check it with: pursers-registry show"
)
"""True of pursers-registry 0.1.7: each of its verbs first reads the whole registry and ends at the first fault."""

_SHOWN = 80
_SHOWN_NAMES = 3


class Stored:
    """One value of the stored registry: whose it is (`project 'mill'`; empty for the registry's own), and its path."""

    __slots__ = ("owner", "path", "value")

    def __init__(self, value: object, owner: str = "", path: str = "") -> None:
        self.value = value
        self.owner = owner
        self.path = path

    @property
    def place(self) -> str:
        """Where it stands, for a person."""
        return ", ".join(filter(None, (self.owner, self.path))) or "the document"

    def refused(self, rule: str) -> RegistryError:
        """The error that says what this value must be, or what is wrong with it."""
        return RegistryError(f"The project registry is not valid: {self.place} {rule}. {REPAIR}")

    def member(self, name: str) -> "Stored":
        """The value below `name`; None if there is none."""
        return Stored(self.entries().get(name), self.owner, f"{self.path}.{name}" if self.path else name)

    def entries(self) -> dict[str, object]:
        """The members of this object."""
        if not isinstance(self.value, dict):
            raise self.refused("must be an object")
        return self.value

    def shaped(
        self, fields: Mapping[str, "Check"], *, required: Collection[str] = (), closed: bool = True
    ) -> dict[str, object]:
        """Those of `fields` that are stored, checked, in the order of `fields`.

        A field beyond them is refused if the shape is `closed` and left out otherwise.
        """
        entries = self.entries()
        unknown = sorted(set(entries) - set(fields)) if closed else []
        if unknown:
            raise self.refused(f"has unsupported fields: {', '.join(map(shown, unknown[:_SHOWN_NAMES]))}")
        for name in required:
            if name not in entries:
                raise self.member(name).refused("is missing")
        return {name: check(self.member(name)) for name, check in fields.items() if name in entries}


Check = Callable[[Stored], object]
"""Returns the normalised value or raises RegistryError."""


def text(rule: str, valid: Callable[[str], bool]) -> Callable[[Stored], str]:
    """Text for which `valid` holds; `rule` says so in words."""

    def check(stored: Stored) -> str:
        value = stored.value
        if not isinstance(value, str):
            raise stored.refused(rule)
        if not _is_unicode(value):
            # JSON may escape half of a character; such text can be read but never be sent.
            raise stored.refused("must be valid Unicode text")
        if not valid(value):
            raise stored.refused(rule)
        return value

    return check


def one_of(*names: str) -> Callable[[Stored], str]:
    """One of these words."""
    words = f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
    return text(f"must be {words}", names.__contains__)


def flag(stored: Stored) -> bool:
    """true or false."""
    if not isinstance(stored.value, bool):
        raise stored.refused("must be true or false")
    return stored.value


def whole(low: int, high: int) -> Callable[[Stored], int]:
    """A whole number in these bounds; neither true nor 1.0 is one."""
    rule = f"must be {low}" if low == high else f"must be a whole number from {low} to {high}"

    def check(stored: Stored) -> int:
        value = stored.value
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise stored.refused(rule)
        return value

    return check


def optional(check: Check) -> Check:
    """What `check` takes, or null."""
    return lambda stored: None if stored.value is None else check(stored)


def is_trimmed(value: str) -> bool:
    """Whether there is something and no blank around it."""
    return bool(value) and value == value.strip()


def shown(name: str) -> str:
    """A name as a text shows it: quoted, escaped, and cut where only a mistake made it that long."""
    return repr(name if len(name) <= _SHOWN else name[:_SHOWN] + "…")


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
