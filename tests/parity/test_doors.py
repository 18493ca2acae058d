"""The verbs for doors: the lines, texts and exit codes of the bridge and ours, one after the other on one Central."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rig import processes
from rig.central import Central
from rig.daemon import Home
from rig.doors import Issuer, packed

BRIDGE = str(processes.BIN / "pursers-wait-bridge")
VERBS = {"status": "doors"}
"""What is called otherwise by us."""


@dataclass
class Side:
    """One of the two programs, with a board and a state folder of its own."""

    program: str
    board: str
    home: Home
    folder: Path
    doors: dict[str, str] = field(default_factory=dict)
    """Doors by the name that a step gives them."""

    def __call__(self, verb: str, *arguments: str) -> tuple[int, str, str]:
        """Exit code, lines and error of a verb, without what must differ: the board's name, times, the program's name."""
        words = [self.doors.get(word, word.replace("BOARD", self.board)) for word in arguments]
        if self.program == "pursersctl":
            done = self.home.ctl(VERBS.get(verb, verb), *words, "--state-dir", str(self.folder))
        else:
            done = subprocess.run(
                [BRIDGE, verb, *words, "--state-dir", str(self.folder)],
                env=self.home.environment(role=None),
                capture_output=True,
                text=True,
                timeout=30,
            )
        # The libraries of the bridge log to its stderr, too.
        errors = [line for line in done.stderr.splitlines() if line.startswith(f"{self.program}: ")]
        texts = (self._plain(text) for text in (done.stdout, "\n".join(errors)))
        return done.returncode, *texts

    def _plain(self, text: str) -> str:
        text = text.replace(self.board, "BOARD").replace(f"{self.program}: ", "")
        return re.sub(r"exp=\d+", "exp=TIME", text)


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[tuple[Central, Issuer, list[Side]]]:
    with Central() as central, Home() as home:
        home.start_daemon()
        found = []
        for program in ("pursers-wait-bridge", "pursersctl"):
            central.create_board(board := f"of-{program}")
            found.append(Side(program, board, home, tmp_path / program))
        yield central, Issuer(central), found


def test_the_verbs_for_doors(sides: tuple[Central, Issuer, list[Side]]) -> None:
    _, issuer, (bridge, ours) = sides

    def same(*words: str) -> tuple[int, str, str]:
        answers = [side(*words) for side in (bridge, ours)]
        assert answers[0] == answers[1], words
        return answers[0]

    for side in (bridge, ours):
        side.doors["first"] = issuer.issue(side.board)
    assert same("status") == (0, "push_mode=push\n", "")
    assert same("forget", "--board", "BOARD", "--role", "worker")[1] == "forgot=no board=BOARD role=worker\n"

    assert same("join", "first", "--name", "early") == (1, "", "board access denied: invite required")
    # The one difference: what Central refused is stored by the bridge all the same (docs/compatibility.md).
    assert "seat_names_used=early" in bridge("status")[1]
    assert ours("status")[1] == "push_mode=push\n"
    bridge("forget", "--board", "BOARD", "--role", "worker")

    for side in (bridge, ours):
        issuer.admit(side.board)
    assert same("join", "first", "--name", "me")[0] == 0
    assert same("join", "first", "--name", "me")[2].startswith("seat name already active under this principal")
    assert same("join", "first")[0] == 0
    for side in (bridge, ours):
        side.doors["second"] = issuer.rotate(side.board)
        side.doors["reviewer"] = issuer.issue(side.board, "reviewer")
    assert same("join", "second")[2] == "a door already exists for this board and role; use --rotate"
    assert same("join", "reviewer", "--rotate")[2].startswith("--rotate requires an existing door")
    assert same("join", "second", "--rotate", "--name", "again")[0] == 0
    assert same("status")[1].count("\n") == 2
    assert same("forget", "--board", "BOARD", "--role", "worker")[1] == "forgot=yes board=BOARD role=worker\n"
    assert same("forget", "--board", "BOARD", "--role", "king")[0] == 2

    for bad in (packed(r="king"), packed("ftp://x"), packed("https://central.invalid/mcp"), "prs1.", packed(x=1)):
        assert same("join", bad)[0] == 1
    assert same("join", packed(), "--name", "-")[2] == "--name must be a safe 1-80 character identifier"
    assert same("join")[0] == 2
    for side in (bridge, ours):
        (side.folder / "doors.json").write_text("{}")
    assert [side("status")[0] for side in (bridge, ours)] == [1, 1]
    # Ours says more about a file that cannot be used: where it is and what to do.
    assert ours("status")[2].startswith(bridge("status")[2])
