"""Low watermarks: the time before which a query has processed every record that arrived.

A query reads its partitions at different speeds, and a raw source is decoded before its events are read. So neither the
clock nor the largest time in the records shows what is still unread. The low watermark does: a check reads the time,
and then the end offsets of the topics. When the query has committed these offsets, it has processed all that arrived
before that time. An application whose events a raw source writes takes, in place of the clock, the low watermark of
that source. A record arrives by the broker's clock, so the time is no later than that clock's, where a topic shows it.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Protocol

from pyspark.sql.streaming.listener import StreamingQueryProgress

from services.runtime.broker_clock import BrokerClock
from spark_app.errors import BrokerUnreachableError
from spark_app.topics.offsets import Positions

EVERY = timedelta(seconds=1)
"""The pause between two checks."""


@dataclass(frozen=True)
class Check:
    """A time, and the end offsets of the topics after it."""

    time: datetime
    end_offsets: Positions

    def behind(self, committed: Positions) -> list[tuple[str, int]]:
        """Return the partitions of which records before the time may be unread."""
        return [partition for partition, offset in self.end_offsets.items() if committed.get(partition, 0) < offset]


class Inputs(Protocol):
    """The topics that a query reads. Its methods raise BrokerUnreachableError."""

    def ends(self) -> Positions:
        """See `SourceOffsets.ends`."""
        ...

    def newest_ms(self) -> int | None:
        """See `SourceOffsets.newest_ms`."""
        ...


class LowWatermark:
    """The low watermark of one query. Its job's thread writes it, any thread reads `time`.

    The query reads these `inputs`. All records that arrived before the time that `upstream` returns are in them; it
    returns None while that is unknown. Its clock may be ahead, so a check takes the time of `broker_clock` if that is
    earlier. Inputs that do not show the broker's clock have no such bound, and leave `broker_clock` as it is.
    """

    def __init__(self, inputs: Inputs, upstream: Callable[[], datetime | None], broker_clock: BrokerClock) -> None:
        self.time: datetime | None = None
        self._inputs = inputs
        self._upstream = upstream
        self._broker_clock = broker_clock
        self._check: Check | None = None
        self._committed: Positions = {}

    def committed(self, positions: Positions) -> None:
        """Follow a commit, and begin the next check if the last one is complete."""
        self._committed |= positions
        self.advance()

    def advance(self) -> None:
        """Begin the next check if the last one is complete. A broker that is away is no error: a later call does it."""
        if self._check is not None:
            if self._check.behind(self._committed):
                return
            self.time, self._check = self._check.time, None
        if (upstream := self._upstream()) is None or (self.time is not None and upstream < self.time + EVERY):
            return
        try:
            if (newest_ms := self._inputs.newest_ms()) is not None:
                self._broker_clock.note(newest_ms)
                upstream = min(upstream, self._broker_clock.now())
            if self.time is None or upstream >= self.time + EVERY:
                self._check = Check(upstream, self._inputs.ends())
        except BrokerUnreachableError:
            return

    def behind(self) -> list[tuple[str, int]]:
        """Return the partitions that the present check waits for."""
        return self._check.behind(self._committed) if self._check else []


class RawProgress:
    """The low watermarks of the raw sources that this driver decodes, by topic.

    The driver's low watermarks share a `broker_clock`: heartbeats, which other topics have, show it for a quiet source.
    Only records that the broker has stamped show it.
    """

    def __init__(self) -> None:
        self.broker_clock = BrokerClock(monotonic)
        self._sources: dict[str, LowWatermark] = {}

    def add(self, topic: str, source: LowWatermark) -> None:
        """Add a source whose query runs."""
        self._sources[topic] = source

    def remove(self, topic: str) -> None:
        """Remove a source that has given up."""
        self._sources.pop(topic, None)

    def time(self, topics: Iterable[str]) -> datetime | None:
        """Return the time up to which all these topics are decoded, or the clock's time for none of them.

        It is None while one of them is not decoded.
        """
        now = clock()
        times = [source.time if (source := self._sources.get(topic)) else None for topic in topics]
        return min((time for time in times if time is not None), default=now) if None not in times else None


def clock() -> datetime:
    """Return the present time."""
    return datetime.now(UTC)


def committed_by(progress: StreamingQueryProgress) -> Positions:
    """Return the positions after a batch. Of a topic that the query reads twice, the positions of the slower source."""
    positions: Positions = {}
    for source in progress.sources:
        for topic, partitions in (json.loads(source.endOffset or "null") or {}).items():
            for number, offset in partitions.items():
                partition = topic, int(number)
                positions[partition] = min(offset, positions.get(partition, offset))
    return positions
