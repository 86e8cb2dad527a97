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

        With a topic Kafka deletes the offsets that groups have committed in it. A sink commits before its first write
        of a partition, after it has moved a position of a former topic back. So where a group continues at its offset,
        the position is one of this topic, unless the topic has lost the records before it.
        """
        return 0 <= self.committed <= first and position <= self.end


class OffsetsOf(Protocol):
    """Looks the offsets of a partition up."""

    async def __call__(self, partition: int, /) -> KnownOffsets | None:
        """Return the offsets of now; None if the broker does not answer, or the partition has no leader."""
        ...


def known_offsets(admin: Admin, calls: BlockingCalls, group: str, topic: str) -> OffsetsOf:
    """Return the look-up for a group in a topic, which blocks a thread."""

    def request(place: Partition) -> KnownOffsets | None:
        committed = admin.committed(group, [place])[place].offset
        end = admin.available_offsets({place: LATEST}).get(place)
        return None if end is None else KnownOffsets(committed, end)

    async def offsets(number: int, /) -> KnownOffsets | None:
        detail = "it has no leader"
        try:
            found = await calls.call(partial(request, Partition(topic, number)))
        except KafkaRequestError as error:
            found, detail = None, error.detail
        if found is None:
            log.warning("offsets are unknown", extra={"facts": {"partition": number, "detail": detail}})
        return found

    return offsets
