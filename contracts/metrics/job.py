"""The figures of the Spark job, for each of its applications. Those of batches change at the end of a batch."""

from contracts.metrics.metric import Metric, listed


def _counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Metric:
    return Metric("job", "counter", name, text, ("application", *labels))


def _gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Metric:
    return Metric("job", "gauge", name, text, ("application", *labels))


ABOUT = _gauge("about", "Always 1: what the job runs, and its checkpoint.", ("state", "checkpoint"))
BATCHES = _counter("batches", "Batches committed.")
COMMITTED_AT = _gauge(
    "committed_at_seconds",
    "When the last batch was committed, or the query found nothing to read after it, in seconds since 1970.",
)
RECORDS = _counter("records", "Records read.", ("topic",))
LAG = _gauge(
    "lag",
    "Records in the topic that no committed batch has read. In real-time mode, those when the last batch ended.",
    ("topic",),
)
CATCHING_UP = _gauge("catching_up", "Records that the job reads in one micro-batch before it goes live; 0 when live.")
WRITTEN = _counter("written", "Records written: snapshots and dead letters.")
DECODED = _counter("decoded", "Events that a raw source decoded and wrote.")
REFUSED = _counter("refused", "Records of a raw source that became dead letters.")
DEAD_LETTERS = _counter("dead_letters", "Records written to the dead-letter topic, without those of a raw source.")
FILTERED = _counter("filtered", "Events that the filter of the state excluded.")
PROCESSOR_FAILURES = _counter(
    "processor_failures", "Records and timers on which the processor raised, and which became dead letters."
)
COPIES = _counter("copies", "Deltas dropped because they were merged before.")
LATE = _counter("late", "Deltas dropped because their window had expired by the watermark.")
EXPIRED = _counter("expired", "Keys of the state that expired with their window.", ("operator",))
BATCH_SECONDS = _gauge("batch_seconds", "How long the last batch took.")
PAUSE_SECONDS = _gauge(
    "pause_seconds",
    "How much longer than its length the last batch took: for planning, starting and committing, while nothing flows.",
)
PHASE_SECONDS = _gauge(
    "phase_seconds", "How long each phase of the last batch took, by the name that Spark gives it.", ("phase",)
)
WATERMARK = _gauge(
    "watermark_seconds", "The watermark, in seconds since 1970: it expires the windows that started before it."
)
STATE_KEYS = _gauge(
    "state_keys",
    "Keys in an operator's state when the last batch looked for expired ones.",
    ("operator",),
)
STATE_UPDATED = _counter("state_updated", "Keys of the state written.", ("operator",))
STATE_BYTES = _gauge("state_bytes", "Memory that an operator's state takes.", ("operator",))
STATE_COMMIT_SECONDS = _gauge(
    "state_commit_seconds",
    "How long the last commit of an operator's state took, its partitions added up.",
    ("operator",),
)
ROCKSDB = _gauge(
    "rocksdb", "RocksDB's own figures of the last batch, by Spark's name for them.", ("operator", "figure")
)
FAILURES = _counter("failures", "Times that the query failed.")
GAVE_UP = _gauge("gave_up", "Whether the application has given up, 1, or not, 0; the others go on.")
STARTS = _counter("starts", "Times that the query was started, first and after each failure.")

CATALOGUE = listed(dict(globals()))
