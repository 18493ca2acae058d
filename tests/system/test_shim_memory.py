"""A shim that has relayed a great deal is no larger than one that has relayed a little."""

import psutil

from scripted_daemon import INITIALIZE, INITIALIZED, Peer, ScriptedDaemon, Shim, answer, attach, call, short_home

BATCH = 50
"""Calls at once; some of them are cancelled, and each tenth time the link is lost while all of them wait."""

WARM, MORE = 20, 60
"""Batches before the first look at its memory, and between the first and the second."""

ROOM = 256 * 1024
"""Bytes that it may grow by: what is left of a call or an answer would be several times that."""

TEXT = "x" * 2000


def relay(daemon: ScriptedDaemon, shim: Shim, peer: Peer, first: int, *, is_lost: bool) -> Peer:
    """One batch of calls, answered and reported; returns the link that carries the conversation now."""
    numbers = range(first, first + BATCH)
    shim.send(*(call(number, text=TEXT) for number in numbers))
    for number in numbers:
        assert peer.read()["id"] == number
    if is_lost:
        peer.close()
        peer = daemon.accept()
        peer.welcome(link_epoch=2)
        replayed = peer.read()
        assert replayed["method"] == INITIALIZE["method"]
        peer.send(answer(replayed["id"], protocolVersion="2025-11-25"))
        assert peer.read() == INITIALIZED
        for number in numbers:
            assert peer.read()["id"] == number
    cancelled = set(numbers[::10])
    for number in cancelled:
        shim.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        peer.read()
    answered = [number for number in numbers if number not in cancelled]
    peer.send(*(answer(number, text=TEXT) for number in answered))
    for number in answered:
        assert shim.read()["id"] == number
    for _ in answered:
        assert peer.read()["method"] == "pursers/delivered"
    return peer


def test_it_keeps_nothing_of_what_it_has_relayed() -> None:
    with short_home() as home, ScriptedDaemon(home) as daemon, Shim(home) as shim:
        peer, process, before = attach(daemon, shim), psutil.Process(shim.process.pid), 0
        for batch in range(WARM + MORE):
            if batch == WARM:
                before = process.memory_info().rss
            peer = relay(daemon, shim, peer, 1 + batch * BATCH, is_lost=batch % 10 == 2)
        grown = process.memory_info().rss - before
        assert grown <= ROOM, f"{grown} bytes more after {MORE * BATCH} calls"
