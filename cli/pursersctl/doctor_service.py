"""Check of the service: whether one is installed, as it should be, and well."""

from collections.abc import Iterator

from pursers_shim.service import runs
from pursersctl import service
from pursersctl.doctor_patient import Patient, advised, doubtful, well
from pursersctl.errors import CommandError
from pursersctl.found import Finding
from pursersctl.printed import ServiceStatus


def _logout(patient: Patient, found: ServiceStatus) -> str:
    """What a logout means for a daemon that shims start below the user's service manager."""
    if found.lingers is not False or not runs(patient.environ):
        return ""
    return "; lingering is off, so your last logout may end it, and the next conversation starts another one"


def installed(patient: Patient) -> Iterator[Finding]:
    """The service of this place, as `pursersctl service status` sees it."""
    try:
        found = service.look(service.of(patient.place, patient.environ, None))
    except CommandError as error:
        yield doubtful("service", *advised(str(error), "pursersctl service status"))
        return
    for problem in found.problems:
        yield doubtful("service", *advised(problem, "pursersctl service status"))
    if not found.installed:
        yield well(
            "service", f"no {found.manager} service is installed: shims start the daemon{_logout(patient, found)}"
        )
    elif not found.problems:
        yield well("service", f"the {found.manager} service {found.name} is {found.activity}")
    if found.installed and found.lingers is False:
        yield doubtful("service", "the daemon ends with your last logout", "loginctl enable-linger")
