"""The alerts that there must be, computed without any of the engines, and how their records are read."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import orjson

from bench.harness.load import SensorReading
from bench.harness.results import OracleReport


class Transition(NamedTuple):
    """An alert that opened or closed with an event of a device, the `number`th."""

    device: str
    number: int
    status: str


class ReadAlert(NamedTuple):
    """One of the alerts of a record: what became of it, and by which version of its rule."""

    transition: Transition
    rule_version: int


def transitions(readings: Iterable[SensorReading], change: float) -> Iterator[Transition]:
    """Yield the alerts of one rule: each device's last two temperatures differ by so much or more."""
    last, is_open = dict[str, float](), set[str]()
    for reading in readings:
        before = last.get(reading.device)
        last[reading.device] = reading.temperature
        is_change = before is not None and abs(reading.temperature - before) >= change
        if is_change and reading.device not in is_open:
            is_open.add(reading.device)
            yield Transition(reading.device, reading.number, "open")
        elif not is_change and reading.device in is_open:
            is_open.remove(reading.device)
            yield Transition(reading.device, reading.number, "closed")


def decode(value: bytes) -> list[ReadAlert]:
    """Return the alerts of a record. Raises ValueError, LookupError and TypeError for anything else."""
    record = orjson.loads(value)
    return [
        ReadAlert(Transition(record["device_id"], record["version"], alert["status"]), alert["rule_version"])
        for alert in record["alerts"]
    ]


def check(expected: Iterable[Transition], published: Iterable[Transition]) -> OracleReport:
    """Compare all that were published with all that must be: each once."""
    left, there = set(expected), set[Transition]()
    report = OracleReport(events=len(left), given="alerts that open or close", gives="record")
    for transition in published:
        report.snapshots += 1
        if transition in there:
            report.duplicates += 1
        elif transition not in left:
            report.unknown += 1
            report.example = report.example or repr(transition)
        there.add(transition)
    report.missing = len(left - there)
    return report
