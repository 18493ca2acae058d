"""Questions to the human of the official TypeScript SDK, in both eras (`make test-typescript`)."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from rig import processes
from rig.central import Central
from rig.daemon import Home
from rig.shim import SHIM
from system.host import LATER, MANY, NO, ONE, YES, Json, Office

CLIENT = "@modelcontextprotocol/client@2.4.0"
INSTALL_TIMEOUT = 300.0

NUMBERS = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1},
        "share": {"type": "number"},
        "sure": {"type": "boolean"},
        "colour": {"type": "string", "enum": ["red", "blue"]},
        "titled": {"type": "string", "oneOf": [{"const": "s", "title": "small"}]},
        "several": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
    },
    "required": ["count"],
}
FILLED_IN = {
    "count": 2,
    "share": 0.5,
    "sure": True,
    "colour": "blue",
    "titled": "s",
    "_pursers_choice_5_1": True,
    "disposition": "reopen",
}
ANSWER = {"count": 2, "share": 0.5, "sure": True, "colour": "blue", "titled": "s", "several": ["y"]}


@pytest.fixture(scope="session")
def driver() -> Iterator[Path]:
    """The driver beside an installed SDK, in a folder of its own; skips when that cannot be had."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("Node.js with npm is not installed here: nothing was tested")
    with tempfile.TemporaryDirectory(prefix="pursers-typescript-") as name:
        folder = Path(name)
        (folder / "package.json").write_text('{"private": true, "type": "module"}')
        # npm writes below HOME otherwise.
        environment = {
            **os.environ,
            "HOME": name,
            "npm_config_cache": f"{name}/cache",
            "npm_config_update_notifier": "false",
        }
        command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", CLIENT]
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=INSTALL_TIMEOUT
            )
        except subprocess.TimeoutExpired:
            pytest.skip(
                f"npm did not install {CLIENT} within {INSTALL_TIMEOUT:g} s (is its registry in reach?): nothing was tested"
            )
        if done.returncode:
            pytest.skip(f"npm could not install {CLIENT}: nothing was tested. It says: {done.stderr.strip()[-500:]}")
        yield Path(shutil.copy(Path(__file__).with_name("host.mjs"), folder))


class Host:
    """The driver at work."""

    def __init__(self, driver: Path, office: Office, modern: bool, calls: Sequence[tuple[str, Json]]) -> None:
        job = {
            "command": SHIM,
            "env": office.environment,
            "modern": modern,
            "calls": [{"name": name, "arguments": arguments} for name, arguments in calls],
        }
        self.process = subprocess.Popen(
            ["node", str(driver), json.dumps(job)],
            env=processes.environment({"PATH": os.environ["PATH"]}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        processes.stop(self.process, (), patience=5.0 if kind is None else 0.1)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def next(self) -> Any:
        """The next line that it prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the driver ended"
        return json.loads(line)

    def respond(self, question: Json, said: Json) -> None:
        """The human's response."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"number": question["number"], "said": said}) + "\n")
        self.process.stdin.flush()

    def result(self) -> Json:
        """The structured result of the call that ended."""
        line = self.next()
        assert "result" in line, line
        assert not line["result"].get("isError"), line
        found: Json = line["result"]["structuredContent"]
        return found


@pytest.fixture
def office(central: Central, home: Home, board: str) -> Office:
    home.start_daemon()
    return Office(central, home, board, central.url)


ERAS = pytest.mark.parametrize("modern", [False, True], ids=["2025-11-25", "2026-07-28"])


@ERAS
def test_every_kind_of_field(driver: Path, office: Office, modern: bool) -> None:
    question = office.ask(schema=NUMBERS)
    with Host(driver, office, modern, [(ONE, question)]) as host:
        asked = host.next()
        assert asked["asked"]["message"] == f"[{office.board}/{question['ticket_id']}] Which colour?"
        assert set(FILLED_IN) <= set(asked["asked"]["requestedSchema"]["properties"])
        host.respond(asked, {"action": "accept", "content": FILLED_IN})
        assert [x["disposition"] for x in host.result()["resolved"]] == ["reopen"]
    resolution = office.resolution(question)
    assert resolution is not None
    assert resolution["content"] == ANSWER


@ERAS
def test_ten_questions_accepted_declined_and_put_off(driver: Path, office: Office, modern: bool) -> None:
    said = [YES, NO, LATER] * 3 + [YES]
    questions = [office.ask() for _ in said]
    with Host(driver, office, modern, [(ONE, question) for question in questions]) as host:
        for one in said:
            host.respond(host.next(), one)
            assert [x["action"] for x in host.result()["resolved"]] == ([] if one is LATER else [one["action"]])
    assert office.answers() == 7


@ERAS
def test_many_questions_forms_and_addresses(driver: Path, office: Office, modern: bool) -> None:
    form, url = office.ask(), office.ask(schema=None, url="https://a.example/q")
    with Host(driver, office, modern, [(MANY, {"boards": [office.board]})]) as host:
        modes = []
        for _ in range(2):
            asked = host.next()
            modes.append(asked["asked"].get("mode", "form"))
            host.respond(asked, {"action": "accept"} if modes[-1] == "url" else YES)
        assert sorted(modes) == ["form", "url"]
        assert {x["ticket_id"] for x in host.result()["resolved"]} == {form["ticket_id"], url["ticket_id"]}


@ERAS
@pytest.mark.parametrize("tool", [ONE, MANY])
def test_the_daemon_dies_while_the_human_reads(driver: Path, office: Office, modern: bool, tool: str) -> None:
    question = office.ask()
    with Host(driver, office, modern, [(tool, question if tool == ONE else {"boards": [office.board]})]) as host:
        asked = host.next()
        office.crash()
        if not modern:
            assert host.next() == {"taken_back": asked["number"]}
            again = host.next()
            assert again["asked"]["message"] == asked["asked"]["message"]
            host.respond(asked, NO)
            asked = again
        host.respond(asked, YES)
        assert [x["action"] for x in host.result()["resolved"]] == ["accept"]
    assert office.answers() == 1


@ERAS
def test_what_was_asked_for_in_vain_is_an_error_that_can_be_read(driver: Path, office: Office, modern: bool) -> None:
    question = office.ask()
    wrong = {**question, "request_id": "HR-0"}
    with Host(driver, office, modern, [(ONE, wrong)]) as host:
        result = host.next()["result"]
        assert result["isError"]
        assert result["content"][0]["text"].endswith(f"no pending human request found for {'/'.join(wrong.values())}")
