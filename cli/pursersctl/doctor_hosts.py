"""Check of the hosts: whether one starts the shim, and what is wrong with their configurations."""

from collections.abc import Iterator

from pursersctl import hosts_check, hosts_places
from pursersctl.doctor_patient import Patient, doubtful, ill, well
from pursersctl.found import Finding
from pursersctl.hosts_report import HostRow


def hosts(patient: Patient) -> Iterator[Finding]:
    """Each host that is there or has an entry of ours."""
    rows = hosts_check.check(hosts_places.this_machine(patient.environ))
    known = [row for row in rows if row.installed or row.problems or row.found != "none"]
    if not known:
        yield well("hosts", "no host that is known is installed here")
    elif all(row.found == "none" for row in known):
        names = ", ".join(row.title for row in known)
        yield doubtful("hosts", f"no host starts the shim; here is {names}", f"pursersctl hosts add {known[0].host}")
    for row in known:
        yield from _host(row)


def _host(row: HostRow) -> Iterator[Finding]:
    for problem in row.problems:
        say = ill if problem.severity == "fail" else doubtful
        yield say("hosts", problem.text.rstrip("."), problem.action, of=row.host)
    if row.found != "none" and not row.problems:
        yield well("hosts", f"{row.title} starts the {row.found}", of=row.host)
