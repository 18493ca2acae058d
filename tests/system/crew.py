"""One conversation for each of the thirteen tools, on one board, each with something real to do, and what became of that."""

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from pursersd.rules import resend
from rig.central import ADMIN_SEAT, Central
from rig.daemon import Home
from rig.proxy import Proxy
from rig.shim import Pending, ShimProcess
from rig.wait import until
from system.asking import COORDINATOR_SCOPE, Company
from system.host import FIELDS, YES, LegacyHost
from system.scene import PATIENCE, Json, ask

WAIT_S = 120  # what each wait is asked for; no test lasts that long

AT_CENTRAL = {
    "ticket_question_ask": "ticket_question_ask",
    "ticket_question_answer": "ticket_question_answer",
    "board_human_request": "ticket_human_resolve",
    "board_human_requests": "ticket_human_resolve",
}
"""The tools that change something there, and what each asks for last."""

LAST_REQUESTS = AT_CENTRAL | {
    "board_question_inbox": "board_question_inbox",
    "project_registry_get": "board_state_get",
    "board_digest": "board_state_get",
    "board_digest_ack": "board_state_get",
    "board_watch": "board_state_get",
    "board_unwatch": "board_state_get",
}
"""The same of all that do not block. The digest's tools ask for theirs once, before they do what they do by themselves."""

ROLES = {"ann": "worker", "cora": "coordinator", "dora": "coordinator", "lea": "orchestrator"}
"""Who asks, who answers, who has a human at the host, who reads digests: each with a credential of its own."""


@dataclass(slots=True)
class Job:
    """What one conversation is to do."""

    tool: str
    shim: ShimProcess
    arguments: Json
    effects: Callable[[], int] | None
    """How often it has been done; None where there is nothing to count."""
    human: LegacyHost[ShimProcess] | None
    """Who answers the form, where one is shown."""
    call: Pending[Json] | None = None

    @property
    def answers(self) -> int:
        """How many answers the call has got."""
        assert self.call is not None, "it was begun"
        return len(self.shim.answers(self.call.id))


