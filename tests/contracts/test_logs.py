from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from contracts.logs import MOST_KINDS, JsonLines, Repeats
from tests.clock import Clock

FAILED = "FAIL: 127.0.0.1:%d/bootstrap: Connect to ipv4#127.0.0.1:%d failed: Connection refused (after %dms)"
LOST_BROKER = """
import sys, time
from confluent_kafka import Consumer
from contracts import logs
import logging
logs.to(sys.stderr)
often = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50}
consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", **often}, logger=logging.getLogger("source"))
consumer.subscribe(["t"])
deadline = time.monotonic() + 3
while time.monotonic() < deadline:
    consumer.poll(0.1)
consumer.close()
"""


class Logged:
    """A logger whose lines are kept."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.stream = io.StringIO()
        self.trace: str | None = None
        handler = logging.StreamHandler(self.stream)
        handler.setFormatter(JsonLines(lambda: self.trace))
        handler.addFilter(Repeats(30, self.clock))
        self.log = logging.Logger("worker")  # noqa: LOG001  # one that no other test knows
        self.log.addHandler(handler)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


@pytest.fixture
def logged() -> Logged:
    return Logged()


def test_a_line_is_one_object_with_its_facts(logged: Logged) -> None:
    logged.log.info("stats\nof %s", "it", extra={"facts": {"lag": 7}})
    (line,) = logged.lines()
    assert {name: line[name] for name in ("level", "logger", "message", "lag")} == {
        "level": "info",
        "logger": "worker",
        "message": "stats\nof it",
        "lag": 7,
    }
    assert "trace_id" not in line


def test_a_line_within_a_trace_has_its_id(logged: Logged) -> None:
    logged.trace = "0af7651916cd43dd8448eb211c80319c"
    logged.log.info("stats")
    assert logged.lines()[0]["trace_id"] == "0af7651916cd43dd8448eb211c80319c"


def test_a_warning_that_repeats_is_logged_once_in_a_while_with_their_number(logged: Logged) -> None:
    for attempt in range(100):
        logged.log.error(FAILED, 9092, 9092, attempt)
    assert len(logged.lines()) == 1
    logged.clock.now += 31
    logged.log.error(FAILED, 9092, 9092, 7)
    logged.log.error(FAILED, 9092, 9092, 7)
    first, second = logged.lines()
    assert "repeated" not in first
    assert second["repeated"] == 99


def test_warnings_of_different_kinds_do_not_hide_each_other(logged: Logged) -> None:
    logged.log.warning("kafka", extra={"facts": {"code": "_TRANSPORT"}})
    logged.log.warning("kafka", extra={"facts": {"code": "_ALL_BROKERS_DOWN"}})
    for error in (ValueError("x"), KeyError("x")):
        logged.log.warning("a bug", exc_info=error)
    assert len(logged.lines()) == 4


def test_a_line_below_a_warning_is_always_logged(logged: Logged) -> None:
    for _ in range(10):
        logged.log.info("stats")
    assert len(logged.lines()) == 10


def test_kinds_are_forgotten_in_time(logged: Logged) -> None:
    for number in range(MOST_KINDS + 1):
        logged.log.warning("x" * number)
    before = len(logged.lines())
    logged.log.warning("x" * MOST_KINDS)
    logged.log.warning("")
    assert len(logged.lines()) == before + 1, "the last is known, the first was forgotten"


@pytest.mark.slow
def test_a_client_without_its_broker_does_not_fill_the_log() -> None:
    done = subprocess.run([sys.executable, "-c", LOST_BROKER], capture_output=True, text=True, check=True, timeout=60)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    refused = [line for line in lines if "Connection refused" in line["message"]]
    assert 1 <= len(refused) <= 2, lines  # the client counts those that it suppressed itself: a line of another kind
