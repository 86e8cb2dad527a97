from __future__ import annotations

import pytest

from contracts.metrics import query
from contracts.metrics import worker as names
from contracts.metrics.counts import Counts, HistogramCounts


def test_counts_under_labels_and_sums_over_those_that_are_left_out() -> None:
    counts = Counts(names.CATALOGUE)
    counts.add(names.CALLS, "registry", "owner", "result")
    counts.add(names.CALLS, "registry", "owner", "result", by=2)
    counts.add(names.CALLS, "registry", "street", "absence")
    assert counts.get(names.CALLS, "registry", "owner", "result") == 3
    assert counts.get(names.CALLS, "registry", "owner") == 3
    assert counts.get(names.CALLS) == 4
    assert counts.get(names.OUTDATED) == 0


def test_a_gauge_stands_where_it_was_set() -> None:
    counts = Counts(names.CATALOGUE)
    counts.set(names.BREAKER, 2, "registry")
    counts.set(names.BREAKER, 0, "registry")
    counts.set(names.LAG, 7)
    assert counts.divided(names.BREAKER) == {("registry",): 0}
    assert counts.get(names.LAG) == 7


def test_labels_that_the_metric_does_not_declare_are_refused() -> None:
    counts = Counts(names.CATALOGUE)
    with pytest.raises(ValueError, match="calls is divided by"):
        counts.add(names.CALLS, "result")
    with pytest.raises(ValueError, match="lag is divided by nothing"):
        counts.set(names.LAG, 1, "partition")
    with pytest.raises(ValueError, match="call_seconds is divided by"):
        counts.observe(names.CALL_SECONDS, 0.1)
    assert counts.get(names.CALLS) == 0


def test_a_histogram_counts_a_value_at_a_bound_within_it() -> None:
    histogram = HistogramCounts((0.1, 1.0))
    for value in (0.1, 0.5, 1.0, 7.0):
        histogram.note(value)
    assert histogram.cumulative() == [("0.1", 1), ("1.0", 3), ("+Inf", 4)]
    assert histogram.count == 4
    assert histogram.sum == pytest.approx(8.6)


def test_a_log_line_has_each_figure_divided_by_its_last_label() -> None:
    counts = Counts(names.CATALOGUE)
    counts.add(names.CALLS, "registry", "owner", "result")
    counts.add(names.CALLS, "maps", "street", "result", by=2)
    counts.observe(names.CALL_SECONDS, 0.2, "registry")
    figures = counts.values()
    assert list(figures) == [metric.name for metric in names.CATALOGUE]
    assert figures["calls"] == {"result": 3}
    assert figures["call_seconds"] == {"registry": 1}
    assert figures["snapshots"] == 0
    assert figures["answers"] == {}


def test_a_scrape_has_every_metric_and_those_without_labels_begin_at_0() -> None:
    counts = Counts(query.CATALOGUE)
    counts.add(query.KEYS, "flights", by=3)
    counts.observe(query.PUSH_SECONDS, 0.7)
    families = {family.name: family for family in counts.collect()}
    assert list(families) == [metric.family for metric in query.CATALOGUE]
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert samples[query.CONFLATED.exported,] == 0
    assert samples[query.KEYS.exported, "flights"] == 3
    assert not families[query.REQUESTS.family].samples
    assert samples[f"{query.PUSH_SECONDS.family}_bucket", "0.5"] == 0
    assert samples[f"{query.PUSH_SECONDS.family}_bucket", "+Inf"] == 1
    assert samples[f"{query.PUSH_SECONDS.family}_sum",] == 0.7
    assert samples[f"{query.REQUEST_SECONDS.family}_count",] == 0