class Crew:
    """The conversations, by tool."""

    def __init__(self, central: Central, home: Home, board: str, proxy: Proxy) -> None:
        self.central, self.home, self.board, self.proxy = central, home, board, proxy
        self.jobs: dict[str, Job] = {}
        self._cancelled: list[Job] = []
        self.company = company = Company(central, home, board, proxy.url)
        central.admit(board, "dora", client_id="dora")
        company.tokens["dora"] = central.mint("dora", COORDINATOR_SCOPE, board, client_id="dora")
        company.promote("ann")  # so that each seat of hers may ask about each ticket
        project = {"board_id": board, "work_dir": "/srv", "status": "active"}
        value = json.dumps({"schema_version": 1, "projects": {board: project}})
        company.act(ADMIN_SEAT, "board_state_update", key="project_registry", value=value)
        self.about = central.create_ticket(board, "to ask about")
        self._answered = self._ask("ann", company.held("has a question"))
        self._awaited = self._ask("ann-waits", company.held("has another one", "ann-waits"))
        self._enlist(central.head(board))
        assert self.jobs.keys() == resend.TOOLS.keys()

    def _enlist(self, head: int) -> None:
        one, many, pins = self._ask_human(), self._ask_human(), {"ticket_ids": [self.about]}
        question = {"ticket_id": self.about, "message": "May I?", "kind": "decision"}
        answer = {"ticket_id": many["ticket_id"], "action": "accept", "content": {"colour": "red"}}
        since = {"since_seq": head, "timeout_s": WAIT_S}
        told, recorded = self._told, self._recorded
        self._add("project_registry_get", "ann-reads", {})
        self._add("board_digest", "lea-reads", {})
        self._add("board_digest_ack", "lea-acks", {"cursor_map": {self.board: head}}, lambda: recorded("answers"))
        self._add("board_watch", "lea-pins", pins, lambda: recorded("watched_ticket_ids"))
        self._add("board_unwatch", "lea-unpins", pins)
        self._add("board_human_request", "dora-one", one, lambda: told("human_input_resolved", one), is_human=True)
        self._add(
            "board_human_requests",
            "dora-many",
            {"boards": [self.board], "answer": answer},
            lambda: told("human_input_resolved", many),
        )
        self._add("ticket_question_ask", "ann-asks", question, lambda: len(self.company.questions(self.about)))
        self._add("board_question_inbox", "cora", {})
        self._add(
            "ticket_question_answer",
            "cora",
            {**self._answered, "message": "Yes."},
            lambda: told("coordinator_question_answered", self._answered),
        )
        self._add("board_question_wait", "cora", since)
        self._add("ticket_question_wait", "ann-waits", {**self._awaited, **since})
        self._add("a2a_wait", "ann-works", since)

    def _add(
        self,
        tool: str,
        agent: str,
        arguments: Json,
        effects: Callable[[], int] | None = None,
        *,
        is_human: bool = False,
    ) -> None:
        name = agent.partition("-")[0]
        token = self.company.tokens[name]
        shim = self.home.shim(self.home.environment(self.proxy.url, token, self.board, agent, ROLES[name]))
        human = LegacyHost(shim) if is_human else None
        if human is None:
            shim.initialize()
        self.jobs[tool] = Job(tool, shim, arguments, effects, human)

    # --- what they do -----------------------------------------------------------------------------------------------

    def call(self) -> None:
        """Everybody calls its tool."""
        for job in self.jobs.values():
            job.call = job.shim.start_tool(job.tool, job.arguments)

    def cancel(self) -> None:
        """Nobody wants an answer any more. (What needs nothing of Central may have been answered already.)"""
        self._cancelled = [job for job in self.jobs.values() if not job.answers]
        for job in self._cancelled:
            assert job.call is not None, "it was begun"
            job.shim.cancel(job.call.id)

    def humans_answer(self) -> None:
        """The form that is shown now, or soon, is answered."""
        for job in self.jobs.values():
            if job.human is not None:
                job.human.respond(job.human.question(), YES)

    def hold(self) -> None:
        """From now on what is asked for last does not get to Central."""
        for name in set(LAST_REQUESTS.values()):
            self.proxy.hold(name)

    def release(self) -> None:
        for name in set(LAST_REQUESTS.values()):
            self.proxy.release(name)

    def begin(self) -> None:
        """Everybody calls; return when nothing is left to send, the humans have answered, and Central has none of it."""
        self.hold()
        self.call()
        self.humans_answer()
        until(self._is_on_its_way, PATIENCE, "all is on its way")

    def _is_on_its_way(self) -> bool:
        changes = Counter(AT_CENTRAL.values())
        return all(self.proxy.holding(name) >= max(changes[name], 1) for name in LAST_REQUESTS.values())

    def until_given_up(self) -> None:
        """Return when nothing is on its way any more."""
        until(lambda: not any(map(self.proxy.holding, LAST_REQUESTS.values())), PATIENCE, "nothing is on its way")

    def crash(self, *, carried_out: bool) -> None:
        """The daemon dies: before Central has what everybody asks for, or when it has all of it and nobody has heard so."""
        daemon = self.home.daemon_pid()
        if carried_out:
            os.kill(daemon, signal.SIGSTOP)
            self.release()
            done = [self.jobs[tool].effects for tool in AT_CENTRAL]
            until(lambda: all(effects is not None and effects() for effects in done), PATIENCE, "Central has it all")
        os.kill(daemon, signal.SIGKILL)
        if not carried_out:
            self.until_given_up()
            self.release()

    def happen(self) -> None:
        """What the waits wait for."""
        self.central.create_ticket(self.board, "new work")
        self._ask("ann", self._answered["ticket_id"])
        cora = self.jobs["board_question_inbox"].shim
        cora.call_tool("ticket_question_answer", {**self._awaited, "message": "Yes."})

    # --- what became of it ------------------------------------------------------------------------------------------

    def assert_done_once(self) -> None:
        """Every call has one answer, which is a success, and was carried out once."""
        for tool, job in self.jobs.items():
            result = self.outcome(job)["result"]
            assert not result.get("isError"), (tool, result)
            assert result["structuredContent"].get("ok", True) is True, (tool, result)
            assert not result["structuredContent"].get("timed_out"), (tool, result)
            assert job.effects is None or job.effects() == 1, tool
        assert self.keys() <= 1

    def outcome(self, job: Job) -> Json:
        """The one answer to a call. A form that was taken back with its link is shown again, and is answered again."""
        call, human = job.call, job.human
        assert call is not None, "it was begun"

        def is_done() -> bool:
            if human is not None and human.is_asked:
                human.respond(human.question(), YES)
            return call.done

        until(is_done, PATIENCE, f"{job.tool} is answered")
        assert job.shim.request("ping") == {}
        assert job.answers == 1, job.tool
        return call.message(0)

    def assert_nothing_done(self) -> None:
        """What was cancelled has no answer, does not go on, and was not carried out."""
        assert {job.tool for job in self._cancelled} >= {*AT_CENTRAL, "a2a_wait", "project_registry_get"}
        for job in self._cancelled:
            assert job.shim.request("ping") == {}
            assert job.answers == 0, job.tool

        def is_idle() -> bool:
            centrals, rows = ask(self.home, "status")["centrals"], ask(self.home, "ps")["seats"]
            is_quiet = all(c["waits"] == c["call_connections"] == 0 for c in centrals)
            return is_quiet and len(rows) == len(self.jobs) and all(row["state"] == "idle" for row in rows)

        until(is_idle, PATIENCE, "nothing goes on")
        assert not any(job.effects() for job in self._cancelled if job.effects is not None and job.tool in AT_CENTRAL)

    def keys(self) -> int:
        """How many different questions the daemons meant to ask, by their keys."""
        return len({seen.arguments["message_id"] for seen in self.proxy.seen("ticket_question_ask")})

    def _ask(self, agent: str, ticket: str) -> Json:
        asked = {"ticket_id": ticket, "message": "A question?", "kind": "decision"}
        found = self.company.act("ann", "ticket_question_ask", agent, **asked)
        return {"ticket_id": ticket, "question_id": found["question_id"]}

    def _ask_human(self) -> Json:
        ticket = self.central.create_ticket(self.board, "asks a human")
        asked = {"message": "Which?", "kind": "decision", "requested_schema": FIELDS}
        found = self.company.act(ADMIN_SEAT, "ticket_request_human", ticket_id=ticket, **asked)
        return {"board_id": self.board, "ticket_id": ticket, "request_id": found["request_id"]}

    def _told(self, kind: str, about: Json) -> int:
        return sum(event["ticket_id"] == about["ticket_id"] for event in self.company.told(kind))

    def _recorded(self, what: str) -> int:
        file = self.home.folder / "state" / f"orchestrator_state_{self.board}.identities.json"
        records = json.loads(file.read_text())["identities"].values() if file.exists() else ()
        return sum(len(record[what]) for record in records)
