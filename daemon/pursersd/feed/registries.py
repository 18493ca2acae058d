"""The project registries of home boards as Central has them (bridge.md §1.8, §2.3)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import anyio

from pursersd.central.pool import Pool
from pursersd.errors import PursersError, RegistryError, ToolFailed
from pursersd.rules import registry


async def read_registry(pool: Pool, home: str) -> dict[str, object]:
    """The registry of a home board, validated. Raises RegistryError and CentralError."""
    return registry.validated(await pool.read("board_state_get", {"board_id": home, "key": registry.STATE_KEY}))


@dataclass(slots=True)
class _Known:
    """A home board's registry, or why there is none; None: not read since it may have changed."""

    asking: anyio.Lock = field(default_factory=anyio.Lock)
    found: Mapping[str, object] | PursersError | None = None


class Registries:
    """Those of one pool, each read once for all who follow its board until somebody says that it may have changed."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._known: dict[str, _Known] = {}

    async def get(self, home: str, *, is_told: bool) -> Mapping[str, object]:
        """The registry of a home board; read each time unless what happens there `is_told` to us.

        Raises RegistryError and CentralError.
        """
        known = self._known.setdefault(home, _Known())
        async with known.asking:
            if known.found is None or not is_told:
                try:
                    known.found = await read_registry(self._pool, home)
                except (RegistryError, ToolFailed) as error:
                    known.found = error
            if isinstance(known.found, PursersError):
                raise known.found.with_traceback(None)
            return known.found

    def forget(self, homes: Iterable[str]) -> None:
        """These may be others now."""
        for home in homes:
            if home in self._known:
                self._known[home].found = None
