from __future__ import annotations

import pytest

from bench.enrichment.behaviour import Behaviour
from bench.enrichment.ledger import CallLedger
from bench.enrichment.measures import Calls
from bench.enrichment.run import WorkerRun
from bench.enrichment.samples import Sample

CALLS = Calls("calls", 1_000)


def sample(at: float, answers: int, rss_mb: float = 100.0) -> Sample:
    """Half of the time is CPU time; what is committed is ten behind."""
    return Sample(at, at / 2, rss_mb, answers, max(0, answers - 10))


def test_rates_are_those_of_the_steady_part() -> None:
    samples = [sample(0, 0), sample(5, 100), sample(6, 500), sample(7, 960), sample(99, 1_000)]
    figures = WorkerRun(answered=False, samples=samples, ledger=CallLedger(calls=1_001, locations=1_000)).figures(CALLS)
    assert figures["calls_per_s"] == 430
    assert figures["calls_per_cpu_s"] == 860
    assert figures["repeated"] == 1


def test_commits_count_snapshots_without_answers() -> None:
    samples = [Sample(at, at, 1.0, 0, done) for at, done in ((1, 0), (2, 200), (4, 1_000))]
    assert WorkerRun(answered=True, samples=samples).figures(CALLS)["records_per_s"] == 400


@pytest.mark.parametrize(("repeated", "beyond"), [(60, 0), (61, 1)])
def test_repeated_calls_after_kill_9_are_compared_with_those_in_flight_or_uncommitted(
    repeated: int, beyond: int
) -> None:
    run = WorkerRun(answered=False, killed=sample(5, 500), ledger_killed=CallLedger(calls=550))
    run.ledger = CallLedger(calls=1_000 + repeated, locations=1_000)
    assert run.figures(CALLS) == {"repeated": repeated, "beyond": beyond}


def test_a_quota_is_compared_with_the_accepted_and_rejected_calls() -> None:
    limited = Calls("quota", 1_000, Behaviour(quota=100))
    samples = [sample(0, 100), sample(9, 955)]
    figures = WorkerRun(answered=False, samples=samples, ledger=CallLedger(calls=990, refused=10)).figures(limited)
    assert figures["quota_used"] == 0.95
    assert figures["refused"] == 0.01


def test_an_outage_is_measured_by_the_rate_after_it_the_memory_and_the_group() -> None:
    before = [sample(at, 100 * at) for at in range(11)]
    during = [sample(at, 1_000, 100.0 + at) for at in range(11, 20)]
    after = [sample(at, 1_000 + 50 * (at - 20)) for at in range(20, 40)]
    run = WorkerRun(answered=False, samples=before + during + after, ledger=CallLedger(down=10.0, up=20.0))
    run.memberships = [frozenset(), frozenset("a"), frozenset("a"), frozenset("b"), frozenset("b")]
    figures = run.figures(Calls("outage", 2_000))
    assert figures["recovered"] == 0.5
    assert figures["rss_growth_mb"] == 8
    assert figures["rebalances"] == 1
