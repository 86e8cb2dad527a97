"""Events and their snapshots, brought together."""

from collections import Counter
from collections.abc import Sequence

from bench.harness.figures import Figures, largest_gap, percentile, percentiles, within
from bench.harness.load import Sent
from bench.harness.oracle import SnapshotDecoder
from bench.harness.receive import Received


class Match:
    """The times at which each event was sent, and its first snapshot received."""

    def __init__(
        self, sent: Sequence[Sent], received: Sequence[Received], commits: Sequence[float], reader: SnapshotDecoder
    ) -> None:
        self._sent, self._received, self._commits, self._reader = sent, received, commits, reader

    def figures(self, begin: float, end: float) -> Figures:
        """Return the figures of the events sent in [begin, end), in seconds of the epoch."""
        sent = [one for one in self._sent if begin <= one.at < end]
        first = self._first(begin)
        keys = [(one, first.get((one.reading.device, one.reading.number))) for one in sent]
        pairs = [(one, at) for one, at in keys if at is not None]
        late = sorted(one.at - one.due for one in sent)
        turns = Counter(one.reading.device for one in sent)
        busiest = max(turns, key=turns.__getitem__, default=None)
        others = [at - one.at for one, at in pairs if one.reading.device != busiest]
        return percentiles([at - one.at for one, at in pairs]) | {
            "others_p99_ms": percentiles(others)["p99_ms"],
            "p99_from_due_ms": percentiles([at - one.due for one, at in pairs])["p99_ms"],
            "late_p99_ms": 1000 * percentile(late, 0.99),
            "late_max_ms": 1000 * percentile(late, 1.0),
            "gap_ms": 1000 * largest_gap([at for at, _ in self._received if begin <= at < end]),
            "boundaries": within(self._commits, begin, end),
            "events": len(sent),
        }

    def _first(self, begin: float) -> dict[tuple[str, int], float]:
        """Return when each snapshot came first. Those of events sent later cannot have come before."""
        first: dict[tuple[str, int], float] = {}
        for at, value in self._received:
            if at >= begin and (read := self._reader.read(value)):
                first.setdefault((read.device, read.events), at)
        return first
