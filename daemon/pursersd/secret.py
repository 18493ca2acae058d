"""The one type that holds credentials and keeps them from showing."""

import hmac
import re
from typing import NoReturn

from pursersd.ids import fingerprint

_CREDENTIALS = re.compile(r"eyJ[\w-]{5,}\.[\w-]*\.[\w-]*|prs1\.[\w-]+|(?i:bearer)\s+[\w.~+/=-]{8,}")


class Secret:
    """A credential that shows itself to nobody by accident: only `reveal` gives the text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself, for what sends it, stores it, or reads what it says of itself (tests/test_arrows.py has the list)."""
        return self._text

    @property
    def fingerprint(self) -> str:
        """A short name that tells two credentials apart and gives neither away."""
        return fingerprint(self._text)

    def blanked_in(self, text: str) -> str:
        """`text` without this credential."""
        return text.replace(self._text, "<secret>") if self._text else text

    def __repr__(self) -> str:
        return f"<secret {self.fingerprint}>"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return same_text(self._text, other._text)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written anywhere")


def same_text(one: str, other: str) -> bool:
    """Whether two secret texts are the same, in a time that does not tell how much of them is."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))


def blanked(text: str) -> str:
    """`text` without what looks like a bearer token or a door: for texts that others have written."""
    return _CREDENTIALS.sub("<secret>", text)
