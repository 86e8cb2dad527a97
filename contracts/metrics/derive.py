"""The figures of the worker that writes derived states."""

from functools import partial

from contracts.metrics.metric import Metric, listed

_counter = partial(Metric, "derive", "counter", labels=("application",))
_gauge = partial(Metric, "derive", "gauge", labels=("application",))

SNAPSHOTS = _counter("snapshots", "Snapshots read whose derived records are all written.")
REJECTED = _counter("rejected", "Records of the snapshots topic that are no snapshots.")
WRITTEN = _counter("written", "Records written to the topics of derived states.")
ALERTS = _counter("alerts", "Records written to the topics of alerts.")
ROWS = _counter("rows", "Rows read from reference tables, removed ones included.")
FAILED = _counter("failed", "Snapshots whose function raised, which made a dead letter.")
COMMITS = _counter("commits", "Commits that the broker confirmed.")
KAFKA_ERRORS = _counter("kafka_errors", "Kafka errors after which the worker continued.")
LAG = _gauge("lag", "Unread records of the snapshots topic.")

CATALOGUE = listed(dict(globals()))
