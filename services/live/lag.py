"""How far the workers' consumer group is behind: asked of the broker by a thread of its own.

By a consumer that joins no group: the admin client's request for the same ended the process when a broker came back
(librdkafka 2.16: assertion `eonce->refcnt > 0`).
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from contracts.model.topics import READ_COMMITTED

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWER_S = 2.0
EVERY_S = 1.0


class GroupLag:
    """The committed offsets of one group in one topic, asked for again and again. A context manager."""

    def __init__(self, client: Mapping[str, str], group: str, topic: str, partitions: list[int]) -> None:
        own = {"enable.auto.commit": False, "log_level": 0}
        self._consumer = Consumer({**own, **client, **READ_COMMITTED, "group.id": group})
        self._wanted = [TopicPartition(topic, number) for number in partitions]
        self._committed: dict[int, int] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="lag", daemon=True)

    def lag(self, ends: Mapping[int, tuple[int, int]]) -> int | None:
        """The records between what is committed and the end of each partition; None when that is not known."""
        committed = self._committed
        return None if committed is None else behind(committed, ends)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(ANSWER_S)

    def _ask(self) -> None:
        while not self._stopping.wait(EVERY_S):
            try:
                found = self._consumer.committed(self._wanted, timeout=ANSWER_S)
            except KafkaException:
                self._committed = None
            else:
                self._committed = {one.partition: one.offset for one in found if one.error is None and one.offset >= 0}
        self._consumer.close()


def behind(committed: Mapping[int, int], ends: Mapping[int, tuple[int, int]]) -> int:
    """The sum over all partitions. Where nothing is committed yet, the group begins at the first offset."""
    return sum(max(0, end - max(first, committed.get(number, first))) for number, (first, end) in ends.items())
