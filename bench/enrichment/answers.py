"""The expected answers of a worker, and their check."""

from collections.abc import Iterable
from typing import Any

import orjson

from bench.enrichment.api import place
from bench.enrichment.snapshots import VERSION, device
from bench.harness.results import OracleReport


def check(answers: Iterable[bytes], snapshots: int) -> OracleReport:
    """Compare a worker's answers with the expected answers: one for each of `snapshots` snapshots."""
    report = OracleReport(events=snapshots, given="snapshots", gives="answer")
    seen = bytearray(snapshots)
    for value in answers:
        report.snapshots += 1
        answer = _read(value)
        number = _number(answer)
        if number is None or not 0 <= number < snapshots:
            report.unknown += 1
        else:
            report.duplicates += seen[number]
            seen[number] = 1
            if not _is_wrong(answer, number):
                continue
            report.wrong += 1
        report.example = report.example or repr(value[:300])
    report.missing = seen.count(0)
    return report


def _is_wrong(answer: dict[str, Any], number: int) -> bool:
    expected = {"enrichment": "place", "version": VERSION, "status": "result", "result": {"place": place(number)}}
    return answer["device_id"] != device(number) or any(answer.get(name) != expected[name] for name in expected)


def _read(value: bytes) -> dict[str, Any]:
    try:
        answer = orjson.loads(value)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _number(answer: dict[str, Any]) -> int | None:
    """Return the number of the answered vehicle."""
    number = str(answer.get("device_id", "")).rpartition("-")[2]
    return int(number) if number.isdecimal() else None
