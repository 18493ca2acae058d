"""What `pursersctl doctor` says of a local board whose Central does not answer: why that is, and what brings it up."""

from dataclasses import dataclass
from pathlib import Path

from pursers_shim import dial
from pursersctl.doctor_patient import Patient
from pursersd import api
from pursersd.errors import LocalBoardError
from pursersd.local.record import load, record_file
from pursersd.rules.local_board import url


@dataclass(frozen=True, slots=True)
class Silence:
    """Why the Central at an address does not answer, and what brings it up."""

    url: str
    text: str
    action: str
    is_meant: bool
    """It is so because somebody wanted it, or nobody needed it yet."""


def silence(patient: Patient) -> Silence | None:
    """What it means if the local board's Central is silent; None where there is no local board."""
    try:
        record = load(record_file(Path(api.local_folder(patient.place.home))))
    except LocalBoardError:
        return None
    if record is None:
        return None
    where = url(record.port)
    if not record.wanted:
        return Silence(where, f"the local board {record.board} is down", "pursersctl local up", True)
    if dial.daemon_pid(patient.place) is None:
        text = f"the local board {record.board} is served by the daemon, and none runs"
        return Silence(where, text, "pursersctl start", True)
    return Silence(where, f"the local board {record.board} is not served", "pursersctl local status", False)
