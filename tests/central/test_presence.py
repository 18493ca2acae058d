"""A conversation that ends in the middle of its wait leaves Central's streams at once (design §7)."""

import subprocess
from contextlib import AsyncExitStack

import pytest

from pursers_shim import wire
from rig import processes
from rig.central import Central
from unit.running_app import Client, RunningApp, running, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Waits:
    """Conversations that wait on one board with one credential, so through one pool."""

    def __init__(self, daemon: RunningApp, central: Central, board: str) -> None:
        self.daemon = daemon
        self._head = central.head(board)
        self._env = {
            "ONBOARD_CENTRAL_URL": central.url,
            "ONBOARD_CENTRAL_TOKEN": central.worker("ann", board),
            "ONBOARD_BOARD_ID": board,
            "PURSERS_ROLE": "worker",
        }

    async def begin(self, stack: AsyncExitStack, name: str, shim: "subprocess.Popen[bytes]") -> Client:
        """A conversation of this process waits."""
        env = {**self._env, "ONBOARD_AGENT_NAME": name}
        hello = {"env": env, "pid": shim.pid, "started": wire.process_start(shim.pid)}
        link, _ = await stack.enter_async_context(self.daemon.shim(**hello))
        await link.shake_hands()
        await link.request(1, "tools/call", name="a2a_wait", arguments={"timeout_s": 60, "since_seq": self._head})
        return link

    async def are(self, count: int) -> bool:
        """Whether that many wait, each with its seat in Central's stream."""
        async with self.daemon.control() as client:
            (central,) = (await client.ask("status"))["centrals"]
        return (central["seats_listening"], central["waits"], central["streams"]) == (count, count, 2)


@pytest.mark.parametrize("how", ["the shim dies", "its link ends, too"])
async def test_its_seat_leaves_and_the_others_stay(central: Central, board: str, how: str) -> None:
    with processes.idle() as stays, processes.idle() as goes:
        async with running() as daemon, AsyncExitStack() as staying, AsyncExitStack() as going:
            waits = Waits(daemon, central, board)
            link = await waits.begin(staying, "stays", stays)
            await waits.begin(going, "goes", goes)
            await until(lambda: waits.are(2))
            goes.kill()
            if how == "its link ends, too":
                goes.wait()
                await going.aclose()
            await until(lambda: waits.are(1))
            assert [row["seat"] for row in await daemon.ps()] == ["stays"]
            central.create_ticket(board, "for the one that stays")
            assert len((await link.next())["result"]["structuredContent"]["events"]) == 1
