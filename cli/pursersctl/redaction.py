"""Take secrets out of texts that leave the machine: those that are known, those that are named, those that look like one."""

import re
from collections.abc import Iterable, Mapping

from pursersd.secret import Secret, blanked

_NAME = r"[\w.-]*(?:token|secret|passwo?r?d|authorization|api[_-]?key|private[_-]?key|cookie)[\w.-]*"
_VALUE = r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s,;&\"'{}\[\]]+"
_NAMED = re.compile(rf"(?i)(?<![\w.-])([\"']?)({_NAME})\1(\s*[:=]\s*)({_VALUE})")
_PATH = re.compile(r"(?i)(?:_file|_path|_dir|_url|[.-]file)$")
"""Names whose values say where something lies."""

LEAST = 6
"""Letters of a value that is looked for everywhere: a shorter one is no secret, and stands in other words."""


def is_secret(name: str) -> bool:
    """Whether the value of a variable or field of this name may be a secret."""
    return re.fullmatch(_NAME, name, re.IGNORECASE) is not None and not _PATH.search(name)


def named_secrets(variables: Mapping[str, str]) -> list[Secret]:
    """The values in an environment that may be secrets."""
    return [Secret(value) for name, value in variables.items() if is_secret(name) and len(value) >= LEAST]


class Redaction:
    """Blanks texts. `known` are secrets to look for wherever they stand."""

    def __init__(self, known: Iterable[Secret] = ()) -> None:
        self._known = tuple(dict.fromkeys(known))

    def __repr__(self) -> str:
        return f"<Redaction of {len(self._known)} known secrets>"

    def clean(self, text: str) -> str:
        """The text without secrets; JSON stays JSON."""
        for secret in self._known:
            text = secret.blanked_in(text)
        return blanked(_NAMED.sub(_blank, text))


def _blank(found: re.Match[str]) -> str:
    quote, name, between, value = found.groups()
    if _PATH.search(name):
        return found[0]
    mark = value[0] if value[0] in "\"'" else ""
    return f"{quote}{name}{quote}{between}{mark}<secret>{mark}"
