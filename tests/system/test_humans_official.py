"""Questions to the human of the official Python client, through its own callback, in both eras."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import anyio
import pytest
from anyio import to_thread
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import ElicitRequestFormParams, ElicitRequestURLParams, ElicitResult

from rig.central import Central
from rig.daemon import Home
from rig.shim import SHIM
from system.host import MANY, ONE, Json, Office
from system.scene import PATIENCE

MODES = ["legacy", "auto", "2026-07-28"]

EVERYTHING = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 1, "maxLength": 20, "title": "A text", "description": "Some words."},
        "choice": {"type": "string", "enum": ["a", "b"]},
        "titled": {"type": "string", "oneOf": [{"const": "s", "title": "small"}, {"const": "l", "title": "large"}]},
        "several": {"type": "array", "items": {"type": "string", "enum": ["x", "y", "z"]}},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "share": {"type": "number", "minimum": 0},
        "sure": {"type": "boolean"},
    },
    "required": ["text", "several", "count"],
}
FILLED_IN: Any = {
    "text": "Grüße",
    "choice": "b",
    "titled": "l",
    "_pursers_choice_3_0": True,
    "_pursers_choice_3_2": True,
    "count": 3,
    "share": 0.25,
    "sure": False,
    "disposition": "reopen",
}
ANSWER = {
    "text": "Grüße",
    "choice": "b",
    "titled": "l",
    "several": ["x", "z"],
    "count": 3,
    "share": 0.25,
    "sure": False,
}
ACCEPT = ElicitResult(action="accept", content={"colour": "red", "disposition": "reopen"})

Human = Callable[[ElicitRequestFormParams | ElicitRequestURLParams], Awaitable[ElicitResult]]


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with Home() as home:
        home.start_daemon()
        yield home


@pytest.fixture
def office(central: Central, home: Home, board: str) -> Office:
    return Office(central, home, board, central.url)


def converse(office: Office, mode: str, human: Human, body: Callable[[Client], Awaitable[None]]) -> None:
    """Run the body with a client whose human this is."""

    async def ask(context: Any, params: Any) -> ElicitResult:
        return await human(params)

    async def main() -> None:
        shim = StdioServerParameters(command=SHIM, env=office.environment)
        with anyio.fail_after(3 * PATIENCE):
            async with Client(stdio_client(shim), mode=mode, elicitation_callback=ask) as client:
                await body(client)

    anyio.run(main)


async def called(client: Client, tool: str, arguments: Json) -> Json:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


@pytest.mark.parametrize("mode", MODES)
def test_every_kind_of_field(office: Office, mode: str) -> None:
    question = office.ask(schema=EVERYTHING)
    shown: list[Any] = []

    async def human(params: Any) -> ElicitResult:
        shown.append(params)
        return ElicitResult(action="accept", content=FILLED_IN)

    async def body(client: Client) -> None:
        found = await called(client, ONE, question)
        assert [(x["action"], x["disposition"]) for x in found["resolved"]] == [("accept", "reopen")]

    converse(office, mode, human, body)
    (asked,) = shown
    assert asked.message == f"[{office.board}/{question['ticket_id']}] Which colour?"
    types = {name: field["type"] for name, field in asked.requested_schema["properties"].items()}
    assert list(types) == [
        "text",
        "choice",
        "titled",
        *(f"_pursers_choice_3_{number}" for number in range(3)),
        "count",
        "share",
        "sure",
        "disposition",
    ]
    assert set(types.values()) == {"string", "boolean", "integer", "number"}
    resolution = office.resolution(question)
    assert resolution is not None
    assert resolution["content"] == ANSWER


@pytest.mark.parametrize("mode", MODES)
def test_ten_questions_one_after_the_other(office: Office, mode: str) -> None:
    said = [ACCEPT, ElicitResult(action="decline"), ElicitResult(action="cancel")] * 3 + [ACCEPT]
    answers = iter(said)
    questions = [office.ask(f"Question {number}?") for number in range(10)]

    async def human(params: Any) -> ElicitResult:
        return next(answers)

    async def body(client: Client) -> None:
        for question, one in zip(questions, said, strict=True):
            found = await called(client, ONE, question)
            assert [x["action"] for x in found["resolved"]] == ([] if one.action == "cancel" else [one.action])
            assert len(found.get("deferred", [])) == (one.action == "cancel")

    converse(office, mode, human, body)
    resolutions = [office.resolution(question) for question in questions]
    assert [found["action"] if found else "cancel" for found in resolutions] == [one.action for one in said]


@pytest.mark.parametrize("mode", MODES)
def test_many_questions_at_once_forms_and_urls(office: Office, mode: str) -> None:
    form = office.ask("A form?")
    url = office.ask("An address?", url="https://a.example/q", schema=None)
    secret = office.ask("A secret?", schema={"type": "object", "properties": {"credential": {"type": "string"}}})
    shown: list[Any] = []

    async def human(params: Any) -> ElicitResult:
        shown.append(params)
        return ElicitResult(action="accept") if isinstance(params, ElicitRequestURLParams) else ACCEPT

    async def body(client: Client) -> None:
        found = await called(client, MANY, {"boards": [office.board]})
        assert {x["ticket_id"] for x in found["resolved"]} == {form["ticket_id"], url["ticket_id"]}
        assert [x["ticket_id"] for x in found["unasked"]] == [secret["ticket_id"]]
        assert "secrets or credentials" in found["unasked"][0]["reason"]
        assert found["ok"] is True

    converse(office, mode, human, body)
    urls = [params.url for params in shown if isinstance(params, ElicitRequestURLParams)]
    assert (urls, len(shown)) == (["https://a.example/q"], 2)
    assert office.resolution(secret) is None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tool", [ONE, MANY])
def test_the_daemon_dies_while_the_human_reads(office: Office, mode: str, tool: str) -> None:
    question = office.ask()
    reads: list[str] = []

    async def human(params: Any) -> ElicitResult:
        reads.append(params.message)
        if len(reads) == 1:
            await to_thread.run_sync(office.crash)
            if mode == "legacy":  # the form is taken back: this reading ends with the link
                await anyio.sleep_forever()
        return ACCEPT

    async def body(client: Client) -> None:
        found = await called(client, tool, question if tool == ONE else {"boards": [office.board]})
        assert [x["action"] for x in found["resolved"]] == ["accept"]

    converse(office, mode, human, body)
    assert reads == reads[:1] * (2 if mode == "legacy" else 1)
    assert office.answers() == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_host_without_a_human_is_told_how_to_answer(office: Office, mode: str) -> None:
    question = office.ask()

    async def body(client: Client) -> None:
        found = await called(client, MANY, {"boards": [office.board]})
        assert [x["schema_summary"] for x in found["pending"]] == ["colour*:string"]
        assert "board_human_requests again with answer=" in found["instructions"]
        given = {"ticket_id": question["ticket_id"], "action": "accept", "content": {"colour": "red"}}
        found = await called(client, MANY, {"boards": [office.board], "answer": given})
        assert found["resolved"][0]["disposition"] == "reopen"

    async def main() -> None:
        with anyio.fail_after(3 * PATIENCE):
            shim = StdioServerParameters(command=SHIM, env=office.environment)
            async with Client(stdio_client(shim), mode=mode) as client:
                await body(client)

    anyio.run(main)
    assert office.answers() == 1
