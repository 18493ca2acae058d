"""Questions to the human at the host."""

from collections.abc import Mapping
from typing import Any, Literal

from parity.scenarios.projects import project, stored
from parity.script import HOME, AskHuman, Board, Do, Json, Place, Scenario, Step

Era = Literal["legacy", "modern"]

FORM = {"elicitation": {"form": {}}}
BOTH = {"elicitation": {"form": {}, "url": {}}}
URL = {"elicitation": {"url": {}}}
BARE: dict[str, Any] = {"elicitation": {}}

FURTHER = (Board("second"),)


def place(name: str, era: Era, capabilities: Mapping[str, Any] = FORM, **more: Any) -> Place:
    """A coordinator's conversation in a host of this era that can show these kinds of questions."""
    return Place(f"{name}-{era}", "cora", modern=era == "modern", capabilities=capabilities, **more)


ASKING = {era: place("asking", era) for era in ("legacy", "modern")}
MANY = {era: place("asking-many", era, further=FURTHER) for era in ("legacy", "modern")}
SHUT = {era: place("asking-shut", era, further=(Board("shut", {"cora": None}),)) for era in ("legacy", "modern")}
BOTH_KINDS = {era: place("asking-both", era, BOTH) for era in ("legacy", "modern")}
URL_ONLY = {era: place("asking-url", era, URL) for era in ("legacy", "modern")}
MUTE = {era: place("asking-none", era, {}) for era in ("legacy", "modern")}
WORKER = {
    era: Place(f"asking-worker-{era}", "ann", modern=era == "modern", capabilities=FORM) for era in ("legacy", "modern")
}
OF = {"asking": FORM, "asking-many": FORM, "asking-both": BOTH, "asking-url": URL, "asking-none": {}}

EVERYTHING = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": ["red", "blue"], "title": "Colour"},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "small"}, {"const": "l", "title": "large"}]},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["new", "old"]}, "title": "Tags"},
        "places": {"type": "array", "items": {"type": "string", "enum": ["here", "there"]}},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "share": {"type": "number", "minimum": 0},
        "sure": {"type": "boolean", "default": True},
        "note": {"type": "string", "minLength": 2, "maxLength": 50, "description": "A few words."},
        "disposition": {"type": "string"},
        "_pursers_choice_2_0": {"type": "string"},
    },
    "required": ["colour", "tags", "count"],
}
ANSWER = {
    "colour": "red",
    "size": "l",
    "_pursers_choice_3_1": True,
    "count": 3,
    "share": 0.5,
    "note": "Fine.",
    "disposition": "mine",
    "_pursers_choice_2_0": "mine, too",
    "_pursers_choice_2_0_2": True,
    "_pursers_disposition_2": "reopen",
}
PLAIN = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
NUMBERS = {
    "type": "object",
    "properties": {"many": {"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": 1}},
    "required": ["many"],
}
SECRET = {"type": "object", "properties": {"credential": {"type": "string"}}}
TITLED = {"type": "object", "properties": {"a": {"type": "string", "title": "The API key"}}}


def accept(**content: Any) -> dict[str, Any]:
    """The human fills the form in."""
    return {"action": "accept", "content": content}


DECLINE = {"action": "decline"}
CANCEL = {"action": "cancel"}


def asked(label: str, schema: Mapping[str, Any] | None = PLAIN, board: str = HOME, **more: Any) -> tuple[Do, ...]:
    """A ticket with a question; its id is `TK-`, the label and the scenario's number, so that lists have one order."""
    ticket = {
        "ticket_id": f"TK-{label.lower()}",
        "title": "AskHuman somebody",
        "description": "Made for a comparison.",
        "scope": "READ-ONLY",
        "required_fields": ["summary"],
        "target_url": "alpha/question",
        "unassigned": True,
    }
    question = {"ticket_id": f"${label}", "message": "Which colour?", "kind": "decision", **more}
    if schema is not None:
        question["requested_schema"] = schema
    return (
        Do("boss", "ticket_create", ticket, keep={label: "ticket.ticket_id"}, board=board),
        Do("boss", "ticket_request_human", question, keep={f"R{label}": "request_id"}, board=board),
    )


def one(label: str, *says: Any, of: str = "asking", **more: Any) -> AskHuman:
    """The tool for one question."""
    arguments = {"board_id": "$board", "ticket_id": f"${label}", "request_id": f"$R{label}"}
    return AskHuman("board_human_request", arguments, says, OF.get(of, FORM), **more)


def many(*says: Any, of: str = "asking", **arguments: Any) -> AskHuman:
    """The tool for many of them."""
    more = {name: arguments.pop(name) for name in ("state", "again", "meanwhile") if name in arguments}
    return AskHuman("board_human_requests", {"boards": ["$board"], **arguments}, says, OF.get(of, FORM), **more)


