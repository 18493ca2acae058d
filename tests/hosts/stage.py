"""One host in a home of its own, with a local board, and what happens in it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from hosts.formats import Call, Say
from hosts.known import OFFLINE, Host
from hosts.model import ScriptedModel
from pursers_shim.launch import lock_holder
from rig import processes
from rig.daemon import Home
from rig.plain import PlainClient
from rig.wait import until

PATIENCE = 180.0  # seconds for a host to do something; they start slowly on a busy machine
UP_TIMEOUT = 240.0
BOARD = "local"
OWNER = "local-owner"

BURN = "while True: pass"


class Stage:
    """A home with a board up, and a host that was set up with `pursersctl hosts add`."""

    def __init__(self, host: Host, programs: Path, home: Home) -> None:
        self.host = host
        self.home = home
        self._programs = programs
        self.user = home.folder / "user"
        self.project = home.folder / "project"
        for folder in (self.user, self.project):
            folder.mkdir()
        self.board = json.loads(self.ctl("local", "up", "--json"))["local"]

    def environment(self, model: str) -> dict[str, str]:
        """What the host is started with: nothing of it says where the board is."""
        path = f"{self._programs}{os.pathsep}{os.environ['PATH']}"
        extra = {"PATH": path, **OFFLINE, **self.host.variables(model)}
        return self.home.environment(role=None, extra=extra)

    def ctl(self, *words: str) -> str:
        """Run pursersctl as the host's user; what it printed."""
        path = f"{self._programs}{os.pathsep}{os.environ['PATH']}"
        done = self.home.ctl(*words, timeout=UP_TIMEOUT, PATH=path)
        assert done.returncode == 0, f"pursersctl {words[:2]}: {done.stdout}{done.stderr}"
        return done.stdout

    def set_up(self, model: str) -> None:
        """Point the host at the model, and add the shim as a person would."""
        self.host.configure(self.user, model)
        self.ctl("hosts", "add", self.host.name, "--env", "PURSERS_ROLE=worker")

    def take_down(self) -> None:
        """Take the shim out again, and everything else that the host has written."""
        self.ctl("hosts", "remove", self.host.name)

    def listed(self) -> str:
        """What the host prints of its servers."""
        done = subprocess.run(
            [str(self._programs / self.host.program), *self.host.listing],
            env=self.environment("http://127.0.0.1:9"),
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    @contextlib.contextmanager
    def running(self, model: str) -> Iterator["subprocess.Popen[str]"]:
        """The host with one prompt; ended by its pid if it does not end."""
        with subprocess.Popen(
            [str(self._programs / self.host.program), *self.host.prompt("Wait for work.")],
            env=self.environment(model),
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as host:
            try:
                yield host
            finally:
                if host.poll() is None:
                    os.killpg(host.pid, signal.SIGKILL)

    def end_daemon(self, number: int) -> None:
        """End the daemon if there is one; nothing forbids to start another one."""
        pid = lock_holder(self.home.place.lock)
        if pid:
            os.kill(pid, number)
            until(lambda: lock_holder(self.home.place.lock) != pid, PATIENCE, "the daemon is gone")

    def owner(self, tool: str, **arguments: Any) -> Any:
        """A call of the board's owner, straight at Central, which outlives the daemon."""
        token = Path(self.board["folder"], "instance", "admin.jwt").read_text().strip()
        client = PlainClient(self.board["port"], token)
        try:
            return client.tool(tool, board_id=BOARD, agent_name=OWNER, **arguments)
        finally:
            client.close()

    def create_ticket(self) -> str:
        """Returns the id."""
        fields = {"description": "Say hello.", "scope": "READ-ONLY", "required_fields": ["summary"], "target_url": "x"}
        return str(self.owner("ticket_create", title="Say hello", **fields)["ticket"]["ticket_id"])

    def shims(self) -> list[psutil.Process]:
        """The shims that live."""
        return [process for process in processes.of_home(self.home.folder) if _is_shim(process)]

    def play(self, *, busy: bool = False) -> "Play":
        """Run the host once: its model waits, a ticket comes, the daemon is killed, the model waits again."""
        return Play(self, busy=busy)


class Play:
    """What one run of the host came to."""

    def __init__(self, stage: Stage, *, busy: bool) -> None:
        self._stage = stage
        host = stage.host
        script = [
            Call(host.tool("a2a_wait"), {"timeout_s": 100}),
            Call(host.tool("a2a_wait"), {"timeout_s": 1}),
            Say("done"),
        ]
        self.killed: int | None = None
        self.ticket = ""
        with ScriptedModel(host.form, script, {1: self._kill_daemon}) as model:
            stage.set_up(model.address)
            try:
                with burning(busy), stage.running(model.address) as process:
                    self._until_it_waits(process, model)
                    self.ticket = stage.create_ticket()
                    self.printed = process.communicate(timeout=PATIENCE)[0]
            finally:
                stage.take_down()
                if self.ticket:
                    stage.owner("ticket_cancel", ticket_id=self.ticket, reason="over")
        self.status = process.returncode
        self.turns = model.turns
        self.results = model.turns[-1].results

    def _until_it_waits(self, process: "subprocess.Popen[str]", model: ScriptedModel) -> None:
        """Until the model's first call blocks; the burning has had its effect then."""

        def waits() -> bool:
            if process.poll() is not None or len(model.turns) > 1:
                raise RuntimeError(f"it did not wait: {self._said(process)} {[turn.tools for turn in model.turns]}")
            return any(row["state"] == "waiting" for row in self._rows())

        until(waits, PATIENCE, "the model waits")

    def _rows(self) -> list[dict[str, Any]]:
        done = self._stage.home.ctl("ps", "--json")
        rows: list[dict[str, Any]] = json.loads(done.stdout)["seats"] if done.returncode == 0 else []
        return rows

    @staticmethod
    def _said(process: "subprocess.Popen[str]") -> str:
        return process.communicate()[0][-3000:] if process.poll() is not None else ""

    def _kill_daemon(self) -> None:
        """Between two calls, as a crash would."""
        self.killed = lock_holder(self._stage.home.place.lock)
        if self.killed:
            os.kill(self.killed, signal.SIGKILL)


@contextlib.contextmanager
def burning(really: bool) -> Iterator[None]:
    """Every core is busy with something else."""
    burners: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(os.cpu_count() or 1 if really else 0):
            burners.append(subprocess.Popen([sys.executable, "-c", BURN], env=processes.environment()))
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def _is_shim(process: psutil.Process) -> bool:
    try:
        return any(Path(word).name == "pursers-shim" for word in process.cmdline()[:3])
    except psutil.Error:
        return False
