"""The unanswered requests of one partition, and the rule that keeps their answers in order.

A slot of the state keeps the answer of the newest version, so an answer that arrives after a later one changes
nothing. Therefore a later request never waits for an earlier one, which may hang. Four rules follow:

- The later request supersedes the earlier one when its answer arrives first: the earlier one is cancelled, and its
  offsets wait for the later answer.
- A request that is still queued is coalesced with a later one: it keeps its place in the queue, calls its API with the
  latest inputs, and waits at the latest offset. An outage with many changes of a device leads to one call after it.
- A skipped request needs no call, so it replaces a queued request immediately.
- A queued request is withdrawn where the answer to the latest inputs is in the slot, or on its way there.

A request that runs takes the version of a later snapshot that calls for the same, where the slot has another answer of
its version or a later one, such as a forged one: its own would change nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import orjson

from contracts.wire import LARGEST_HEAD

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator
    from datetime import datetime

    from contracts.planning.admission import LastRequest
    from contracts.planning.request import Request
    from contracts.records.record import Record
    from services.enrichment.dispatcher import Dispatcher


@dataclass(eq=False, slots=True)
class PendingRequest:
    """A request between planning and its answer, with the offsets that wait for the answer.

    It is queued while it has no task. It is written once its feedback is on its way to Kafka.
    """

    record: Record
    request: Request
    offsets: list[int] = field(init=False)
    dispatcher: Dispatcher | None = None
    """The dispatcher in whose queue it was; a skipped request was in none."""
    task: asyncio.Task[None] | None = None
    is_answered: bool = False
    """Whether its answer is known: the version of the request changes no more."""
    is_written: bool = False
    is_done: bool = False
    """Whether it was answered, superseded, withdrawn, deferred or abandoned."""
    counted_bytes: int = 0
    """The bytes that it counts in `Backpressure`."""
    previous: LastRequest | None = None
    """The previous request of the same device and enrichment, as the budget counts it."""

    def __post_init__(self) -> None:
        self.offsets = [self.record.offset]

    def coalesce(self, record: Record, request: Request) -> list[int]:
        """Take the inputs of a later snapshot, and wait at its offset, whose plan contains the request.

        Return the earlier offsets, which are finished by that.
        """
        self.record = record
        self.request = request
        earlier, self.offsets = self.offsets, [record.offset]
        return earlier

    def shorten(self) -> int:
        """Keep only the head of the record, for a dead letter; return the bytes that the request then takes.

        A queued request has the whole record, because it is deferred if memory is short, and a running one stays.
        """
        if self.record.size <= LARGEST_HEAD:
            return self.record.size
        self.record = self.record._replace(value=(self.record.value or b"")[:LARGEST_HEAD])
        # One by one, as they were digested: inside a dictionary an own result may be nested deeper than orjson writes.
        return self.record.size + sum(len(orjson.dumps(value)) for value in self.request.inputs.values())

    def answered(self) -> Request:
        """Return the request that was answered: its version changes no more."""
        self.is_answered = True
        return self.request


class InFlight:
    """The unanswered requests of one partition: by coalescing key, in the order of their versions."""

    def __init__(self) -> None:
        self._pending: dict[tuple[str, datetime, str], list[PendingRequest]] = {}
        self._identities: Counter[tuple[str, datetime, str, str]] = Counter()

    def contains(self, request: Request) -> bool:
        """Return whether a request of the same identity is unanswered."""
        return request.identity in self._identities

    def is_running(self, request: Request) -> bool:
        """Return whether a request of the same identity has started."""
        return self.contains(request) and self.queued(request) is None

    def running(self, request: Request) -> PendingRequest:
        """Return the last request of the same identity, which has started."""
        same_key = reversed(self._pending[request.coalescing_key])
        return next(pending for pending in same_key if pending.request.identity == request.identity)

    def renew(self, pending: PendingRequest, request: Request) -> None:
        """Answer a request that runs for a later snapshot, which calls for the same: it is the latest one then."""
        former = pending.request
        pending.request = replace(request, spent=former.spent, counted_at=former.counted_at)
        same_key = self._pending[request.coalescing_key]
        same_key.append(same_key.pop(same_key.index(pending)))

    def queued(self, request: Request) -> PendingRequest | None:
        """Return the last pending request with the same coalescing key, if it has not started."""
        return self.queued_at(request.coalescing_key)

    def queued_at(self, coalescing_key: tuple[str, datetime, str]) -> PendingRequest | None:
        """Return the last pending request with this coalescing key, if it has not started."""
        pending = self._pending.get(coalescing_key)
        return pending[-1] if pending and pending[-1].task is None else None

    def coalesce(self, pending: PendingRequest, record: Record, request: Request) -> list[int]:
        """Replace the inputs of a queued request by those of a later snapshot: see `PendingRequest.coalesce`."""
        self._discard(pending.request)
        self._identities[request.identity] += 1
        return pending.coalesce(record, request)

    def add(self, record: Record, request: Request) -> PendingRequest:
        """Add a request."""
        self._identities[request.identity] += 1
        pending = PendingRequest(record, request)
        self._pending.setdefault(request.coalescing_key, []).append(pending)
        return pending

    def supersede_earlier(self, pending: PendingRequest) -> list[PendingRequest]:
        """Remove the earlier requests that are not written yet, and move their offsets to this one."""
        same_key = self._pending[pending.request.coalescing_key]
        earlier = [former for former in same_key[: same_key.index(pending)] if not former.is_written]
        for former in earlier:
            self.replace(former, pending)
        return earlier

    def replace(self, earlier: PendingRequest, later: PendingRequest) -> None:
        """Remove a request whose offsets now wait for the answer of a later one."""
        later.offsets.extend(earlier.offsets)
        self.remove(earlier)

    def remove(self, pending: PendingRequest) -> None:
        """Remove a request: it was answered, superseded, withdrawn, deferred or abandoned."""
        pending.is_done = True
        same_key = self._pending[pending.request.coalescing_key]
        same_key.remove(pending)
        if not same_key:
            del self._pending[pending.request.coalescing_key]
        self._discard(pending.request)

    def _discard(self, request: Request) -> None:
        self._identities[request.identity] -= 1
        if not self._identities[request.identity]:
            del self._identities[request.identity]

    def __iter__(self) -> Iterator[PendingRequest]:
        return (pending for same_key in self._pending.values() for pending in same_key)
