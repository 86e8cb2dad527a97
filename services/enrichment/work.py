"""A request on its way from the plan to its answer, with the offsets that wait for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

    from contracts.planning.admission import LastRequest
    from contracts.planning.request import Request
    from services.enrichment.lane import Lane
    from services.enrichment.source import Record


@dataclass(eq=False, slots=True)
class Work:
    """One request. Without a task it waits for its API; once written, its answer is on the way into Kafka."""

    lane: Lane
    record: Record
    request: Request
    offsets: list[int] = field(init=False)
    task: asyncio.Task[None] | None = None
    written: bool = False
    over: bool = False
    counted: int = 0
    """How many bytes of it the pressure counts."""
    before: LastRequest | None = None
    """The last request of the device's enrichment before this one, as its budget counts."""

    def __post_init__(self) -> None:
        self.offsets = [self.record.offset]

    def renew(self, record: Record, request: Request) -> None:
        """Ask for what a later snapshot says instead; its offset waits for the same answer."""
        self.record = record
        self.request = request
        self.offsets.append(record.offset)
