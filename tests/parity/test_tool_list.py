"""tools/list in both eras: the real bridge's list, but for the differences `tool-hints` and `descriptions`."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from bench.snapshot import SNAPSHOT

from pursersd.rules import resend
from pursersd.tools.server import TOOLS
from rig.daemon import Home
from rig.shim import BRIDGE, ShimProcess
from rig.speaker import modern_meta

Json = dict[str, Any]
ERAS = ("legacy", "modern")
OURS_ALONE = ("description", "annotations")
"""Fields in which we mean to differ."""


@pytest.fixture(scope="module")
def bridge() -> Iterator[dict[str, Json]]:
    """What the bridge answers, by era. It needs no Central for that."""
    with Home() as home:
        environment = home.environment("http://127.0.0.1:1/mcp", "not-a-token", "board", "ann")
        with ShimProcess([BRIDGE], environment) as legacy, ShimProcess([BRIDGE], environment) as modern:
            legacy.initialize()
            yield {
                "legacy": legacy.request("tools/list"),
                "modern": modern.request("tools/list", {"_meta": modern_meta()}),
            }


@pytest.fixture(scope="module")
def ours() -> dict[str, Json]:
    """What we answer, by era: the packaged answer, which another test keeps equal to the daemon's."""
    found: dict[str, Json] = json.loads(SNAPSHOT.read_text(encoding="utf-8"))["tools/list"]
    return found


def shared(tool: Json) -> Json:
    """All but OURS_ALONE."""
    return {name: value for name, value in tool.items() if name not in OURS_ALONE}


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_are_the_bridge_s_in_its_order(bridge: dict[str, Json], ours: dict[str, Json], era: str) -> None:
    names = [tool["name"] for tool in bridge[era]["tools"]]
    assert len(names) == 13
    assert [tool.__name__ for tool in TOOLS] == names
    assert [tool["name"] for tool in ours[era]["tools"]] == names, "run: make snapshot"
    for their_tool, our_tool in zip(bridge[era]["tools"], ours[era]["tools"], strict=True):
        assert our_tool.keys() == their_tool.keys() | {"annotations"}
        assert shared(our_tool) == shared(their_tool)
        for schema in ("inputSchema", "outputSchema"):
            assert json.dumps(our_tool[schema]) == json.dumps(their_tool[schema]), "also the order of the arguments"


@pytest.mark.parametrize("era", ERAS)
def test_the_rest_of_the_answer_is_the_bridge_s(bridge: dict[str, Json], ours: dict[str, Json], era: str) -> None:
    theirs, our = ({k: v for k, v in side[era].items() if k != "tools"} for side in (bridge, ours))
    assert our == theirs


@pytest.mark.parametrize("era", ERAS)
def test_descriptions_are_our_own(bridge: dict[str, Json], ours: dict[str, Json], era: str) -> None:
    theirs = {tool["name"]: tool["description"] for tool in bridge[era]["tools"]}
    for tool in ours[era]["tools"]:
        assert tool["description"].strip()
        assert tool["description"] != theirs[tool["name"]]


@pytest.mark.parametrize("era", ERAS)
def test_hints_come_from_the_table(ours: dict[str, Json], era: str) -> None:
    for tool in ours[era]["tools"]:
        line = resend.TOOLS[tool["name"]]
        assert tool["annotations"] == {
            "readOnlyHint": resend.read_only(tool["name"]),
            "destructiveHint": line.destructive,
        }
        assert not (resend.read_only(tool["name"]) and line.destructive)


def test_the_table_has_each_tool_of_the_bridge(bridge: dict[str, Json]) -> None:
    assert list(resend.TOOLS) == [tool["name"] for tool in bridge["legacy"]["tools"]]
