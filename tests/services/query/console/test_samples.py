from __future__ import annotations

import pytest

from contracts.metrics import job, worker
from services.query.console.samples import parse_samples
from tests.services.query.console.exposed import exposed


def test_samples_are_found_by_the_catalogue() -> None:
    samples = parse_samples(
        exposed({worker.CALLS: {("city", "place", "result"): 3.0, ("city", "rule", "absence"): 4.0}})
    )
    assert samples.total(worker.CALLS) == 7
    assert samples.divided(worker.CALLS, "outcome") == {("result",): 3.0, ("absence",): 4.0}
    assert samples.divided(worker.CALLS, "api", "enrichment") == {("city", "place"): 3.0, ("city", "rule"): 4.0}


def test_a_missing_metric_is_unknown() -> None:
    samples = parse_samples(exposed({worker.LAG: {(): 3.0}}))
    assert samples.total(job.LAG) is None
    assert samples.smallest(job.STATE_KEYS) is None
    assert samples.divided(job.RECORDS, "topic") == {}


def test_a_histogram_is_read_with_its_bounds() -> None:
    samples = parse_samples(exposed({}, {worker.CALL_SECONDS: {"city": [0.002, 0.3]}}))
    found = samples.buckets(worker.CALL_SECONDS, "api")
    assert found["city", "0.001"] == 0
    assert found["city", "0.0025"] == 1
    assert found["city", "+Inf"] == 2


def test_metrics_of_other_systems_are_ignored() -> None:
    assert parse_samples("process_open_fds 7.0\n").total(worker.LAG) is None


def test_a_sample_that_is_not_finite_is_ignored() -> None:
    assert parse_samples(f"{worker.LAG.exported} NaN\n").total(worker.LAG) is None
    assert parse_samples(f"{worker.LAG.exported} +Inf\n").total(worker.LAG) is None


@pytest.mark.parametrize("text", ["<html>", 'stateloop_worker_lag{a="b 1', "stateloop_worker_lag one"])
def test_invalid_text_raises(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_samples(text)


def test_samples_of_an_application_have_its_label_or_none() -> None:
    text = 'stateloop_worker_lag{application="a"} 3.0\nstateloop_worker_lag{application="b"} 4.0\n'
    found = parse_samples(text + "stateloop_worker_in_flight 5.0\n")
    assert (found.of("a").total(worker.LAG), found.of("b").total(worker.LAG)) == (3.0, 4.0)
    assert found.of("a").total(worker.IN_FLIGHT) == 5.0
