"""Check of the service: whether one is installed, as it should be, and well."""

from collections.abc import Iterator

from pursersctl import service
from pursersctl.doctor_patient import Patient, advised, doubtful, well
from pursersctl.errors import CommandError
from pursersctl.found import Finding


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
        yield well("service", f"no {found.manager} service is installed: shims start the daemon")
    elif not found.problems:
        yield well("service", f"the {found.manager} service {found.name} is {found.activity}")
    if found.installed and found.lingers is False:
        yield doubtful("service", "the daemon ends with your last logout", "loginctl enable-linger")
