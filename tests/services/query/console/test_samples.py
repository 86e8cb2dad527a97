"""The table of samples, by the catalogue; quantiles are those of the values, as exactly as the buckets allow."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.metrics import job, worker
from services.query.console.samples import Samples, parse_samples, quantile
from services.query.console.scrape import parse_result
from tests.services.query.console.exposed import exposed
from tests.services.query.console.observations import JOB, WORKERS

if TYPE_CHECKING:
    from services.query.console.scrape import ScrapeTarget

BOUNDS = (0.01, 0.1, 1.0, float("inf"))


def table(text: str, target: ScrapeTarget = WORKERS[0]) -> Samples:
    return Samples(parse_samples(text, *target))


def test_samples_are_summed_by_their_labels() -> None:
    samples = table(exposed({worker.CALLS: {("city", "place", "result"): 3.0, ("city", "rule", "absence"): 4.0}}))
    assert samples.total(worker.CALLS) == 7
    assert samples.sums(worker.CALLS, "outcome") == {("result",): 3.0, ("absence",): 4.0}
    assert samples.sums(worker.CALLS, "api", "enrichment") == {("city", "place"): 3.0, ("city", "rule"): 4.0}
    assert samples.sums(worker.CALLS, "api", outcome="absence") == {("city",): 4.0}
    assert samples.values(worker.CALLS, enrichment="place") == [3.0]


def test_a_sample_has_the_address_of_its_target() -> None:
    text = exposed({worker.LAG: {(): 3.0}})
    samples = Samples([sample for target in WORKERS for sample in parse_samples(text, *target)])
    assert samples.sums(worker.LAG, "url") == {(target.url,): 3.0 for target in WORKERS}
    assert samples.total(worker.LAG, url=WORKERS[1].url) == 3.0


def test_a_missing_metric_is_unknown() -> None:
    samples = table(exposed({worker.LAG: {(): 3.0}}))
    assert samples.total(job.LAG) is None
    assert samples.total(worker.LAG, url="http://other") is None
    assert samples.values(job.STATE_KEYS) == []
    assert samples.sums(job.RECORDS, "topic") == {}


def test_a_histogram_is_read_with_its_bounds() -> None:
    found = table(exposed({}, {worker.CALL_SECONDS: {"city": [0.002, 0.3]}})).sums(worker.CALL_SECONDS, "api", "le")
    assert (found["city", "0.001"], found["city", "0.0025"], found["city", "+Inf"]) == (0, 1, 2)


def test_only_the_metrics_of_the_kind_of_target_are_read() -> None:
    text = exposed({worker.LAG: {(): 3.0}, job.BATCHES: {("flights",): 4.0}}) + "process_open_fds 7.0\n"
    assert (table(text).total(worker.LAG), table(text).total(job.BATCHES)) == (3.0, None)
    assert (table(text, JOB).total(worker.LAG), table(text, JOB).total(job.BATCHES)) == (None, 4.0)


@pytest.mark.parametrize("value", ["NaN", "+Inf"])
def test_a_sample_that_is_not_finite_is_ignored(value: str) -> None:
    assert table(f"{worker.LAG.exported} {value}\n").total(worker.LAG) is None


@pytest.mark.parametrize("text", ["<html>", 'stateloop_worker_lag{a="b 1', "stateloop_worker_lag one"])
def test_invalid_text_raises(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        table(text)


def test_samples_of_an_application_have_its_label_or_none() -> None:
    text = 'stateloop_worker_lag{application="a"} 3.0\nstateloop_worker_lag{application="b"} 4.0\n'
    found = parse_result(WORKERS[0], text + "stateloop_worker_in_flight 5.0\n")
    for name, lag in (("a", 3.0), ("b", 4.0)):
        samples = Samples(found.of_application(name).samples)
        assert (samples.total(worker.LAG), samples.total(worker.IN_FLIGHT)) == (lag, 5.0)


def counted(values: list[float]) -> dict[float, float]:
    return {bound: float(sum(value <= bound for value in values)) for bound in BOUNDS}


@given(st.lists(st.floats(0, 0.99), min_size=1), st.floats(0.01, 1.0))
def test_the_quantile_is_in_the_bucket_of_the_exact_one(values: list[float], share: float) -> None:
    ordered = sorted(values)
    rank = next(i for i in range(1, len(ordered) + 1) if i >= share * len(ordered) - 1e-9)
    bucket = bisect_left(BOUNDS, ordered[rank - 1])
    found = quantile(share, counted(values))
    assert found is not None
    assert ((0.0, *BOUNDS)[bucket]) - 1e-9 <= found <= BOUNDS[bucket] + 1e-9


def test_without_values_there_is_no_quantile() -> None:
    assert quantile(0.5, {}) is None
    assert quantile(0.5, counted([])) is None


def test_beyond_the_last_bound_the_quantile_is_that_bound() -> None:
    assert quantile(0.5, counted([30.0])) == 1.0


def test_values_are_assumed_evenly_spread() -> None:
    assert quantile(0.5, counted([0.05, 0.05])) == pytest.approx(0.055)
