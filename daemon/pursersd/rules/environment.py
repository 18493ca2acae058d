"""Reads the environment of one conversation and collects what is wrong with it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

OriginKind = Literal["variable", "file", "door", "automatic", "default"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a resolved value came from."""

    kind: OriginKind
    name: str | None = None
    """Of a variable: its name, several joined with commas; of a file: the variable that names it; of a door: its key id."""


DEFAULT = Origin("default")


class Reader:
    """One environment, what in it prevents work, and what of it was ignored.

    No text quotes a value: a credential may have got into any variable by mistake.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.origins: dict[str, Origin] = {}
        """By the name of the setting; what is not in it came from nowhere: it is a default."""

    def value(self, name: str) -> str:
        """The value without surrounding blanks; empty if it is not set."""
        return self.environ.get(name, "").strip()

    def came(self, setting: str, *variables: str) -> None:
        """The setting was taken from these variables."""
        self.origins[setting] = Origin("variable", ", ".join(variables))

    def problem(self, rule: str, advice: str) -> None:
        """Note what the value must be (in the bridge's words where it has words) and what the user can do."""
        self.problems.append(f"{rule}. {advice}")

    def positive(self, setting: str, name: str) -> float | None:
        """A finite number of seconds above zero, or None, with a note if something else was set."""
        raw = self.value(name)
        if not raw:
            return None
        try:
            number = float(raw)
        except ValueError:
            number = 0.0
        if math.isfinite(number) and number > 0:
            self.came(setting, name)
            return number
        self.notes.append(f"{name} must be a number of seconds above 0; using its default")
        return None
