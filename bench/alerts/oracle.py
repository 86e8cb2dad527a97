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
    for one in readings:
        before = last.get(one.device)
        last[one.device] = one.temperature
        is_change = before is not None and abs(one.temperature - before) >= change
        if is_change and one.device not in is_open:
            is_open.add(one.device)
            yield Transition(one.device, one.number, "open")
        elif not is_change and one.device in is_open:
            is_open.remove(one.device)
            yield Transition(one.device, one.number, "closed")


def decode(value: bytes) -> list[ReadAlert]:
    """Return the alerts of a record. Raises ValueError, LookupError and TypeError for anything else."""
    record = orjson.loads(value)
    return [
        ReadAlert(Transition(record["device_id"], record["version"], one["status"]), one["rule_version"])
        for one in record["alerts"]
    ]


def check(expected: Iterable[Transition], found: Iterable[Transition]) -> OracleReport:
    """Compare all that were published with all that must be: each once."""
    left, there = set(expected), set[Transition]()
    report = OracleReport(events=len(left), given="alerts that open or close", gives="record")
    for one in found:
        report.snapshots += 1
        if one in there:
            report.duplicates += 1
        elif one not in left:
            report.unknown += 1
            report.example = report.example or repr(one)
        there.add(one)
    report.missing = len(left - there)
    return report
