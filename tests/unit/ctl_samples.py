"""Answers of a daemon, for the tests of pursersctl."""

from pursersd import api


def seat(**changes: object) -> api.SeatRow:
    row: dict[str, object] = {
        "seat": "bench-w1",
        "board": "bench",
        "role": "worker",
        "host": "claude-code",
        "host_pid": 20411,
        "shim_pid": 20419,
        "conversation": "c-000000000001",
        "state": "waiting",
        "delivery": "push",
        "since_s": 192.4,
        "age_s": 7260.0,
        "last_tool": "a2a_wait",
        "link_epoch": 1,
        "shared_by": 1,
        "central": "http://127.0.0.1:8765",
        "cwd": "/home/me/project",
        "shim_version": "0.1.0",
    }
    return api.SeatRow(**{**row, **changes})


SEATS = [
    seat(
        seat=None,
        board=None,
        role=None,
        host="zed",
        host_pid=None,
        shim_pid=20999,
        conversation="c-000000000009",
        state="idle",
        delivery=None,
        since_s=3.0,
        age_s=3.0,
        last_tool=None,
        shared_by=0,
    ),
    seat(seat="bench-r1", role="reviewer", host="codex", state="working", last_tool="project_registry_get", since_s=9),
    seat(
        board="another-board-with-a-long-name",
        seat="the-seat-of-somebody-who-likes-long-names",
        state="waiting",
        delivery="poll",
        poll_reason="Central refused the stream: too many streams for this principal. Retried at each wait.",
        conversation="c-000000000005",
    ),
    seat(shared_by=2, conversation="c-000000000003", state="detached", since_s=1.2),
    seat(shared_by=2, conversation="c-000000000002", shim_pid=1020420, age_s=400000),
]

STATUS = api.Status(
    daemon=api.DaemonStatus(
        pid=20400,
        version="0.1.0",
        epoch=7,
        state="ready",
        uptime_s=7300.5,
        home="/tmp/demo",
        socket="/tmp/demo/run/pursersd.sock",
        log="/tmp/demo/log/pursersd.log",
        started_by="auto",
        rss_bytes=58 * 1024 * 1024,
    ),
    centrals=[
        api.CentralStatus(
            url="http://127.0.0.1:8765",
            credential="k-4f2a",
            state="ready",
            detail=None,
            call_connections=1,
            streams=2,
            boards=["bench", "demo"],
            seats_listening=3,
            waits=4,
            requests=120,
            cues=48,
            reconnects=0,
        ),
        api.CentralStatus(
            url="https://board.example",
            credential="a1b2c3d4e5f6",
            state="unreachable",
            detail="connection refused; next try in 20 s",
            call_connections=0,
            streams=0,
            boards=[],
            seats_listening=0,
            waits=0,
            requests=3,
            cues=0,
            reconnects=9,
        ),
    ],
    conversations=5,
    warnings=[
        api.Warning(
            code="central_unreachable",
            since_s=185,
            text="https://board.example does not answer: connection refused. Seats on its boards wake late or not at all.",
            action="Start Central or repair the way to it.",
        )
    ],
)
