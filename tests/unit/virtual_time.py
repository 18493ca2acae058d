"""An event loop whose clock jumps: sleeping costs nothing, and the same run happens the same way each time."""

import asyncio
import functools
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec

import anyio
from anyio.lowlevel import checkpoint

Given = ParamSpec("Given")

SPINS = 20_000
"""How often the loop may turn without time going on; more is a loop that waits for nothing."""


class Stuck(Exception):
    """Nothing is left that could happen, or nothing but turning round."""


class _Jump(selectors.SelectSelector):
    """Waits for no file: the time that it should wait has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._spins = 0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise Stuck("everybody waits for somebody else")
        self._spins = 0 if timeout > 0 else self._spins + 1
        if self._spins > SPINS:
            raise Stuck(f"something turns round at {self.now:.3f}")
        self.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """asyncio's loop on a clock of its own. Nothing outside of the loop (threads, files, sockets) can be waited for."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._jump.now


def run(body: Callable[[], Awaitable[Any]]) -> Any:
    """Run an async function in virtual time."""
    return anyio.run(body, backend_options={"loop_factory": VirtualLoop})


def virtually(test: Callable[Given, Awaitable[None]]) -> Callable[Given, None]:
    """A test in virtual time."""

    @functools.wraps(test)
    def run_it(*args: Given.args, **kwargs: Given.kwargs) -> None:
        run(functools.partial(test, *args, **kwargs))

    return run_it


def now() -> float:
    """The virtual time, in seconds."""
    return anyio.current_time()


async def at_rest(turns: int = 50) -> None:
    """Let everybody go on who can without time passing."""
    for _ in range(turns):
        await checkpoint()
