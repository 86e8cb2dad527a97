"""The topics that a derive worker uses, and the numbers of their partitions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from services.alerts.errors import UnequalPartitionsError
from services.runtime.errors import KafkaRequestError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from contracts import Application
    from services.runtime.call_thread import BlockingCalls
    from services.runtime.kafka.interfaces import Admin
    from services.runtime.topic_check import TopicCheck

PAUSE_S = 0.1


def names(application: Application) -> Iterator[str]:
    """The topics of the derived states, of the alerts, and of the tables of their rules."""
    topics = application.topics
    yield from (topics.derived(name) for name in application.derived_names)
    yield from (topics.table(table) for table in application.tables if application.reads_tables)


def check_partitions(application: Application, partition_counts: Mapping[str, int]) -> None:
    """Require that alerts are in the partitions of their snapshots. Raises UnequalPartitionsError."""
    wanted = partition_counts[application.topics.snapshots]
    for alert in application.alerts:
        if (found := partition_counts[topic := application.topics.derived(alert.name)]) != wanted:
            raise UnequalPartitionsError(topic, found, wanted)


async def partition_counts(admin: Admin, check: TopicCheck, calls: BlockingCalls) -> Mapping[str, int]:
    """Wait for a broker and for the checked topics, and return the number of partitions of all topics.

    Raises TopicsMissingError, and the errors of the check of the owner.
    """
    counts: Mapping[str, int] = {}

    def listed() -> Collection[str] | None:
        """Return the topics with partitions: one without is being created, and no key has a place in it."""
        nonlocal counts
        try:
            counts = admin.partition_counts()
        except KafkaRequestError:
            return None
        return {name for name, count in counts.items() if count}

    while True:
        await calls.call(lambda: check.check(listed))
        if check.is_complete:
            return counts
        await asyncio.sleep(PAUSE_S)
