"""The figures of the worker that writes derived states."""

from functools import partial

from contracts.metrics.metric import Metric, listed

_counter = partial(Metric, "derive", "counter", labels=("application",))

SNAPSHOTS = _counter("snapshots", "Snapshots read whose derived records are all written.")
REJECTED = _counter("rejected", "Records of the snapshots topic that are no snapshots.")
WRITTEN = _counter("written", "Records written to the topics of derived states.")
ALERTS = _counter("alerts", "Records written to the topics of alerts.")
ROWS = _counter("rows", "Rows read from reference tables, removed ones included.")
FAILED = _counter("failed", "Snapshots whose function raised, which made a dead letter.")

CATALOGUE = listed(dict(globals()))
