"""Ingest: reads the topics of all named states into their stores, in one thread.

`Ingestion` is its interface: the cluster assigns partitions and reads their progress, and `ChangeListener`s are
notified on the event loop of each change that readers can see. `KafkaIngestion` implements it.
"""

from services.query.ingest.ingestion import ChangeListener, ChangeListeners, Ingestion, ReadProgress, Restart
from services.query.ingest.kafka_ingestion import IngestCounts, KafkaIngestion
from services.query.ingest.kafka_tables import KafkaTables
from services.query.ingest.partition_counts import watch_partition_counts, with_partition_counts
from services.query.ingest.tombstones import TombstoneRetention, read_tombstone_retention

__all__ = [
    "ChangeListener",
    "ChangeListeners",
    "IngestCounts",
    "Ingestion",
    "KafkaIngestion",
    "KafkaTables",
    "ReadProgress",
    "Restart",
    "TombstoneRetention",
    "read_tombstone_retention",
    "watch_partition_counts",
    "with_partition_counts",
]
