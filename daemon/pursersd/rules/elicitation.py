"""Which questions a host can show, by what it declared (bridge.md §4.3).

Declared means: nothing at all, the bare object (forms, the only kind before there were two), or exactly the kinds listed.
"""

from dataclasses import dataclass

from mcp_types import ClientCapabilities

NO_URL = "requires url mode, which this client did not declare"
NO_FORM = "requires form mode, which this client did not declare"


@dataclass(frozen=True, slots=True)
class Declared:
    """The kinds of questions, and the declaration as it came."""

    form: bool = False
    url: bool = False
    raw: object = None

    @property
    def any(self) -> bool:
        """Whether it can show some kind of question."""
        return self.form or self.url

    @property
    def shown(self) -> dict[str, object]:
        """As results show it."""
        return {"form": self.form, "url": self.url, "raw": self.raw}


def declared(capabilities: ClientCapabilities | None) -> Declared:
    """What a client's capabilities say of it: of this request, or in the older era of the conversation."""
    found = capabilities.elicitation if capabilities is not None else None
    if found is None:
        return Declared()
    form = not found.model_fields_set or found.form is not None
    return Declared(form, found.url is not None, found.model_dump(exclude_unset=True, mode="json"))
