from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from services.tools.live.screen import line, screen
from services.tools.live.view import LiveView

ENRICHMENTS = {"airline": "result", "aircraft": "absence", "dest_airport": "failure", "weather": "skipped"}
REASON = {"kind": "breaker_open", "component": "api:reference", "message": "The API is down", "action": "Check it"}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def loop(**changed: Any) -> dict[str, Any]:
    topic = {"rate": 17.25, "end": 1000}
    topics = dict.fromkeys(("events", "feedback", "snapshots", "dead_letters"), topic)
    components = ["events", "job", "snapshots", "query", "dead_letters", "workers", "apis", "feedback"]
    point = {"events": 17.25, "calls": 12.5, "job_lag": 3, "worker_lag": None, "p50_ms": 5.0, "p95_ms": 33.3}
    history = [{**point, "at": at} for at in range(1, 100)]
    apis = [{"calls": {"result": 10.0, "retryable": 2.0}}, {"calls": {"result": 0.5, "absence": 0.0}}]
    health = {"healthy": True, "reasons": []}
    applications = [{"name": "flights", "healthy": True}]
    return {
        "application": "flights",
        "applications": applications,
        "components": components,
        "topics": topics,
        "history": history,
        "apis": apis,
        "health": health,
        **changed,
    }


def answer(number: int, **enrichments: str) -> dict[str, Any]:
    results = {name: {"status": status, "ts": NOW.isoformat()} for name, status in enrichments.items()}
    state = {"origin": "EWR", "status": "landed", "delay": 1.5, "at": "2013-01-01T00:00:00Z"}
    value = {"state": state, "enrichments": results}
    return {"key": f"2013-01-01/UA/{number}/EWR-SFO", "version": number, "value": value}


def a_view(**changed: Any) -> LiveView:
    view = LiveView()
    view.processes = {"broker": "runs", "topics": "done", "job": "died, starts again in 1 s"}
    nodes = [{"name": name, "rates": {"result": 2.5}} for name in (*ENRICHMENTS, "route")]
    view.update_loop(loop(**changed), {"nodes": nodes})
    for number in range(1, 80):
        view.update_key(answer(number, **ENRICHMENTS), NOW)
    return view


def drawn(view: LiveView, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, highlight=False)
    console.print(screen(view, width, height))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [50, 60, 72, 80, 100, 150, 220])
@pytest.mark.parametrize("height", [24, 50])
def test_the_screen_fits_the_terminal(width: int, height: int) -> None:
    view = a_view(health={"healthy": False, "reasons": [REASON] * 5})
    lines = drawn(view, width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


def test_a_key_has_its_fields_and_a_mark_for_each_enrichment() -> None:
    lines = [line.split() for line in drawn(a_view(), 120, 50)]
    assert ["key", "v", "status", "airl", "airc", "dest-airp", "weat", "rout"] in lines
    assert ["2013-01-01/UA/79/EWR-SFO", "79", "landed", "✓", "–", "✗", "»", "·"] in lines  # noqa: RUF001


def test_a_narrow_terminal_has_all_marks_in_one_column() -> None:
    lines = [line.split() for line in drawn(a_view(), 60, 50)]
    assert ["key", "v", "aadwr"] in lines
    assert ["2013-01-01/UA/79/EWR-SFO", "79", "✓–✗»·"] in lines  # noqa: RUF001


def test_metrics_processes_and_health_are_drawn() -> None:
    text = "\n".join(drawn(a_view(), 120, 50))
    for part in ("● healthy", "17.2", "1,000 records", "result 10.5, retryable 2.0", "result 12.5", "worker ?"):
        assert part in text
    assert "5 ms p50, 33 ms p95" in text
    assert "◌ job (died, starts again in 1 s)" in text
    assert "● topics (done)" in text


def test_the_applications_of_a_suite_are_drawn_with_the_option_that_selects_one() -> None:
    both = [{"name": "flights", "healthy": True}, {"name": "departures", "healthy": False}]
    text = "\n".join(drawn(a_view(applications=both), 120, 50))
    assert "applications  flights  departures ✗  --application NAME shows another one" in text
    assert "applications" not in "\n".join(drawn(a_view(), 120, 50))


def test_without_enrichments_neither_calls_nor_feedback_are_drawn() -> None:
    view, topic = LiveView(), {"rate": 17.25, "end": 1000}
    topics = dict.fromkeys(("events", "snapshots", "dead_letters"), topic)
    components = [*topics, "job", "query"]
    view.update_loop(loop(components=components, topics=topics, apis=[]), {"nodes": []})
    view.update_key(answer(1), NOW)
    assert line(view) == (
        "health ● healthy   events/s 17.2 1,000 records   snapshots/s 17.2 1,000 records   "
        "dead letters/s 17.2 1,000 records   lag 3 job 3, query ?"
    )
    text = "\n".join(drawn(view, 120, 50))
    assert "1,000 records" in text
    for part in ("calls", "feedback", "API", "answer", "worker"):
        assert part not in text


def test_reasons_are_drawn_with_their_actions() -> None:
    text = "\n".join(drawn(a_view(health={"healthy": False, "reasons": [REASON]}), 120, 50))
    assert "✗ unhealthy" in text
    assert "✗ The API is down. Check it" in text


@pytest.mark.parametrize(
    ("kinds", "shown"),
    [
        (["job_starting"], "◌ starting"),
        (["job_starting", "breaker_open"], "✗ unhealthy"),
        (["job_silent"], "✗ unhealthy"),
    ],
)
def test_a_loop_is_starting_while_nothing_else_is_wrong(kinds: list[str], shown: str) -> None:
    view = a_view(health={"healthy": False, "reasons": [REASON | {"kind": kind} for kind in kinds]})
    assert shown in line(view)
    assert shown in "\n".join(drawn(view, 120, 50))


def test_an_error_is_drawn_above_the_last_metrics() -> None:
    view = LiveView(error="http://127.0.0.1:1: refused")
    assert drawn(view, 80, 24) == [line(view)] == ["http://127.0.0.1:1: refused"]
    view = a_view()
    view.error = "http://127.0.0.1:1: refused"
    text = "\n".join(drawn(view, 120, 50))
    assert "○ stale" in text
    assert "refused" in text
    assert "1,000 records" in text


def test_the_line_has_all_metrics() -> None:
    assert line(a_view()) == (
        "health ● healthy   events/s 17.2 1,000 records   snapshots/s 17.2 1,000 records   "
        "calls/s 12.5 result 10.5, retryable 2.0   feedback/s 17.2 result 12.5   dead letters/s 17.2 1,000 records   "
        "lag 3 job 3, worker ?, query ?   API call 5 ms p50, 33 ms p95   answer → state none yet"
    )


def test_the_latency_is_measured_from_new_results() -> None:
    view = LiveView()
    for number in range(1, 50):
        view.update_key(answer(number), NOW)
        view.update_key(answer(number, airline="result"), NOW + timedelta(milliseconds=7))
        view.update_key(answer(number, airline="result"), NOW + timedelta(seconds=7))
    assert view.latency_ms == (7.0, 7.0)
    assert len(view.keys) == 49


def test_points_are_appended_once() -> None:
    view = a_view()
    view.update_loop(loop(), {"nodes": []})
    assert [point["at"] for point in view.history] == list(range(1, 100))
