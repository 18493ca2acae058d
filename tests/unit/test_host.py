"""The two pipes of the host."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pursers_shim.host import Host, HostGone


class Pipes:
    """The host's ends, and the Host over ours."""

    def __init__(self) -> None:
        stdin, self.write_end = os.pipe()
        self.read_end, stdout = os.pipe()
        self.descriptors = {stdin, stdout, self.write_end, self.read_end}
        self.host = Host(stdin, stdout)

    def close(self, *some: int) -> None:
        for fd in some or tuple(self.descriptors):
            self.descriptors.discard(fd)
            os.close(fd)


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    pipes = Pipes()
    yield pipes
    pipes.close()


def test_lines_come_as_they_are_and_the_last_needs_no_newline(pipes: Pipes) -> None:
    os.write(pipes.write_end, b"one\ntw")
    assert pipes.host.receive() == ([b"one"], False)
    os.write(pipes.write_end, b"o")
    assert pipes.host.receive() == ([], False)
    pipes.close(pipes.write_end)
    assert pipes.host.receive() == ([b"two"], True)


def test_an_input_without_data_does_not_raise(pipes: Pipes) -> None:
    os.set_blocking(pipes.host.stdin, False)
    assert pipes.host.receive() == ([], False)


def in_time(pipes: Pipes, write: Callable[[], list[str]]) -> list[str]:
    """What `write` returns; should it block, the reader goes away and the test fails."""
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            return writing.result(2)
        except TimeoutError:
            pipes.close(pipes.read_end)
            raise


@pytest.mark.parametrize("blocking", [True, False])
def test_a_full_pipe_never_blocks_and_keeps_its_mode(pipes: Pipes, blocking: bool) -> None:
    os.set_blocking(pipes.host.stdout, blocking)
    line = b"x" * 999_999 + b"\n"
    pipes.host.send(line, "tag")
    assert in_time(pipes, pipes.host.flush) == []
    assert os.get_blocking(pipes.host.stdout) is blocking  # others may share the description
    assert 0 < pipes.host.outbox.size < len(line)
    got = bytearray()
    tags: list[str] = []
    while len(got) < len(line):
        got += os.read(pipes.read_end, 1000)
        tags += pipes.host.flush()
    assert bytes(got) == line
    assert tags == ["tag"]
    assert pipes.host.outbox.size == 0


def test_nobody_reads(pipes: Pipes) -> None:
    pipes.host.send(b"line\n")
    pipes.close(pipes.read_end)
    with pytest.raises(HostGone):
        pipes.host.flush()


def test_a_regular_file_is_known(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"line\n")
    fd = os.open(path, os.O_RDWR)
    try:
        host = Host(fd, fd)
        assert host.has_file_input
        assert host.receive() == ([b"line"], False)
        assert host.receive() == ([b""], True)
    finally:
        os.close(fd)
