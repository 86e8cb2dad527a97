"""Divides a read of many keys among the instances that own them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from services.query.cluster import Role
from services.query.lookup.problems import RETRY_AFTER_S, Problem, ProblemError
from services.query.lookup.projection import parse_paths, project
from services.query.lookup.state_reader import ANSWERING_ROLES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from services.query.cluster import Member, PartitionStatus
    from services.query.dependencies import Dependencies
    from services.query.http.forwarding import Forwarder
    from services.query.http.requests import HttpRequest
    from services.query.lookup.state_reader import StateReader
    from services.query.store import Entry, Position


class DividedPartitions(NamedTuple):
    """The partitions that this instance answers for, and those of other instances by owners."""

    local: Sequence[int]
    others: Mapping[tuple[Member, ...], Sequence[int]]


class PartitionReads:
    """Divides the partitions of a state by their roles."""

    def __init__(self, dependencies: Dependencies, forwarder: Forwarder) -> None:
        self._dependencies = dependencies
        self._routing = dependencies.routing
        self._forwarder = forwarder

    def divide(self, request: HttpRequest, reader: StateReader, numbers: str | None) -> DividedPartitions:
        """The partitions with these numbers, or all. Raises ProblemError (421, 503): a partial page would be wrong."""
        local: list[int] = []
        others: dict[tuple[Member, ...], list[int]] = {}
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
        return DividedPartitions(local, others)

    def answers(
        self,
        reader: StateReader,
        found: Iterable[tuple[Position, Entry]],
        partitions: Collection[int],
        fields: str | None,
    ) -> list[tuple[Position, bytes]]:
        """The answers of keys that were just read from partitions, with their positions. Raises as `statuses`."""
        paths = None if fields is None else parse_paths(fields)
        by_partition = self.statuses(reader, partitions)
        now, encode = self._dependencies.now(), reader.encoder.encode
        answers = []
        for position, entry in found:
            value = None if paths is None else project(entry.value, paths)
            answers.append((position, encode(position.key, entry, by_partition[entry.partition], now, value)))
        return answers

    def statuses(self, reader: StateReader, partitions: Collection[int]) -> dict[int, PartitionStatus]:
        """The status of partitions that were just read. Raises ProblemError (503) if one moved meanwhile."""
        found = {partition: self._routing.partition_status(reader.state.name, partition) for partition in partitions}
        if any(at.role not in ANSWERING_ROLES for at in found.values()):
            detail = "Some partitions are moving to another instance"
            raise ProblemError(Problem("catching_up", detail, retry_after=RETRY_AFTER_S))
        return found


def parse_where(reader: StateReader, where: Sequence[str]) -> dict[str, str]:
    """The values by path. Raises ProblemError (400) for a path without an index."""
    found: dict[str, str] = {}
    for one in where:
        path = next((path for path in reader.state.query.indexes if one.startswith(f"{path}:")), None)
        if path is None:
            detail = f"where={one!r}: write path:value of an index. Indexes: {indexes_of(reader)}"
            raise ProblemError(Problem("bad_request", detail))
        if path in found:
            raise ProblemError(Problem("bad_request", f"where: {path} appears twice, and has one value"))
        found[path] = one.removeprefix(f"{path}:")
    return found


def indexes_of(reader: StateReader) -> str:
    """The declared indexes, for the detail of a problem."""
    return ", ".join(reader.state.query.indexes) or "none: declare them as QueryOptions(indexes=…)"


def _partitions(reader: StateReader, numbers: str | None) -> Sequence[int]:
    if numbers is None:
        return range(reader.state.partitions)
    return sorted({one for one in map(int, numbers.split(",")) if one < reader.state.partitions})
