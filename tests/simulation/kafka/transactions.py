"""The coordinator of transactions: it fences earlier producers of an id, and ends transactions in all partitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation.kafka.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.runtime.kafka.values import GroupOffset, Partition
    from tests.simulation.kafka.groups import Groups
    from tests.simulation.kafka.topics import Topics

FENCED = "_FENCED"


@dataclass
class Transaction:
    """An open transaction: its number, and the partitions that will have its marker."""

    number: int
    partitions: set[Partition] = field(default_factory=set)
    group_offsets: dict[str, dict[Partition, GroupOffset]] = field(default_factory=dict)


class Transactions:
    """The producers of transactions by their ids. `epoch` is that of a producer."""

    def __init__(self, topics: Topics, groups: Groups) -> None:
        self._topics = topics
        self._groups = groups
        self._epochs: dict[str, int] = {}
        self._open: dict[str, Transaction] = {}
        self._begun = 0

    def register(self, transactional_id: str, now_ms: int) -> int:
        """Return the epoch of a new producer. The transaction that an earlier one has left open is aborted."""
        self._end(transactional_id, now_ms, is_committed=False)
        self._epochs[transactional_id] = self._epochs.get(transactional_id, -1) + 1
        return self._epochs[transactional_id]

    def add_partition(self, transactional_id: str, epoch: int, partition: Partition) -> int:
        """Return the number of the transaction, which has a marker in this partition. Raises RefusedError."""
        transaction = self._transaction(transactional_id, epoch)
        transaction.partitions.add(partition)
        return transaction.number

    def add_offsets(
        self, transactional_id: str, epoch: int, group: str, offsets: Mapping[Partition, GroupOffset]
    ) -> None:
        """Commit offsets of a group when the transaction is committed. Raises RefusedError."""
        transaction = self._transaction(transactional_id, epoch)
        for partition in offsets:
            self._topics.log(partition)
        transaction.group_offsets.setdefault(group, {}).update(offsets)

    def end(self, transactional_id: str, epoch: int, now_ms: int, *, is_committed: bool) -> None:
        """End the transaction, with a marker in each of its partitions. Raises RefusedError."""
        self._require_epoch(transactional_id, epoch)
        self._end(transactional_id, now_ms, is_committed=is_committed)

    def _transaction(self, transactional_id: str, epoch: int) -> Transaction:
        self._require_epoch(transactional_id, epoch)
        if transactional_id not in self._open:
            self._begun += 1
            self._open[transactional_id] = Transaction(self._begun)
        return self._open[transactional_id]

    def _require_epoch(self, transactional_id: str, epoch: int) -> None:
        if self._epochs[transactional_id] != epoch:
            raise RefusedError(FENCED)

    def _end(self, transactional_id: str, now_ms: int, *, is_committed: bool) -> None:
        transaction = self._open.pop(transactional_id, None)
        if transaction is None:
            return
        for partition in sorted(filter(self._topics.has, transaction.partitions)):
            self._topics.log(partition).end_transaction(transaction.number, now_ms, is_committed=is_committed)
        if is_committed:
            for group, offsets in transaction.group_offsets.items():
                self._groups.group(group).offsets.update(offsets)
