"""What waits for an API that is away, beyond what is held in memory: only offsets, whose snapshots are read again."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from contracts.planning.request import Request
    from services.enrichment.availability import Availability
    from services.enrichment.gate import Gate, Start
    from services.enrichment.lane import Lane
    from services.enrichment.lanes import Lanes
    from services.enrichment.pressure import Pressure
    from services.enrichment.rereader import Rereader
    from services.enrichment.source import Record

    Again = Callable[[str, Lane, int, Record | None], None]

AT_ONCE = 256
"""How many snapshots are read and planned again before the calls get their turn."""
IN_A_ROW = 16
"""How many times that of one partition before the next one's."""


class Parking:
    """Of one API. While it is away and much waits already, its requests are let go but for their snapshots' offsets.

    When the API is back these are read and planned again (`again`), the oldest first and as the gate has room. Until
    none is left, further ones line up behind them.
    """

    def __init__(  # noqa: PLR0913  # what it stands between
        self,
        gate: Gate,
        availability: Availability,
        lanes: Lanes,
        pressure: Pressure,
        rereader: Rereader,
        *,
        start: Start,
        again: Again,
    ) -> None:
        self._gate = gate
        self._availability = availability
        self._lanes = lanes
        self._pressure = pressure
        self._rereader = rereader
        self._start = start
        self._again = again
        self._feeding: asyncio.Task[None] | None = None

    def takes(self, lane: Lane, offset: int, request: Request) -> bool:
        """Let a request go, if it is one to be let go. One that only renews what waits takes no room."""
        away = self._pressure.is_high and not self._availability.is_available(self._gate.api)
        if request.skipped is not None or not (away or self._feeding) or lane.waits(request):
            return False
        lane.park(self._gate.api, offset)
        self._begin()
        return True

    def relieve(self) -> None:
        """Let go what waits already, where reading has paused: it waited for room before the API went away."""
        api = self._gate.api
        if self._availability.is_available(api):
            return
        shed = self._gate.shed()
        for work in shed:
            work.lane.let_go(work, api)
        for lane in {work.lane for work in shed}:
            lane.parked[api] = dict(sorted(lane.parked[api].items()))  # some later ones were there before
            self._begin()

    def close(self) -> None:
        """Plan nothing again any more."""
        if self._feeding:
            self._feeding.cancel()

    def _begin(self) -> None:
        if self._feeding is None:
            self._feeding = self._start(self._feed())

    async def _feed(self) -> None:
        while lanes := self._lanes.parked(self._gate.api):
            for partition, lane in lanes:
                for _ in range(IN_A_ROW):
                    await self._gate.is_low.wait()
                    await self._availability.available(self._gate.api)
                    await self._plan(partition, lane)
        self._feeding = None

    async def _plan(self, partition: int, lane: Lane) -> None:
        """The oldest ones of a partition, which may go away while they are read."""
        offsets = list(islice(lane.parked.get(self._gate.api, ()), AT_ONCE))
        if not offsets:
            return
        records = await self._rereader.reread(partition, offsets, lambda: not lane.closed)
        found = {one.offset: one for one in records}
        for offset in offsets:
            if not lane.closed:
                self._again(self._gate.api, lane, offset, found.get(offset))
