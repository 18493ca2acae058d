"""Conversations that come and go leave nothing in a daemon that goes on."""

import asyncio
import gc
import heapq
import logging
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from pursersd.conversation.conversation import Conversation
from rig.central import Central
from unit.running_app import RunningApp, running, until

pytestmark = pytest.mark.anyio

FIRST, MORE = 4, 16
"""Conversations before the first look at what there is, and between the first and the second."""

NOISE = 5
"""What may be there by chance at one of two looks: what is left of each conversation would be MORE."""

HELD, OF_ONE = 6, 10
"""A connection to Central holds on to the conversation in whose call it was made, until it is closed: there are six at most. No
conversation has more objects of a kind, and of most kinds one."""

OURS = ("pursersd", "pursers_shim", "mcp", "anyio", "asyncio", "_asyncio", "httpx2", "httpcore2")

COUNTED = "pursersd.rules.stats_document."
"""What is counted stays some seconds until it is written."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    """What pytest keeps of the log has parts of the conversations in it."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


class Scene:
    """A daemon and a board on which conversations wait."""

    def __init__(self, daemon: RunningApp, central: Central, board: str) -> None:
        self.conversations = daemon.app._conversations
        self.came: list[weakref.ref[Conversation]] = []
        """Everybody who ever came."""
        self._daemon = daemon
        self._env = {
            "ONBOARD_CENTRAL_URL": central.url,
            "ONBOARD_CENTRAL_TOKEN": central.worker("ann", board),
            "ONBOARD_BOARD_ID": board,
        }

    async def begin(self, stack: AsyncExitStack, name: str) -> None:
        """A conversation that has had a result and waits for the next one, until the stack ends."""
        client, _ = await stack.enter_async_context(self._daemon.shim(env={**self._env, "ONBOARD_AGENT_NAME": name}))
        await client.shake_hands()
        await client.request(1, "tools/call", name="a2a_wait", arguments={"timeout_s": 1})
        cursor = (await client.next())["result"]["structuredContent"]["new_seq"]
        await client.say({"jsonrpc": "2.0", "method": "pursers/delivered", "params": {"id": 1}})
        await client.request(2, "tools/call", name="a2a_wait", arguments={"timeout_s": 50, "since_seq": cursor})

        async def waits() -> bool:
            return any(c.waits and c.agent_name == name for c in self.conversations.all())

        await until(waits)

    async def come_and_go(self, names: list[str]) -> None:
        """One after the other, each for a moment."""
        before = len(self.conversations)

        async def is_gone() -> bool:
            return len(self.conversations) == before

        for name in names:
            async with AsyncExitStack() as stack:
                await self.begin(stack, name)
                self.came += [weakref.ref(c) for c in self.conversations.all() if c.agent_name == name]
            await until(is_gone)


def look() -> Counter[str]:
    """What there is, by type."""
    # asyncio keeps some cancelled timers, each with the context of who set it, until they are many or their time comes.
    timers = getattr(asyncio.get_running_loop(), "_scheduled", [])
    timers[:] = [timer for timer in timers if not timer.cancelled()]
    heapq.heapify(timers)
    gc.collect()
    kinds = Counter(type(thing) for thing in gc.get_objects())
    names = {f"{kind.__module__}.{kind.__qualname__}": count for kind, count in kinds.items()}
    return Counter({n: c for n, c in names.items() if n.split(".")[0] in OURS and not n.startswith(COUNTED)})


async def test_nothing_is_left_of_conversations_that_have_gone(
    central: Central, board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    central.create_ticket(board, "there already")
    monkeypatch.setattr("pursersd.conversation.departures.KEPT", 2)
    async with running() as daemon, AsyncExitStack() as staying:
        scene = Scene(daemon, central, board)
        await scene.begin(staying, "stays")  # so that its Central and its board are kept open
        scene.conversations.reattach_s = 0.0
        await scene.come_and_go([f"first-{number}" for number in range(FIRST)])
        before = look()
        await scene.come_and_go([f"more-{number}" for number in range(MORE)])
        left: list[Conversation] = []
        grown: dict[str, tuple[int, int]] = {}

        async def is_as_before() -> bool:
            after = look()
            left[:] = [found for ref in scene.came if (found := ref()) is not None]
            grown.clear()
            for name, count in after.items():
                of_one = OF_ONE if before[name] > OF_ONE else 1
                if count > before[name] + NOISE + of_one * len(left):
                    grown[name] = before[name], count
            return len(left) <= HELD and not grown

        try:
            await until(is_as_before)
        except TimeoutError:
            pytest.fail(f"left: {left}; grown: {grown}")
        assert len(scene.came) == FIRST + MORE
