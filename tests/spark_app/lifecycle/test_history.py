"""Rows of files as records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from contracts.wire import DeadLetter
from spark_app.lifecycle.history import history_records
from spark_app.query.lift import BEFORE_1970
from tests.spark_app.departing import application

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_row_whose_time_no_record_can_have_is_a_dead_letter(spark: SparkSession, tmp_path: Path) -> None:
    times = ("0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.0009Z")
    event = {"kind": "departed", "carrier": "UA", "origin": "LGA", "dest": "IAH"}
    rows = [event | {"event_id": str(number), "ts": time} for number, time in enumerate(times)]
    first = event | {"event_id": "first", "ts": "1970-01-01T00:00:00.001Z"}
    (tmp_path / "old.jsonl").write_text("\n".join(map(json.dumps, (*rows, first))), encoding="utf-8")
    *refused, valid = history_records(spark, application(), str(tmp_path / "old.jsonl"), 0)
    assert (valid.timestamp_ms, valid.dead_letter) == (1, None)
    assert len(refused) == len(times)
    for row in refused:
        assert row.timestamp_ms > 0
        letter = DeadLetter.model_validate_json(row.dead_letter or b"")
        assert (letter.reason, letter.detail, letter.offset) == ("invalid_field", BEFORE_1970, row.row)
