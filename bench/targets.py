"""The goals of our job, absolute or relative to its peers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from bench.catalogue import FULL
from bench.enrichment.jobs import FASTSTREAM, FLINK_ASYNC
from bench.harness.headings import HEADINGS
from bench.harness.jobs import OURS
from bench.harness.results import RunResult, middle
from bench.windows.jobs import FLINK_CLOSE, FLINK_EVENT, STATELOOP_BATCH
from bench.yardstick.jobs import FLINK_STATE, KSTREAMS_STATE

SIZES = {measure.name: FULL.size(measure) for measure in FULL.measures}


@dataclass(frozen=True)
class Goal:
    """A bound on a median of one of our jobs, or on its ratio to another job's median in the same session."""

    measure: str
    figure: str
    bound: float
    least: bool = False
    over: str | None = None
    """The name of the other job,"""
    of: str = OURS
    """and of ours."""
    relative_to: str | None = None
    """Another measure: the bound is on the ratio to our job's figure there."""
    goal: bool = False
    """Whether it is reported only: a missed goal fails nothing."""

    def binds(self, results: Sequence[RunResult]) -> bool:
        """Return whether these are of the size that it is set for, of our job and of the other one."""
        there = {result.job for result in results if (result.measure, result.size) == (self.measure, self._size)}
        other = self.relative_to is None or any(result.measure == self.relative_to for result in results)
        return other and there >= {job for job in (self.of, self.over) if job}

    def outcome(self, results: Sequence[RunResult]) -> tuple[bool, str]:
        """Return whether it is met, with a sentence about it."""
        value = middle(results, self.measure, self.of, self.figure)
        if self.over:
            value /= middle(results, self.measure, self.over, self.figure) or math.nan
        if self.relative_to:
            value /= middle(results, self.relative_to, self.of, self.figure) or math.nan
        met = value >= self.bound if self.least else value <= self.bound
        what = "" if self.of == OURS else f"{self.of}, "
        what += HEADINGS[self.figure][0] + (f" over that of {self.over}" if self.over else "")
        what += f" over that of {self.relative_to}" if self.relative_to else ""
        bound = f"{'goal' if self.goal else 'target'} {'≥' if self.least else '≤'} {self.bound:g}"
        outcome = ("reached" if met else "beyond") if self.goal else ("met" if met else "NOT MET")
        return met, f"{outcome:7} {self.measure}: {what} {value:.2f} ({bound})"

    @property
    def _size(self) -> str:
        return SIZES[self.measure]


TARGETS = (
    Goal("drain-2m", "records_per_s", 1.0, least=True, over=FLINK_STATE.name),
    Goal("drain-2m", "records_per_s", 1.0, least=True, over=KSTREAMS_STATE.name, goal=True),
    Goal("drain-100k", "records_per_s", 0.7, least=True, over=FLINK_STATE.name),
    Goal("drain-100k", "records_per_s", 1.0, least=True, over=FLINK_STATE.name, goal=True),
    Goal("latency-1k", "p50_ms", 6),
    Goal("latency-1k", "p99_ms", 30),
    Goal("latency-1k", "p50_ms", 1.2, over=FLINK_STATE.name),
    Goal("latency-1k", "p99_ms", 2.0, over=FLINK_STATE.name),
    Goal("latency-10k", "p99_ms", 100),
    Goal("windows", "records_per_s", 0.8, least=True, over=FLINK_EVENT.name, goal=True),
    Goal("windows", "records_per_s", 0.8, least=True, of=STATELOOP_BATCH.name, over=FLINK_CLOSE.name, goal=True),
    Goal("rules-100k", "p99_ms", 1_000),
    Goal("rules-100k", "slowest_ms", 1_000, goal=True),
    Goal("worker-calls", "calls_per_cpu_s", 6_000, least=True),
    Goal("worker-calls", "calls_per_cpu_s", 18_000, least=True, goal=True),
    Goal("worker-calls", "calls_per_cpu_s", 1.0, least=True, over=FASTSTREAM.name),
    Goal("worker-calls", "calls_per_cpu_s", 1.0, least=True, over=FLINK_ASYNC.name, goal=True),
    Goal("worker-calls", "repeated", 0),
    Goal("worker-idle", "records_per_s", 80_000, least=True),
    Goal("worker-slow", "calls_per_s", 0.95, least=True, relative_to="worker-calls"),
    Goal("query-5m", "gets_per_cpu_s", 25_000, least=True),
    Goal("query-5m", "gets_per_cpu_s", 60_000, least=True, goal=True),
    Goal("query-5m", "half_p99_ms", 8),
    Goal("query-5m", "half_over_2s", 0),
    Goal("query-5m", "batch_keys_per_cpu_s", 150_000, least=True),
    Goal("query-5m", "visible_p50_ms", 5),
    Goal("query-5m", "visible_p99_ms", 30),
    Goal("query-5m", "rebuild_s", 60),
    Goal("query-5m", "restart_s", 3),
)


def missed(results: Sequence[RunResult], targets: Sequence[Goal] = TARGETS) -> list[Goal]:
    """Those that bind, and are not met."""
    return [goal for goal in targets if goal.binds(results) and not goal.goal and not goal.outcome(results)[0]]


def show(results: Sequence[RunResult], console: Console, targets: Sequence[Goal] = TARGETS) -> None:
    """Print the outcome of those that bind, and how many do not."""
    binding = [target for target in targets if target.binds(results)]
    for target in binding:
        console.print(target.outcome(results)[1], highlight=False, soft_wrap=True)
    if len(binding) < len(targets):
        left = len(targets) - len(binding)
        console.print(f"{left} of {len(targets)} targets are for other sizes or jobs than these", highlight=False)
