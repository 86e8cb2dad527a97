from __future__ import annotations

from itertools import islice

from bench.coverage.engines import COUNTED, COVERAGE_ENGINES, COVERED
from bench.coverage.measures import CoverageCost
from bench.coverage.seconds import spans
from bench.windows.oracle import CountDecoder
from contracts.model.suite import load_suite

COST = CoverageCost("cost", events=2_000, keys=10)
ENDS = 1_800_001_800.0
"""Half an hour after a whole one."""


def test_each_patient_has_an_event_a_second_of_which_some_are_lost() -> None:
    readings = list(COST.readings(ENDS))
    assert len(readings) == COST.events
    assert readings[0].ts.endswith(":00:00.000000+00:00")
    assert len({(one.device, one.ts) for one in readings}) == COST.events
    seconds = len({one.ts for one in readings})
    assert 2_000 < 10 * seconds < 2_200
    assert list(islice(COST.readings(ENDS), COST.short_events)) == readings[:400]


def test_the_seconds_covered_are_a_count() -> None:
    value = b'{"device_id":"p1","first_seen":"2026-01-01T00:00:00Z","state":{"covered":[[0,60],[75,90]],"count":7}}'
    found = [CountDecoder(engine).read(value) for engine in (COVERED, COUNTED)]
    assert [one and one.events for one in found] == [75, 7]


def test_both_jobs_count_the_same_events() -> None:
    for engine in COVERAGE_ENGINES.values():
        for backlog in ("long", "short"):
            name = engine.job.environment["STATELOOP_APPLICATION"].format(backlog=backlog)
            (application,) = load_suite(name).applications
            assert application.topics.prefix == f"{backlog}."
            assert engine.job.count.removeprefix("state.") in application.state.model_fields


def test_spans() -> None:
    assert list(spans([True, True, False, True])) == [(True, 0, 2), (False, 2, 3), (True, 3, 4)]
    assert list(spans([False])) == [(False, 0, 1)]
    assert list(spans([])) == []
