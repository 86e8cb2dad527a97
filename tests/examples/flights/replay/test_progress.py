import io
from datetime import UTC, datetime, timedelta

from rich.console import Console

from examples.flights.replay.progress import reporting

BEGIN = datetime(2013, 1, 1, 5, tzinfo=UTC)
END = BEGIN + timedelta(days=1)


def displayed(*, terminal: bool) -> str:
    now = [0.0]
    out = io.StringIO()
    with reporting(Console(file=out, force_terminal=terminal, width=100), BEGIN, END, lambda: now[0]) as report:
        for sent in range(1, 101):
            now[0] += 0.25
            report(sent, BEGIN + timedelta(minutes=7 * sent))
    return out.getvalue()


def test_without_a_terminal_there_is_a_line_now_and_then() -> None:
    assert displayed(terminal=False).splitlines() == [
        "40 events, 2013-01-01 09:40 UTC, 4 events/s",
        "80 events, 2013-01-01 14:20 UTC, 4 events/s",
    ]


def test_in_a_terminal_there_is_a_bar() -> None:
    last = displayed(terminal=True).rsplit("flights", 1)[1]
    assert "49%" in last
    assert "100 events, 2013-01-01 16:40 UTC" in last
