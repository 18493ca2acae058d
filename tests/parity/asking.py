"""The host's side of a question to its human, in both eras."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from parity.normal import outcome
from parity.script import AskHuman
from rig.shim import Ended, Json, ShimProcess
from rig.speaker import modern_meta
from rig.wait import until

if TYPE_CHECKING:
    from parity.play import Play

PATIENCE = 60.0


def ask(play: "Play", step: AskHuman) -> Json:
    """Call the tool, let the human respond, and return what was asked and the outcome."""
    process = play.stage.process
    says = iter(step.says)
    era = _modern if play.stage.place.modern else _legacy
    asked: list[Any] = []
    try:
        found: Any = era(play, process, step, says, asked)
    except Ended:
        found = {"ended": process.wait()}
    assert next(says, None) is None, f"the human was asked less than expected: {asked}, {found}"
    return {"asked": asked, "outcome": found}


def _legacy(play: "Play", process: ShimProcess, step: AskHuman, says: Iterator[Any], asked: list[Any]) -> Any:
    """Each question is a request of the server."""
    seen = len(process.received)
    pending = process.start_tool(step.tool, play.filled_in(step.arguments))

    def question() -> Json | bool:
        nonlocal seen
        while seen < len(process.received):
            message = process.received[seen]
            seen += 1
            if "method" in message and "id" in message:
                return message
        return pending.done

    while isinstance(message := until(question, PATIENCE, "a question or the answer"), dict):
        if not asked:
            for act in step.meanwhile:
                play.do(act)
        asked.append({"method": message["method"], "params": message["params"]})
        said = play.filled_in(next(says))
        told = {"error": said["error"]} if "error" in said else {"result": said}
        process.say({"jsonrpc": "2.0", "id": message["id"], **told})
    return outcome(pending.message(PATIENCE))


def _modern(play: "Play", process: ShimProcess, step: AskHuman, says: Iterator[Any], asked: list[Any]) -> Any:
    """All questions are the result of the call; the responses come with another one."""
    envelope = {"_meta": modern_meta(capabilities=dict(step.capabilities))}
    params: Json = {"name": step.tool, "arguments": play.filled_in(step.arguments), **envelope}
    while True:
        message = process.start("tools/call", params).message(PATIENCE)
        result = message.get("result", {})
        if result.get("resultType") != "input_required":
            return outcome(message)
        questions: Mapping[str, Any] = result["inputRequests"]
        assert result["requestState"].startswith("v1."), result
        assert len(asked) < 3, "it asks again and again"
        if not asked:
            for act in step.meanwhile:
                play.do(act)
        asked.append({"questions": questions, "meta": result.get("_meta")})
        responses = {key: play.filled_in(next(says, None)) for key in sorted(questions)}
        if not any(response is not None for response in responses.values()):
            return "(asked)"
        if step.again is not None:
            params["arguments"] = play.filled_in(step.again)
        params["inputResponses"] = {key: response for key, response in responses.items() if response is not None}
        params.update(_state(step, result["requestState"]))


def _state(step: AskHuman, sealed: str) -> Json:
    if step.state == "lost":
        return {}
    return {"requestState": sealed if step.state == "kept" else f"{sealed[:-2]}{'AA' if sealed[-2:] != 'AA' else 'BB'}"}
