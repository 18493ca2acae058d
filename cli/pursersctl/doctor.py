"""`pursersctl doctor`: everything that may be wrong, at once, each with what to do. Starts and changes nothing.

A check is a function in CHECKS. All run at the same time; one that does not end in time, or fails itself, is a finding.
"""

import queue
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from pursers_shim.wire import readable
from pursersctl import doctor_bundle, doctor_shown, output
from pursersctl.doctor_daemon import daemon
from pursersctl.doctor_doors import doors
from pursersctl.doctor_folders import log_folder, runtime_folder, socket_and_lock, state_folder, stats_file
from pursersctl.doctor_hosts import hosts
from pursersctl.doctor_install import programs, python
from pursersctl.doctor_patient import Check, Patient, ill, patient
from pursersctl.doctor_processes import processes
from pursersctl.doctor_service import installed
from pursersctl.errors import CommandError
from pursersctl.found import Doctor, Finding, Result

CHECKS: tuple[tuple[str, Check], ...] = (
    ("python", python),
    ("programs", programs),
    ("runtime_folder", runtime_folder),
    ("state_folder", state_folder),
    ("log_folder", log_folder),
    ("socket", socket_and_lock),
    ("service", installed),
    ("daemon", daemon),
    ("doors", doors),
    ("hosts", hosts),
    ("processes", processes),
    ("stats_file", stats_file),
)
"""In the order in which they are shown, each with the name of its finding when it does not end."""

LIMIT = 20.0
"""Seconds after which nothing is waited for any more; each check has limits of its own below that."""

WORST: tuple[Result, ...] = ("fail", "warn", "pass")
EXIT: dict[Result, int] = {"pass": 0, "warn": 1, "fail": 2}


def doctor(environ: Mapping[str, str], *, bundle: str | None, as_json: bool) -> int:
    """Print what was found and return the exit code: 0 all is well, 1 there are warnings, 2 something does not work."""
    who = patient(environ)
    findings = examine(who)
    written: str | None = None
    if bundle is not None:
        try:
            doctor_bundle.write(Path(bundle), who, findings)
            written = readable(bundle)
        except CommandError as error:
            findings.append(ill("bundle", str(error), "Name a new file: pursersctl doctor --bundle FILE.tar.gz"))
    answer = Doctor(result=worst(findings), findings=findings, bundle=written)
    if as_json:
        output.show_json(msgspec.json.encode(answer))
    else:
        output.show(doctor_shown.doctor(answer, output.width()))
    return EXIT[answer.result]


def examine(who: Patient, checks: tuple[tuple[str, Check], ...] = CHECKS, *, limit: float = LIMIT) -> list[Finding]:
    """The findings of all checks, in their order, after at most `limit` seconds."""
    answers: queue.SimpleQueue[tuple[int, list[Finding] | None]] = queue.SimpleQueue()
    for number, (name, check) in enumerate(checks):
        # A daemon thread: one that hangs in a dead file system must not keep us from ending.
        threading.Thread(target=_run, args=(number, check, who, answers), name=f"check {name}", daemon=True).start()
    found: dict[int, list[Finding] | None] = {}
    deadline = time.monotonic() + limit
    while len(found) < len(checks):
        try:
            number, findings = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        found[number] = findings
    return [finding for number, (name, _) in enumerate(checks) for finding in _of(name, number, found, limit)]


def worst(findings: list[Finding]) -> Result:
    """The worst of them."""
    present = {finding.result for finding in findings}
    return next((result for result in WORST if result in present), "pass")


def _run(
    number: int, check: Check, who: Patient, answers: "queue.SimpleQueue[tuple[int, list[Finding] | None]]"
) -> None:
    findings: list[Finding] | None = None
    try:
        findings = list(check(who))
    finally:  # what a check did not foresee is printed by its thread; the others are not held up
        answers.put((number, findings))


def _of(name: str, number: int, found: dict[int, list[Finding] | None], limit: float) -> list[Finding]:
    if number not in found:
        return [ill(name, f"this check did not end within {limit:.0f} s", "Look for a file system that hangs: df")]
    findings = found[number]
    if findings is None:
        return [ill(name, "this check failed itself; the error is printed on stderr", "Report it with that error")]
    return findings
