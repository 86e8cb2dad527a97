from __future__ import annotations

import re
from collections import Counter

from contracts.metrics import CATALOGUE, derive, job, query, sink, worker


def test_each_metric_is_named_once_and_described_in_a_sentence() -> None:
    assert not [name for name, count in Counter(metric.exported for metric in CATALOGUE).items() if count > 1]
    assert all(
        re.fullmatch(r"stateloop_(worker|job|derive|sink|query)(_[a-z]+)+", metric.exported) for metric in CATALOGUE
    )
    assert all(re.fullmatch(r"[A-Z][^|]+\.", metric.help) for metric in CATALOGUE)


def test_the_catalogue_has_the_metrics_of_all_parts() -> None:
    assert worker.CALLS in CATALOGUE
    assert {metric.part for metric in worker.CATALOGUE} == {"worker"}
    assert {metric.part for metric in job.CATALOGUE} == {"job"}
    assert {metric.part for metric in query.CATALOGUE} == {"query"}
    assert {metric.part for metric in derive.CATALOGUE} == {"derive"}
    assert {metric.part for metric in sink.CATALOGUE} == {"sink"}
    assert query.REQUESTS in CATALOGUE


def test_only_a_counter_has_total_in_its_name_and_only_a_histogram_has_buckets() -> None:
    assert worker.CALLS.exported == "stateloop_worker_calls_total"
    assert worker.LAG.exported == "stateloop_worker_lag"
    assert not [
        metric for metric in CATALOGUE if metric.name.endswith(("_total", "_count", "_sum", "_bucket", "_info"))
    ]
    assert all(bool(metric.buckets) == (metric.kind == "histogram") for metric in CATALOGUE)
    assert all(list(metric.buckets) == sorted(set(metric.buckets)) for metric in CATALOGUE)


def test_labels_are_names() -> None:
    assert all(re.fullmatch(r"[a-z]+", label) and label != "le" for metric in CATALOGUE for label in metric.labels)
