"""Requests the end offsets of partitions from the brokers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from services.runtime.errors import KafkaRequestError
from services.runtime.kafka.values import LATEST, Partition

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from services.query.store import StatePartition
    from services.runtime.kafka.interfaces import Admin

log = logging.getLogger(__name__)

RESPONSE_TIMEOUT_S = 5.0


class EndOffsetReader:
    """Blocks while it waits for the brokers. `topics` gives the topic of each state."""

    def __init__(self, admin: Admin, topics: Mapping[str, str]) -> None:
        self._admin = admin
        self._topics = topics

    def read(self, partitions: Collection[StatePartition]) -> dict[StatePartition, int]:
        """Return the end offset of each partition; none if the brokers do not return them in time."""
        requested = {Partition(self._topics[partition.state], partition.number): partition for partition in partitions}
        try:
            found = self._admin.offsets(dict.fromkeys(requested, LATEST), RESPONSE_TIMEOUT_S)
        except KafkaRequestError as error:
            log.warning("end offsets are unknown", extra={"facts": {"detail": error.detail}})
            return {}
        return {requested[partition]: offset for partition, offset in found.items()}
