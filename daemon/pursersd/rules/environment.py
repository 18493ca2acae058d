"""Reads the environment of one conversation and collects what is wrong with it."""

import math
from collections.abc import Mapping


class Reader:
    """One environment, what in it prevents work, and what of it was ignored.

    No text quotes a value: a credential may have got into any variable by mistake.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.problems: list[str] = []
        self.notes: list[str] = []

    def value(self, name: str) -> str:
        """The value without surrounding blanks; empty if it is not set."""
        return self.environ.get(name, "").strip()

    def problem(self, rule: str, advice: str) -> None:
        """Note what the value must be (in the bridge's words where it has words) and what the user can do."""
        self.problems.append(f"{rule}. {advice}")

    def positive(self, name: str) -> float | None:
        """A finite number of seconds above zero, or None, with a note if something else was set."""
        raw = self.value(name)
        if not raw:
            return None
        try:
            number = float(raw)
        except ValueError:
            number = 0.0
        if math.isfinite(number) and number > 0:
            return number
        self.notes.append(f"{name} must be a number of seconds above 0; using its default")
        return None
