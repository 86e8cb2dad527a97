from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from services.live.figures import Quantiles
from services.live.line import duration, line

from services.live.screen import screen
from services.live.view import Device, Mark, View

MARKS = {"airline": Mark.RESULT, "aircraft": Mark.ABSENCE, "dest_airport": Mark.FAILURE, "route": Mark.OPEN}
DEVICES = tuple(
    Device(
        device_id=f"2013-01-01/UA/{number}/EWR-SFO",
        version=number,
        age_s=0.5,
        fields={"origin": "EWR", "status": "landed", "tailnum": f"N{number}", "gate": ""},
        marks=MARKS,
        settled=number % 2 == 0,
    )
    for number in range(1, 80)
)
VIEW = View(
    application="flights",
    kafka="127.0.0.1:9092",
    up_s=75,
    events=17.25,
    snapshots=1234.5,
    feedback={"result": 10.0, "absence": 1.5, "failure": 0.0},
    calls={"result": 10.5, "retryable": 2.0},
    totals={"events": 1000, "snapshots": 5000, "result": 3999, "absence": 1},
    to_snapshot=Quantiles(100, 0.005, 0.0333),
    to_enriched=None,
    job_lag=3,
    worker_lag=None,
    dead_letters={"late": 2},
    enrichments=tuple(MARKS),
    devices=DEVICES,
    parts={"broker": "runs", "job": "died, starts again in 1 s"},
)


def drawn(view: View, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, highlight=False)
    console.print(screen(view, width, height))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 60, 72, 80, 100, 150, 220])
@pytest.mark.parametrize("height", [15, 24, 50])
def test_it_fits_the_terminal(width: int, height: int) -> None:
    lines = drawn(VIEW, width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


def test_a_wide_terminal_has_a_column_for_each_enrichment() -> None:
    lines = drawn(VIEW, 120, 50)
    (heading,) = [line.split() for line in lines if line.startswith("device")]
    assert heading == ["device", "v", "status", "tailnum", "airl", "airc", "dest-airp", "rout"]
    assert ["2013-01-01/UA/7/EWR-SFO", "7", "landed", "N7", "✓", "–", "✗", "·"] in [line.split() for line in lines]  # noqa: RUF001


def test_a_narrow_terminal_has_all_marks_in_one_column() -> None:
    lines = drawn(VIEW, 40, 50)
    assert ["2013-01-01/UA/7/EWR-SFO", "7", "✓–✗·"] in [line.split() for line in lines]  # noqa: RUF001
    assert ["device", "v", "aadr"] in [line.split() for line in lines]


def test_the_figures_are_shown() -> None:
    text = "\n".join(drawn(VIEW, 120, 50))
    for shown in ("17.2", "1,234.5", "12.5 (result 10.5, retryable 2.0)", "11.5 (result 10.0, absence 1.5)"):
        assert shown in text
    assert "5 ms p50, 33 ms p95" in text
    assert "dead letters  late 2" in text
    assert "◌ job (died, starts again in 1 s)" in text


@pytest.mark.parametrize("width", range(30, 120, 3))
def test_no_part_is_broken_over_two_lines(width: int) -> None:
    names = ("broker", "reference", "worker-1", "worker-2", "derive", "query", "replay", "live")
    lines = drawn(replace(VIEW, parts=dict.fromkeys(names, "runs") | {"topics": "done"}), width, 24)
    assert len(lines) <= 24
    for told in (*names, "topics (done)"):
        assert any(f"● {told}" in line for line in lines)


def test_trouble_is_all_that_is_shown() -> None:
    view = replace(VIEW, trouble="Waiting for the topics on 127.0.0.1:9092")
    assert drawn(view, 80, 24) == ["Waiting for the topics on 127.0.0.1:9092"]
    assert line(view) == "Waiting for the topics on 127.0.0.1:9092"


def test_an_empty_view_is_drawn_too() -> None:
    view = replace(VIEW, devices=(), enrichments=(), parts={}, calls=None, dead_letters={})
    assert drawn(view, 80, 24)
    assert "calls/s ?" in line(view)


def test_the_line_has_all_figures() -> None:
    assert line(VIEW) == (
        "events/s 17.2   snapshots/s 1234.5   calls/s 12.5 (result 10.5, retryable 2.0)   "
        "feedback/s 11.5 (result 10.0, absence 1.5)   job lag 3   worker lag ?   "
        "event → snapshot 5 ms p50, 33 ms p95   event → enriched none yet   dead letters 2"
    )


@pytest.mark.parametrize(("seconds", "text"), [(0.0042, "4 ms"), (1.25, "1.2 s"), (59.94, "59.9 s"), (150, "2 min")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
