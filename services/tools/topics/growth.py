"""Adds partitions to the topics of an application, while its job and its workers do not run.

Events and feedback stay where they are: a state is the merge of its deltas in any order, so the next job reads the
former and the new partitions, and producers follow by themselves. A reader finds a snapshot, or a derived record, in
the partition of its key. So those topics are rewritten: each record goes to the partition that its key has now. The
copies have the same epoch and version as the records that they replace, and readers drop what they have seen.

The application's `layout_topic` gets its partitions last. As long as it has fewer, the query service uses the former
number, and finds every key in what it has read. Every step may be repeated, so a growth that was interrupted continues
with the next call.

Each write requires the lease of the checkpoint. A command that was frozen for longer than the lease lasts may wake
while a job runs: it stops.

Alerts and derived states follow from each snapshot, and the workers continue behind the copies. So with these the
growth begins when the workers have read all snapshots.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from contracts.records.named_states import named
from contracts.wire import DerivedRecord
from contracts.wire.alert_record import AlertRecord
from services.runtime.errors import KafkaRequestError
from services.runtime.job_progress import JobProgress
from services.tools.topics.errors import FewerPartitionsError, WebhooksError, answered_at, refused
from services.tools.topics.followers import Followers, topic_ends
from services.tools.topics.rewrite import CLIENT, rewrite

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from contracts.model.application import Application
    from contracts.wire import OffsetVersioned
    from services.runtime.kafka.interfaces import Kafka

PAUSE_S = 0.1
METADATA_S = 5.0
"""The time after which all brokers list the partitions that were added.

An instance of the query service that begins to read after it waits until the records have been moved.
"""
FOLLOW_S = 5.0 + METADATA_S
"""The time for which the next job waits: the instances of the query service check every 5 s, and restart."""


class PartitionGrowth:
    """The growth of an application's topics to `partitions` partitions; None only completes an interrupted growth.

    `address` is that of the brokers, which errors name. Raises FewerPartitionsError, WebhooksError, and NoBrokerError
    as each of its methods.
    """

    def __init__(
        self,
        application: Application,
        kafka: Kafka,
        address: str,
        partitions: int | None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._application = application
        self._kafka = kafka
        self._address = address
        self._sleep = sleep
        self._admin = kafka.admin(CLIENT)
        self._names = {topic.name for topic in application.catalogue() if topic.grows}
        self.counts = self._read()
        topics = application.topics
        self._equal = {application.layout_topic, topics.events, topics.snapshots}
        counts = {self.counts[name] for name in self._equal & self.counts.keys()} or {topics.partitions}
        self.partitions = partitions or max(counts)
        self._is_due = partitions is not None or len(counts) > 1
        self._require_possible()

    @property
    def missing(self) -> dict[str, int]:
        """The number of partitions of each topic that gets more."""
        return {name: count for name, count in self.counts.items() if self._is_due and count < self.partitions}

    @property
    def groups(self) -> list[str]:
        """The groups of the enrichment workers and of the derive workers, by their default names."""
        own = self._application
        return [
            *([own.enrichment_group] if own.enrichments else []),
            *([own.derive_group] if own.derived_names else []),
        ]

    def run(
        self,
        groups: Collection[str],
        report: Callable[[str], object],
        require_lease: Callable[[], object],
        derive_group: str | None = None,
    ) -> None:
        """Add the partitions, once the workers of these groups have stopped.

        `derive_group` is the one whose workers wrote the derived records, by default the application's.
        Raises TopicRefusedError, and what `require_lease` raises if a job may run.
        """
        require_lease()
        self.counts = self._read()  # another command may have changed them
        self._require_possible()
        if not self.missing:
            if self._is_due:  # a command that added the last ones may have been killed before the query service noticed
                self._sleep(FOLLOW_S)
            return
        snapshots, last = self._application.topics.snapshots, self._application.layout_topic
        followers = Followers(self._kafka, self._address, snapshots, groups, report, self._sleep, require_lease)
        if self._application.derived_names and snapshots in self.missing:  # else there are copies
            followers.await_end(self._used(derive_group))
        followers.move_to_end()
        require_lease()
        self._add(self._names - {last})
        self._sleep(METADATA_S)
        require_lease()  # before it says what it does
        states, models = named(self._application), self._offset_versioned()
        for name in (self._application.name, *self._application.derived_names):
            report(f"{states[name].topic} has {self.partitions} partitions, and is rewritten")
            rewrite(self._kafka, self._address, states[name], self.partitions, models.get(name), require_lease)
        followers.move_to_end()
        self._spread_progress(require_lease)
        require_lease()
        self._add({last})
        self._sleep(FOLLOW_S)

    def _require_possible(self) -> None:
        if self.missing and any(alert.webhook for alert in self._application.alerts):
            raise WebhooksError(self._application.name)
        for name, count in self.counts.items():
            if (self._is_due or name in self._equal) and count > self.partitions:
                raise FewerPartitionsError(name, count, self.partitions)

    def _used(self, derive_group: str | None) -> Collection[str]:
        """Return the groups that have read snapshots, also if they have committed nothing.

        Where there are derived records, the derive workers have.
        """
        own, topics = self._application, self._application.topics
        derived = self.counts.keys() & {topics.derived(name) for name in own.derived_names}
        with answered_at(self._address):
            has_records = any(end for name in sorted(derived) for end in topic_ends(self._admin, name).values())
        return [derive_group or own.derive_group] if has_records else []

    def _spread_progress(self, require_lease: Callable[[], object]) -> None:
        """Record the job's progress for the copies: derive workers know by it which windows are over."""
        snapshots = self._application.topics.snapshots

        def ends() -> Mapping[int, int]:
            return {partition.number: end for partition, end in topic_ends(self._admin, snapshots).items()}

        with answered_at(self._address):
            JobProgress(self._admin, snapshots).spread(self.partitions, ends, require_lease)

    def _offset_versioned(self) -> dict[str, type[OffsetVersioned]]:
        """The models of the records whose versions are offsets, by the name of their state."""
        derived: dict[str, type[OffsetVersioned]] = {
            state.name: DerivedRecord for state in self._application.derived if state.tables
        }
        return derived | {alert.name: AlertRecord for alert in self._application.alerts}

    def _add(self, names: Collection[str]) -> None:
        missing = sorted(self.missing.keys() & names)
        try:
            self._admin.grow(dict.fromkeys(missing, self.partitions))
        except KafkaRequestError as error:
            raise refused(error.topic, self._address, error) from error
        while not self.missing.keys().isdisjoint(missing):  # a broker lists them a moment later
            self._sleep(PAUSE_S)
            self.counts = self._read()

    def _read(self) -> dict[str, int]:
        with answered_at(self._address):
            counts = self._admin.partition_counts()
        return {name: counts[name] for name in sorted(self._names) if name in counts}
