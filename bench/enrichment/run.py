"""The samples of one benchmark run of a worker, and the figures computed from them."""

from dataclasses import dataclass, field
from itertools import pairwise

from bench.enrichment.ledger import CallLedger
from bench.enrichment.measures import Calls
from bench.enrichment.samples import Sample
from bench.harness.figures import Figures

BEGIN, END = 0.1, 0.95
"""The part of the snapshots that counts: a worker warms up at first, and has fewer requests in flight at the end."""
BEFORE_S, AFTER_S, RECOVER_S = 4.0, 4.0, 2.0
"""How long the rate is taken before an outage and after it, and how long after its end that begins."""


@dataclass
class WorkerRun:
    """The samples of a worker, in order, and the ledger of the API."""

    answered: bool
    samples: list[Sample] = field(default_factory=list)
    memberships: list[frozenset[str]] = field(default_factory=list)
    ledger: CallLedger = field(default_factory=CallLedger)
    killed: Sample | None = None
    """The sample before it was killed."""
    ledger_killed: CallLedger = field(default_factory=CallLedger)
    """The ledger at that time."""

    def done(self, sample: Sample) -> int:
        """Return how many snapshots are done, by the answers or, without calls, by the commits."""
        return sample.committed if self.answered else sample.answers

    def figures(self, calls: Calls) -> Figures:
        """All figures of a run."""
        if self.killed:
            return {"repeated": self.ledger.repeated, "beyond": self._beyond(self.killed)}
        found = self._rates(calls) | {"rss_mb": max(one.rss_mb for one in self.samples)}
        if self.answered:
            return found
        found["repeated"] = self.ledger.repeated
        if calls.behaviour.quota:
            found |= self._quota(calls.behaviour.quota, found["calls_per_s"])
        if self.ledger.down:
            found |= self._outage()
        return found

    def _rates(self, calls: Calls) -> Figures:
        first, last = self._window(BEGIN * calls.events, END * calls.events)
        count = self.done(last) - self.done(first)
        what = "records" if self.answered else "calls"
        return {
            f"{what}_per_s": count / (last.at - first.at),
            f"{what}_per_cpu_s": count / (last.cpu_s - first.cpu_s),
        }

    def _window(self, begin: float, end: float) -> tuple[Sample, Sample]:
        """The first sample with so much done, and the first one after it with so much."""
        first = next(index for index, one in enumerate(self.samples) if self.done(one) >= begin)
        rest = self.samples[first + 1 :]
        return self.samples[first], next((one for one in rest if self.done(one) >= end), self.samples[-1])

    def _beyond(self, killed: Sample) -> int:
        """Repeated calls, less those that were in flight or uncommitted when it was killed."""
        return max(0, self.ledger.repeated - (self.ledger_killed.calls - killed.committed))

    def _quota(self, quota: int, rate: float) -> Figures:
        total = self.ledger.calls + self.ledger.refused
        return {"quota_used": rate / quota, "refused": self.ledger.refused / total}

    def _outage(self) -> Figures:
        down, up = self.ledger.down, self.ledger.up
        before = self._rate(down - BEFORE_S, down)
        after = self._rate(up + RECOVER_S, up + RECOVER_S + AFTER_S)
        during = [one.rss_mb for one in self.samples if down < one.at < up]
        return {
            "recovered": after / before,
            "rss_growth_mb": during[-1] - during[0],
            "rebalances": sum(one != other for one, other in pairwise(filter(None, self.memberships))),
        }

    def _rate(self, begin: float, end: float) -> float:
        """Answers per second."""
        inside = [one for one in self.samples if begin <= one.at <= end]
        return (inside[-1].answers - inside[0].answers) / (inside[-1].at - inside[0].at)