def answered(label: str, **fields: Any) -> AskHuman:
    """The caller answers a question itself."""
    return many(answer={"ticket_id": f"${label}", **fields})


def gone(label: str) -> Do:
    """The boss answers it."""
    resolution = {"ticket_id": f"${label}", "request_id": f"$R{label}", "action": "decline", "disposition": "park"}
    return Do("boss", "ticket_human_resolve", resolution)


def both_eras(name: str, about: str, places: Mapping[str, Place], *steps: Step) -> tuple[Scenario, ...]:
    """The same script in each era."""
    return tuple(Scenario(f"{name}-{era}", about, places[era], steps) for era in ("legacy", "modern"))


ONE = (
    *both_eras("ask-all-fields", "Every kind of field.", ASKING, *asked("AA", EVERYTHING), one("AA", accept(**ANSWER))),
    *both_eras(
        "ask-least",
        "What is not required may be left out.",
        ASKING,
        *asked("AB", EVERYTHING),
        one("AB", accept(colour="blue", count=1, _pursers_disposition_2="park")),
    ),
    *both_eras(
        "ask-no-schema",
        "A question without fields.",
        ASKING,
        *asked("AC", None),
        one("AC", accept(disposition="reopen")),
    ),
    *both_eras("ask-declined", "The human declines.", ASKING, *asked("AD"), one("AD", DECLINE), many()),
    *both_eras("ask-cancelled", "The human wants to be asked later.", ASKING, *asked("AE"), one("AE", CANCEL)),
    *both_eras(
        "ask-wrong-content",
        "The answer does not fit the form.",
        ASKING,
        *asked("AF", EVERYTHING),
        one("AF", accept(colour="green", count=1, _pursers_disposition_2="reopen")),
        one("AF", accept(colour="red", count=99, _pursers_disposition_2="reopen")),
        one("AF", accept(colour="red", count=1)),
        one("AF", accept(colour="red", count=1, more=1, _pursers_disposition_2="reopen")),
        one("AF", {"action": "accept"}),
    ),
    *both_eras(
        "ask-too-few",
        "Central refuses an answer that the form allows.",
        ASKING,
        *asked("AG", NUMBERS),
        one("AG", accept(disposition="reopen")),
    ),
    *both_eras(
        "ask-secret", "No form for secrets.", ASKING, *asked("AH", SECRET), *asked("AI", TITLED), one("AH"), one("AI")
    ),
    *both_eras("ask-url", "This tool has forms only.", ASKING, *asked("AJ", url="https://a.example/q"), one("AJ")),
    *both_eras(
        "ask-nothing",
        "There is no such question.",
        ASKING,
        *asked("AK"),
        AskHuman("board_human_request", {"board_id": "$board", "ticket_id": "$AK", "request_id": "HR-0"}, (), FORM),
        AskHuman("board_human_request", {"board_id": "$board", "ticket_id": "TK-0", "request_id": "$RAK"}, (), FORM),
        AskHuman("board_human_request", {"board_id": "{board}-0", "ticket_id": "$AK", "request_id": "$RAK"}, (), FORM),
        AskHuman("board_human_request", {"ticket_id": "TK-0"}, (), FORM),
    ),
    *both_eras(
        "ask-meanwhile", "Somebody else was faster.", ASKING, *asked("AL"), one("AL", DECLINE, meanwhile=(gone("AL"),))
    ),
    *both_eras("ask-mute", "The host can show no form.", MUTE, *asked("AM"), one("AM", of="asking-none")),
    *both_eras("ask-url-host", "The host can show URLs only.", URL_ONLY, *asked("AN"), one("AN", of="asking-url")),
    *both_eras(
        "ask-denied",
        "The seat may not answer.",
        WORKER,
        *asked("AO"),
        one("AO", accept(colour="red", disposition="park")),
    ),
    Scenario(
        "ask-host-fails",
        "The host answers with an error.",
        ASKING["legacy"],
        (*asked("AP"), one("AP", {"error": {"code": -32000, "message": "no window"}})),
    ),
    Scenario(
        "ask-state-spoiled",
        "A sealed state that was changed is refused.",
        ASKING["modern"],
        (*asked("AQ"), one("AQ", DECLINE, state="spoiled")),
    ),
    Scenario(
        "ask-state-of-others",
        "It belongs to the call with these arguments.",
        ASKING["modern"],
        (
            *asked("AR"),
            one("AR", DECLINE, again={"board_id": "$board", "ticket_id": "$AR", "request_id": "HR-0"}),
        ),
    ),
    Scenario(
        "ask-state-lost",
        "Without it the question is asked again.",
        ASKING["modern"],
        (*asked("AS"), one("AS", DECLINE, state="lost")),
    ),
)

