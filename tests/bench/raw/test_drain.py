"""Measures a decoder of a few lines, so that it is the harness that is tested; the formats are decoded for real."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import orjson
import pytest

from bench.harness.jobs import Job
from bench.harness.plan import Plan, Site
from bench.raw.application import CHUNKS, FORMATS, ChunkFormat
from bench.raw.chunks import Chunks
from bench.raw.drain import DecodeProgress, RawDrain, decoder_us, figures
from bench.raw.jobs import RAW_JOBS
from bench.raw.measures import RawChunks
from contracts import RawRecord
from contracts.model.suite import load_suite
from contracts.records.raw import RawDecoder
from contracts.types.quantize import EPOCH

if TYPE_CHECKING:
    from pathlib import Path

    from tests.services.broker.embedded import EmbeddedBroker

RAW = RawChunks("raw", 200)
SCRIPT = "tests.bench.raw.a_decoder"
SMALL = "int16-100hz-1ch"


def ignore(what: str, done: float) -> None:
    assert what
    assert 0 <= done <= 1


def events(form: ChunkFormat, chunks: Chunks) -> list[bytes]:
    decoder = RawDecoder(form.application, form.application.raw[0])
    records = (RawRecord(CHUNKS, 0, at, EPOCH, key.encode(), value) for at, (key, value) in enumerate(chunks.records()))
    return [event.value for record in records for event in decoder.decode(record)]


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_every_format_is_decoded_by_its_application(form: ChunkFormat) -> None:
    chunks = Chunks(form, 3)
    assert {len(value) for _, value in chunks.records()} == {form.size}
    assert 2_000 <= form.size <= 6_000
    assert chunks.check(events(form, chunks)).right
    assert decoder_us(form, chunks) > 0


def test_an_event_that_is_missing_repeated_wrong_or_of_no_chunk_is_found() -> None:
    chunks = Chunks(FORMATS[SMALL], 70)
    right = events(FORMATS[SMALL], chunks)
    assert chunks.check(right[1:]).missing == 1
    assert chunks.check([*right, right[0]]).duplicates == 1
    event = orjson.loads(right[0])
    other = [event | {"samples": event["samples"][::-1]}, event | {"device_id": "d9"}]
    found = chunks.check([*right, *map(orjson.dumps, other)])
    assert (found.wrong, found.missing) == (2, 0)
    assert chunks.check([*right, orjson.dumps(event | {"ts": "1999-01-01T00:00:00Z"})]).unknown == 1


def test_each_format_has_a_job_with_its_application() -> None:
    assert [job.name for job in RAW_JOBS] == list(FORMATS)
    for job in RAW_JOBS:
        (application,) = load_suite(job.environment["STATELOOP_APPLICATION"]).applications
        assert application is FORMATS[job.name].application


def test_figures_exclude_the_skipped_chunks() -> None:
    samples = [
        DecodeProgress(0, 0, 0),
        DecodeProgress(10, 8.0, 60),
        DecodeProgress(11, 9.0, 85),
        DecodeProgress(14, 10.0, 185),
        DecodeProgress(15, 11.5, 200),
    ]
    assert figures(samples, RAW, size=2_000) == pytest.approx(
        {
            "cpu_s": 11.5,
            "chunks_per_s": 115 / 4,
            "mb_per_s": 0.23 / 4,
            "chunks_per_cpu_s": 115 / 2.5,
            "mb_per_cpu_s": 0.23 / 2.5,
            "us_per_chunk": 2.5e6 / 115,
        }
    )
    assert figures([DecodeProgress(0, 0, 0), DecodeProgress(10, 8.0, 200)], RAW, size=2_000) == {"cpu_s": 8.0}


@pytest.mark.kafka
@pytest.mark.parametrize("spoil", ["right", "wrong"])
def test_a_decoder_is_measured(broker: EmbeddedBroker, tmp_path: Path, spoil: str) -> None:
    job = Job(SMALL, (sys.executable, "-m", SCRIPT, "{boot}", SMALL, spoil))
    plan = Plan((RAW,), runs=1)
    result = RawDrain(RAW, plan, Site(broker.bootstrap, tmp_path, tmp_path)).measure(job, 1, ignore)
    assert result.right == (spoil == "right"), result
    assert result.report is not None
    assert result.report.wrong == (spoil == "wrong")
    assert result.size == "200 chunks"
    assert result.figures["cpu_s"] > 0
