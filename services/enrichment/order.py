"""The order of answers: of one device's requests of one enrichment, none is written after a later one.

A slot keeps the answer of the highest version, so an answer that comes after a later one's changes nothing. Hence the
later one does not wait for the earlier, which may hang: it overtakes it. The earlier is given up, and its offsets wait
for the later. And one that still waits for its API asks for the latest inputs when its turn comes, in the place
that it had: each change in an outage is not a call after it. What is skipped takes that place without waiting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.enrichment.work import Work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from contracts.planning.request import Request
    from services.enrichment.lane import Lane
    from services.enrichment.source import Record


class Order:
    """The unanswered requests of one lane: per device and enrichment, in the order of their versions."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, datetime, str], list[Work]] = {}
        self._identities: set[tuple[str, datetime, str, str]] = set()

    def is_under_way(self, request: Request) -> bool:
        """Whether one alike is not answered yet."""
        return request.identity in self._identities

    def waiting(self, device_id: str, first_seen: datetime, enrichment: str) -> Work | None:
        """The last one, if its calls have not begun."""
        line = self._lines.get((device_id, first_seen, enrichment))
        return line[-1] if line and line[-1].task is None else None

    def renew(self, work: Work, record: Record, request: Request) -> None:
        """Have one that waits ask for what a later snapshot says instead."""
        self._identities.discard(work.request.identity)
        self._identities.add(request.identity)
        work.renew(record, request)

    def join(self, lane: Lane, record: Record, request: Request) -> Work:
        """The work of a new request."""
        self._identities.add(request.identity)
        work = Work(lane, record, request)
        self._lines.setdefault(_key(request), []).append(work)
        return work

    def overtake(self, work: Work) -> list[Work]:
        """Take over the offsets of all earlier ones that are not written yet, and give those: they are over."""
        line = self._lines[_key(work.request)]
        earlier = [one for one in line[: line.index(work)] if not one.written]
        for one in earlier:
            self.replace(one, work)
        return earlier

    def replace(self, earlier: Work, work: Work) -> None:
        """Give up an earlier one, whose offsets wait for a later one's answer then."""
        work.offsets.extend(earlier.offsets)
        self.leave(earlier)

    def leave(self, work: Work) -> None:
        """Note that a request is answered, or given up."""
        work.over = True
        line = self._lines[_key(work.request)]
        line.remove(work)
        if not line:
            del self._lines[_key(work.request)]
        self._identities.discard(work.request.identity)

    def __iter__(self) -> Iterator[Work]:
        return (work for line in self._lines.values() for work in line)


def _key(request: Request) -> tuple[str, datetime, str]:
    return request.device_id, request.first_seen, request.enrichment