LISTS = (
    *both_eras(
        "list-form",
        "Several questions at once.",
        ASKING,
        *asked("BA", EVERYTHING),
        *asked("BB"),
        *asked("BC", None),
        *asked("BD", SECRET),
        *asked("BE", url="https://a.example/q"),
        many(accept(colour="red", tags=["new"], count=1, _pursers_disposition_2="reopen"), DECLINE, CANCEL),
        many(accept(disposition="park")),
    ),
    *both_eras(
        "list-both",
        "Forms, and URLs for secrets.",
        BOTH_KINDS,
        *asked("CA", url="https://a.example/q"),
        *asked("CB", SECRET, url="https://a.example/r"),
        *asked("CC"),
        many(DECLINE, accept(), accept(colour="red", disposition="reopen"), of="asking-both"),
    ),
    *both_eras(
        "list-url",
        "Only URLs.",
        URL_ONLY,
        *asked("DA"),
        *asked("DB", SECRET),
        many(of="asking-url"),
        *asked("DC", url="https://a.example/q"),
        many(CANCEL, of="asking-url"),
    ),
    *both_eras(
        "list-mute",
        "The host can show none.",
        MUTE,
        *asked("EA", EVERYTHING),
        *asked("EB", SECRET),
        many(of="asking-none"),
    ),
    *both_eras("list-empty", "Nothing is pending.", ASKING, many()),
    *both_eras(
        "list-refused",
        "Central refuses an answer, and takes the next one.",
        ASKING,
        *asked("FA"),
        *asked("FB"),
        many(accept(size=1), accept(colour="red")),
    ),
    *both_eras(
        "list-answer",
        "The caller answers.",
        ASKING,
        *asked("GA"),
        *asked("GB"),
        *asked("GC"),
        answered("GA", action="accept", content={"colour": "red"}),
        answered("GB", action="decline", request_id="$RGB", board_id="$board"),
        answered("GC", action="cancel"),
        answered("GC", action="accept", content={"size": 1}),
        answered("GC", action="decline", disposition="cancel"),
        answered("GC", action="decline"),
    ),
    *both_eras(
        "list-answer-refused",
        "What an answer must be.",
        ASKING,
        many(answer={}),
        many(answer={"ticket_id": ""}),
        many(answer={"ticket_id": "TK-0", "action": "maybe"}),
        many(answer={"ticket_id": "TK-0", "action": "accept", "content": "red"}),
        many(answer={"ticket_id": "TK-0", "action": "accept"}),
        many(answer="red"),
        many(boards=[]),
        many(boards=["  "]),
        many(boards=5),
    ),
    *both_eras(
        "list-boards",
        "The boards of a list, a text, a registry.",
        MANY,
        *asked("HA"),
        *asked("HB", board="second"),
        many(CANCEL, CANCEL, boards=["$second", "$board", "$second"]),
        many(CANCEL, CANCEL, boards="{board}, {second}"),
        many(boards="registry"),
        stored(Json({"schema_version": 1, "projects": {"alpha": project(board_id="$second")}})),
        many(CANCEL, CANCEL, boards=" Registry "),
        many(CANCEL, boards=" , "),
    ),
    *both_eras(
        "list-unread",
        "A board that cannot be read.",
        SHUT,
        many(boards=["$shut"]),
        *asked("NA"),
        many(CANCEL, boards=["$board", "$shut"]),
        many(answer={"ticket_id": "TK-0", "action": "decline"}, boards=["$shut"]),
    ),
    *both_eras(
        "list-denied",
        "The seat may not answer.",
        WORKER,
        *asked("IA"),
        many(accept(colour="red")),
        answered("IA", action="decline"),
    ),
    Scenario(
        "list-host-fails",
        "The host answers with an error, then to the next question.",
        ASKING["legacy"],
        (*asked("JA"), *asked("JB"), many({"error": {"code": -32000, "message": "no window"}}, CANCEL)),
    ),
    Scenario(
        "list-partly",
        "Not all questions are answered.",
        ASKING["modern"],
        (*asked("KA"), *asked("KB"), many(accept(colour="red"), None)),
    ),
    *(
        Scenario(
            f"list-state-{state}",
            "What becomes of a round without its state.",
            ASKING["modern"],
            (*asked(label), many(DECLINE, state=state)),
        )
        for state, label in (("spoiled", "LA"), ("lost", "LB"))
    ),
    Scenario(
        "list-state-of-others",
        "It belongs to the call with these arguments.",
        ASKING["modern"],
        (*asked("MA"), many(DECLINE, again={"boards": "registry"})),
    ),
)

SCENARIOS = (*ONE, *LISTS)
