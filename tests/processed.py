"""The state of `tests.clicks` as a processor computes it, with a variable of each kind, and its faults on demand."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from typing_extensions import override

from contracts import Application, Emit, Enriched, Processor, State, Topics
from contracts.types.quantize import EPOCH, MICROSECOND
from tests.clicks import HOUR, MINUTE, Identified, Owner, application, owner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessorHandle, TimerValues

POISON = -666
"""The `ms` of a click on which the processor raises, after it has written to all its variables."""
MOST_COUNTRIES = 20
MOST_LAST = 3


class Tallies(State, key="page", window=HOUR):
    """The fields of `tests.clicks.Counts`, without reducers."""

    clicks: int
    timed: int
    ms: int
    slowest: int | None
    last_ms: int | None
    last: datetime | None
    countries: list[str]


class PairTallies(Tallies, key=("country", "page"), window=HOUR, offset=7 * MINUTE, grace=3 * MINUTE):
    """The same by country and page."""


class HopTallies(Tallies, key=("page", "country"), window=HOUR, every=15 * MINUTE, offset=timedelta(seconds=90)):
    """The same in hopping windows."""


class Tally(StatefulProcessor):
    """Computes by hand what the reducers of `Counts` compute."""

    @override
    def init(self, handle: StatefulProcessorHandle) -> None:
        self.sums = handle.getValueState("sums", "clicks BIGINT, timed BIGINT, ms BIGINT, slowest BIGINT, last BIGINT")
        self.timed = handle.getListState("timed", "ts BIGINT, ms BIGINT")
        self.countries = handle.getMapState("countries", "country STRING", "clicks BIGINT")

    @override
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:
        for row in rows:
            clicks, timed, ms, slowest, last = self.sums.get() or (0, 0, 0, None, None)
            ts = (row.ts - EPOCH) // MICROSECOND
            last = ts if last is None else max(last, ts)
            if row.ms is not None:
                timed, ms, slowest = timed + 1, ms + row.ms, row.ms if slowest is None else max(slowest, row.ms)
                self.timed.appendValue((ts, row.ms))
            self.sums.update((clicks + 1, timed, ms, slowest, last))
            (seen,) = self.countries.getValue((row.country,)) or (0,)
            self.countries.updateValue((row.country,), (seen + 1,))
            if row.ms == POISON:
                raise ValueError("a poisonous click")
            yield self._state()

    def _state(self) -> Row:
        clicks, timed, ms, slowest, last = self.sums.get() or (0, 0, 0, None, None)
        latest = max(self.timed.get(), default=None)
        return Row(
            clicks=clicks,
            timed=timed,
            ms=ms,
            slowest=slowest,
            last_ms=latest and latest[1],
            last=last and EPOCH + timedelta(microseconds=last),
            countries=sorted(chain.from_iterable(self.countries.keys()), key=str.encode)[:MOST_COUNTRIES],
        )


class Visit(State, key="page", window=HOUR):
    """The state of a page, computed by `Visits`."""

    page: str
    clicks: int
    is_quiet: bool
    owner_name: str | None
    recent: str | None
    countries: dict[str, int]
    last: list[str]
    owner: Annotated[Owner | None, Enriched()]


class Visits(StatefulProcessor):
    """Reads answers, and sets `is_quiet` by a timer some time after each click. `recent` is forgotten by its TTL."""

    @override
    def init(self, handle: StatefulProcessorHandle) -> None:
        self.handle = handle
        self.page = handle.getValueState("page", "clicks BIGINT, owner STRING")
        self.countries = handle.getMapState("countries", "country STRING", "clicks BIGINT")
        self.last = handle.getListState("last", "click STRING")
        self.recent = handle.getValueState("recent", "country STRING", PAUSE_MS // 2)

    @override
    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:
        for row in rows:
            clicks, owner_name = self.page.get() or (0, None)
            if row.owner is not None:
                self.page.update((clicks, row.owner.result["name"]))
            else:
                self.page.update((clicks + 1, owner_name))
                self.recent.update((row.country,))
                (seen,) = self.countries.getValue((row.country,)) or (0,)
                self.countries.updateValue((row.country,), (seen + 1,))
                self.last.put([*self.last.get(), (row.click,)][-MOST_LAST:])
                for time in self.handle.listTimers():
                    self.handle.deleteTimer(time)
                self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + PAUSE_MS)
                if row.ms == POISON:
                    raise ValueError("a poisonous click")
            yield self._state(key, is_quiet=False)

    @override
    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        yield self._state(key, is_quiet=True)

    def _state(self, key: Any, *, is_quiet: bool) -> Row:
        clicks, owner_name = self.page.get() or (0, None)
        (recent,) = self.recent.get() or (None,)
        return Row(
            page=key[0],
            clicks=clicks,
            is_quiet=is_quiet,
            owner_name=owner_name,
            recent=recent,
            countries={country: seen for (country,), (seen,) in self.countries.iterator()},
            last=[one for (one,) in self.last.get()],
        )


PAUSE_MS = 2_000
tallies = application(Tallies, emit=Emit.BATCH, processor=Processor(Tally))


def visits() -> Application:
    """Return the application of `Visits`, on live topics with the prefix of the environment."""
    topics = Topics(prefix=os.environ.get("VISITS_PREFIX", ""), partitions=2)
    return Application(
        name="visits",
        event=Identified,
        state=Visit,
        topics=topics,
        emit=Emit.BATCH,
        processor=Processor(Visits),
        enrichments=(owner,),
    )


app = visits()
