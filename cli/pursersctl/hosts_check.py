"""What the configuration of every known host says of us: for `pursersctl hosts list` and for `pursersctl doctor`."""

from pursersctl.hosts_places import Machine
from pursersctl.hosts_report import HostRow


def check(machine: Machine) -> list[HostRow]:
    """Every known host, installed or not, with its files, our entries in them and what is wrong with them.

    Reads files and looks for programs; starts and changes nothing. `machine` is `hosts_places.this_machine(environ)`.
    """
    raise NotImplementedError
