from __future__ import annotations

from typing import Any

import orjson
import pytest

from bench.enrichment.answers import check
from bench.enrichment.api import place
from bench.enrichment.snapshots import VERSION, device


def answer(number: int, **otherwise: Any) -> bytes:
    right = {
        "device_id": device(number),
        "enrichment": "place",
        "version": VERSION,
        "status": "result",
        "result": {"place": place(number)},
    }
    return orjson.dumps(right | otherwise)


def test_one_right_answer_for_each_snapshot() -> None:
    report = check([answer(1), answer(0)], 2)
    assert report.right, report
    assert str(report) == "each of 2 snapshots gave one correct answer"


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ([answer(0)], "missing"),
        ([answer(0), answer(1), answer(1)], "duplicates"),
        ([answer(0), answer(1, result={"place": place(0)})], "wrong"),
        ([answer(0), answer(1, status="failure")], "wrong"),
        ([answer(0), answer(1, version=VERSION + 1)], "wrong"),
        ([answer(0), answer(1), answer(2)], "unknown"),
        ([answer(0), answer(1), b"rubbish"], "unknown"),
        ([answer(0), answer(1), b"[]"], "unknown"),
    ],
)
def test_a_worker_that_is_wrong_once_fails_its_run(values: list[bytes], what: str) -> None:
    report = check(values, 2)
    assert not report.right
    assert getattr(report, what) == 1
    assert f"1 {what}" in str(report)
