"""What Kafka knows of a partition that a sink takes over: whether the position in the store is one of this topic."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from services.runtime.errors import KafkaRequestError
from services.runtime.kafka.values import LATEST, Partition

if TYPE_CHECKING:
    from services.runtime.call_thread import BlockingCalls
    from services.runtime.kafka.interfaces import Admin

log = logging.getLogger(__name__)


class KnownOffsets(NamedTuple):
    """The committed offset of the group in a partition, negative without one, and the end of the partition."""

    committed: int
    end: int

    def is_of(self, position: int, first: int) -> bool:
        """Return whether a position in the store is one of this topic, of which a member has read from `first` on.

        With a topic Kafka deletes the offsets that groups have committed in it, and a sink commits after it has moved
        the position in the store. So a group that continues at its offset has moved the position in this topic, unless
        the topic has lost the records before it.
        """
        return 0 <= self.committed <= first and position <= self.end


class OffsetsOf(Protocol):
    """Looks the offsets of a partition up."""

    async def __call__(self, partition: int, /) -> KnownOffsets | None:
        """Return the offsets of now; None if the broker does not answer."""
        ...


def known_offsets(admin: Admin, calls: BlockingCalls, group: str, topic: str) -> OffsetsOf:
    """Return the look-up for a group in a topic, which blocks a thread."""

    def request(place: Partition) -> KnownOffsets:
        committed = admin.committed(group, [place])[place].offset
        return KnownOffsets(committed, admin.offsets({place: LATEST})[place])

    async def offsets(number: int, /) -> KnownOffsets | None:
        try:
            return await calls.call(partial(request, Partition(topic, number)))
        except KafkaRequestError as error:
            log.warning("offsets are unknown", extra={"facts": {"partition": number, "detail": error.detail}})
            return None

    return offsets
