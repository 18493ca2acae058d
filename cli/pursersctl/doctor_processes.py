"""Check of the processes: bridges that still run, and what has outlived its host."""

from collections.abc import Iterator

from pursersctl.doctor_patient import Patient, doubtful, well
from pursersctl.found import Finding
from pursersctl.render import size
from pursersctl.sweep import survey


def processes(patient: Patient) -> Iterator[Finding]:
    """Old bridges beside the shims, and orphans of both kinds."""
    found = survey(patient.place)
    bridges = [one for one in found if one.server.kind == "bridge" and not one.is_orphan]
    if bridges:
        pids = ", ".join(str(one.server.process.pid) for one in bridges)
        memory = size(sum(one.server.rss_bytes for one in bridges))
        text = f"hosts still run {len(bridges)} pursers-wait-bridge ({memory}): pid {pids}"
        yield doubtful("bridges", text, "pursersctl hosts list shows which, pursersctl hosts migrate NAME repairs it")
    else:
        yield well("bridges", "no host runs pursers-wait-bridge")
    orphans = [one for one in found if one.is_orphan]
    if orphans:
        pids = ", ".join(str(one.server.process.pid) for one in orphans)
        yield doubtful("orphans", f"{len(orphans)} outlived their hosts: pid {pids}", "pursersctl sweep")
    else:
        yield well("orphans", "every bridge and shim that runs may have a host")
