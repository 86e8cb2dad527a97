"""Reads a page of keys from all instances that own some of them, and merges their parts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

import orjson

from services.query.cluster import Role
from services.query.http.forwarding import sequence_response
from services.query.http.peer_client import ForwardedRequest
from services.query.http.request_context import is_of_instance
from services.query.layout import layout_header, require_same_layout
from services.query.lookup.problems import RETRY_AFTER_S, Problem, ProblemError
from services.query.lookup.projection import parse_paths, project
from services.query.lookup.state_reader import ANSWERING_ROLES
from services.query.store import Position

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from contracts.api.reads import PageParameters
    from contracts.api.windows import WindowPageParameters
    from services.query.cluster import Member, PartitionStatus
    from services.query.dependencies import Dependencies
    from services.query.http.forwarding import Forwarder
    from services.query.http.requests import HttpRequest
    from services.query.http.responses import HttpResponse
    from services.query.lookup.state_reader import StateReader
    from services.query.store import Entry, Scan

    Query = PageParameters | WindowPageParameters
    Owners = tuple[Member, ...]


class PageItems(NamedTuple):
    """Answers with their positions, in order and complete up to `after`; None if there are no further keys.

    `window_start` is that of the window of a scan with a time; None if no key has it.
    """

    items: Sequence[tuple[Position, bytes]]
    after: Position | None
    window_start: int | None = None


class PageReader:
    """Reads pages of keys: this instance's own part, and those of the owners of the other partitions."""

    def __init__(self, dependencies: Dependencies, forwarder: Forwarder) -> None:
        self._dependencies = dependencies
        self._routing = dependencies.routing
        self._forwarder = forwarder
        self._headers = (layout_header(dependencies.states),)

    async def read(
        self,
        request: HttpRequest,
        reader: StateReader,
        scan: Scan,
        query: Query,
        path: str,
    ) -> PageItems:
        """The page of a scan that may be read, of the partitions of the query. `path` is that of the page.

        Raises ProblemError: 503 also if a partition moved while it was read.
        """
        local, others = self._divide(request, reader, query.partitions)
        page = reader.store.scan(scan._replace(partitions=local))  # before the others answer: a partition may move
        own = PageItems(self._answers(reader, page.items, local, query.fields), page.after, page.window_start)
        parts = (self._forward(owners, path, query, theirs) for owners, theirs in others.items())
        return merge_pages([own, *await asyncio.gather(*parts)], scan.limit, descending=scan.descending)

    def _divide(
        self, request: HttpRequest, reader: StateReader, numbers: str | None
    ) -> tuple[list[int], dict[Owners, list[int]]]:
        """The partitions with these numbers, or all: those that this instance answers for, and the others by owners.

        Raises ProblemError (421, 503): a partial page would be wrong.
        """
        if is_of_instance(request.headers, request.sender):
            require_same_layout(request.headers, self._dependencies.states)
        local: list[int] = []
        others: dict[Owners, list[int]] = {}
        for partition in _partitions(reader, numbers):
            at = self._routing.partition_status(reader.state.name, partition)
            if at.role in ANSWERING_ROLES:
                local.append(partition)
                continue
            if at.role is Role.CATCHING_UP:
                detail = f"Partition {partition} is catching up"
                raise ProblemError(Problem("catching_up", detail, retry_after=RETRY_AFTER_S))
            others.setdefault(tuple(self._forwarder.owners(reader.state.name, partition)), []).append(partition)
        if others and not self._forwarder.can_forward(request):
            raise ProblemError(Problem("elsewhere", "Another instance owns some of these partitions"))
        return local, others

    def _answers(
        self,
        reader: StateReader,
        found: Iterable[tuple[Position, Entry]],
        partitions: Collection[int],
        fields: str | None,
    ) -> list[tuple[Position, bytes]]:
        """The answers of keys that were just read from partitions, with their positions. Raises as `_statuses`."""
        paths = None if fields is None else parse_paths(fields)
        statuses, now, fill = self._statuses(reader, partitions), self._dependencies.now(), reader.encoder.fill
        templates = {partition: reader.encoder.template(partition, status) for partition, status in statuses.items()}
        answers = []
        for position, entry in found:
            value = None if paths is None else project(entry.value, paths)
            answers.append((position, fill(templates[entry.partition], position.key, entry, now, value)))
        return answers

    def _statuses(self, reader: StateReader, partitions: Collection[int]) -> dict[int, PartitionStatus]:
        """The status of partitions that were just read. Raises ProblemError (503) if one moved meanwhile."""
        found = {partition: self._routing.partition_status(reader.state.name, partition) for partition in partitions}
        if any(at.role not in ANSWERING_ROLES for at in found.values()):
            detail = "Some partitions are moving to another instance"
            raise ProblemError(Problem("catching_up", detail, retry_after=RETRY_AFTER_S))
        return found

    async def _forward(self, owners: Sequence[Member], path: str, query: Query, partitions: Sequence[int]) -> PageItems:
        members = query.model_dump(exclude_none=True) | {"partitions": ",".join(map(str, partitions))}
        request = ForwardedRequest(f"{path}?{urlencode(members, doseq=True)}", headers=self._headers)
        (head, *texts), _ = await self._forwarder.forward_sequence(owners, request)
        return decode_page(head, texts)


def merge_pages(found: Sequence[PageItems], limit: int, *, descending: bool = False) -> PageItems:
    """The first keys of all pages of the newest window, up to the position to which every page is complete."""
    if len(found) == 1:
        return found[0]
    start = max((page.window_start for page in found if page.window_start is not None), default=None)
    pages = [page for page in found if page.window_start == start]
    items = sorted((item for page in pages for item in page.items), key=lambda item: item[0], reverse=descending)
    bounds = [page.after for page in pages if page.after is not None]
    bound = (max(bounds) if descending else min(bounds)) if bounds else None
    if bound is not None:
        items = [item for item in items if (item[0] >= bound if descending else item[0] <= bound)]
    return PageItems(items[:limit], items[limit - 1][0] if len(items) > limit else bound, start)


def page_sequence(page: PageItems, *, has_numbers: bool) -> HttpResponse:
    """A page for another instance. Releases before 0.3.0 read that of an order by keys alone without positions."""
    facts: object = None if page.after is None else page.after.key
    if has_numbers:
        positions, after = [tuple(position) for position, _ in page.items], page.after and tuple(page.after)
        facts = {"window_start": page.window_start, "after": after, "positions": positions}
    return sequence_response([orjson.dumps(facts), *(text for _, text in page.items)])


def decode_page(head: bytes, texts: Sequence[bytes]) -> PageItems:
    """The page of a `page_sequence`."""
    facts = orjson.loads(head)
    if not isinstance(facts, dict):
        positions = [Position(0, orjson.loads(text)["key"]) for text in texts]
        return PageItems(list(zip(positions, texts, strict=True)), None if facts is None else Position(0, facts))
    positions = [Position(*position) for position in facts["positions"]]
    after = None if facts["after"] is None else Position(*facts["after"])
    return PageItems(list(zip(positions, texts, strict=True)), after, facts.get("window_start"))


def _partitions(reader: StateReader, numbers: str | None) -> Sequence[int]:
    if numbers is None:
        return range(reader.state.partitions)
    return sorted({one for one in map(int, numbers.split(",")) if one < reader.state.partitions})
