"""tools: what a host sees of the server, and what it reads when it begins in the wrong order."""

from typing import Any

import pytest

from pursersd.rules.resend import TOOLS
from pursersd.tools.questions import QUESTION_TOOLS
from unit.running_app import Client, running

pytestmark = pytest.mark.anyio

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "modern host", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def call(shim: Client, tool: str, **arguments: Any) -> Any:
    await shim.request("c", "tools/call", name=tool, arguments=arguments)
    return (await shim.next())["result"]


async def test_only_tools_that_change_nothing_say_so() -> None:
    async with running() as daemon, daemon.shim() as (shim, _):
        await shim.shake_hands()
        await shim.request(1, "tools/list")
        listed = {tool["name"]: tool for tool in (await shim.next())["result"]["tools"]}
        assert listed.keys() <= TOOLS.keys()
        assert listed["a2a_wait"]["annotations"]["readOnlyHint"]
        assert listed["project_registry_get"]["annotations"]["readOnlyHint"]
        assert all(tool["outputSchema"]["type"] == "object" for tool in listed.values())


async def test_the_server_is_the_bridge_to_its_host() -> None:
    async with running() as daemon, daemon.shim() as (shim, _):
        await shim.request(1, "server/discover", _meta=MODERN)
        answer = (await shim.next())["result"]
        assert answer["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "Pursers Wait Bridge"
        assert not answer.get("instructions")
        (row,) = await daemon.ps()
        assert row["host"] == "modern host"


async def test_a_request_before_the_handshake_says_what_to_do() -> None:
    async with running() as daemon, daemon.shim() as (shim, _):
        await shim.request(1, "tools/list")
        error = (await shim.next())["error"]
        assert error["code"] == -32602
        assert "tools/list came before the handshake. Send initialize first" in error["message"]
        await shim.shake_hands()


async def test_an_unknown_prompt_is_a_wrong_parameter_and_no_defect_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as daemon, daemon.shim() as (shim, _):
        await shim.shake_hands()
        await shim.request(1, "prompts/get", name="nothing")
        error = (await shim.next())["error"]
        assert (error["code"], error["message"]) == (-32602, "Unknown prompt: nothing. This server has no prompts.")
    assert "raised" not in caplog.text


async def test_a_conversation_that_cannot_work_is_told_why() -> None:
    async with running() as daemon, daemon.shim(env={"PURSERS_ROLE": "king"}) as (shim, _):
        await shim.shake_hands()
        result = await call(shim, "a2a_wait", timeout_s=1)
        assert not result["isError"]
        structured = result["structuredContent"]
        assert (structured["mode"], structured["new_seq"]) == ("error", None)
        assert structured["error"]["cause_class"] == "configuration"
        assert "PURSERS_ROLE must be" in structured["error"]["detail"]
        result = await call(shim, "project_registry_get")
        assert result["isError"]
        assert "board join failed (configuration): PURSERS_ROLE must be" in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"since_seq": -1}, "since_seq integer cursors must be non-negative; received -1"),
        ({"since_seq": 2**63}, "at most 9223372036854775807"),
        ({"since_seq": "seven"}, "validation error"),
        ({"timeout_s": 0}, "timeout_s must be an integer from 1 to 560; received 0"),
        ({"timeout_s": 561}, "timeout_s must be an integer from 1 to 560; received 561"),
        ({"wait_for": "all"}, "wait_for must be one of 'auto', 'claimable', or 'submitted'; received 'all'"),
        ({"boards": []}, "boards must contain at least one non-empty board ID; received []"),
    ],
)
async def test_a_wrong_argument_is_refused_with_the_rule(arguments: dict[str, Any], text: str) -> None:
    async with running() as daemon, daemon.shim() as (shim, _):
        await shim.shake_hands()
        result = await call(shim, "a2a_wait", **arguments)
        assert result["isError"]
        assert result["content"][0]["text"].startswith("Error executing tool a2a_wait: ")
        assert text in result["content"][0]["text"]
        (row,) = await daemon.ps()
        assert (row["last_tool"], row["state"]) == ("a2a_wait", "idle")


DECLARED: dict[str, dict[str, Any]] = {
    "ticket_question_ask": {"ticket_id": "TK-1", "message": "?", "kind": "decision"},
    "board_question_inbox": {},
    "ticket_question_answer": {"ticket_id": "TK-1", "question_id": "CQ-1", "message": "Yes."},
    "board_question_wait": {"since_seq": 0},
    "ticket_question_wait": {"ticket_id": "TK-1", "question_id": "CQ-1", "since_seq": 0},
}
OVERRIDES = ("token", "credential", "host_binding", "agent_name", "agent_id", "board_id", "boards", "project", "role")


async def test_a_question_is_asked_and_answered_as_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    value = "a-value-that-is-nobodys-business"
    async with running() as daemon, daemon.shim() as (shim, _):
        await shim.shake_hands()
        await shim.request(1, "tools/list")
        listed = {tool["name"]: tool["inputSchema"] for tool in (await shim.next())["result"]["tools"]}
        closed = {name for name, schema in listed.items() if schema.get("additionalProperties") is False}
        assert closed == DECLARED.keys() == {tool.__name__ for tool in QUESTION_TOOLS}
        for tool, arguments in DECLARED.items():
            for override in OVERRIDES:
                result = await call(shim, tool, **arguments, **{override: value})
                assert result["isError"]
                (shown,) = result["content"]
                assert shown["text"] == (
                    f"Error executing tool {tool}: {tool} received unsupported arguments; "
                    "private auth and identity overrides are never accepted"
                )
    assert value not in caplog.text
