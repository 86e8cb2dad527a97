"""Reads many keys of one state for a principal, each as if it were requested alone."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

import orjson

from contracts.metrics import query as metrics
from services.query.lookup.problems import Problem, ProblemError
from services.query.lookup.projection import parse_paths, project

if TYPE_CHECKING:
    from collections.abc import Sequence

    from services.query.dependencies import Dependencies
    from services.query.lookup.authentication import Principal
    from services.query.lookup.state_reader import LookupResult, StateReader

PASSING = ("elsewhere", "unreachable", "catching_up")
"""Problems of one key that may be gone a moment later, while partitions move."""


class Unanswered(NamedTuple):
    """A key that this instance cannot answer now, and its problem as JSON. `kind` is the type of the problem."""

    partition: int
    kind: str
    text: bytes


class Selection(NamedTuple):
    """The parts that a batch reads: paths of the value, or all of it; the window at a time, or the newest one."""

    fields: str | None = None
    at: int | None = None


def read_batch(
    reader: StateReader, principal: Principal, keys: Sequence[str], selection: Selection, dependencies: Dependencies
) -> list[bytes | Unanswered]:
    """The answer or the problem of each key, as JSON. Keys beyond the scope are not read."""
    name, now = reader.state.name, dependencies.now()
    dependencies.counts.add(metrics.KEYS, name, by=len(keys))
    if principal.reads_all(name):
        return _read(reader, keys, selection, now)
    allowed = [principal.reads_key(name, key) for key in keys]
    found = iter(_read(reader, list(compress(keys, allowed)), selection, now))
    denied = Problem("not_yours", f"{principal.name} may not read it")
    return [next(found) if may else encode_problem(key, denied) for key, may in zip(keys, allowed, strict=True)]


def encode_problem(key: str, problem: Problem) -> bytes:
    """The problem of one key of a batch."""
    return orjson.dumps(problem.members() | {"key": key})


def _read(reader: StateReader, keys: Sequence[str], selection: Selection, now: int) -> list[bytes | Unanswered]:
    """Without keys, the store is not read."""
    if not keys:
        return []
    fields, at = selection
    if fields is not None:
        paths, found_many = parse_paths(fields), reader.read_many(keys, at)
        return [_encode(reader, key, one, now, paths) for key, one in zip(keys, found_many, strict=True)]
    found = zip(keys, reader.encode_many(keys, now, at), strict=True)
    return [one if isinstance(one, bytes) else _encode(reader, key, one, now) for key, one in found]


def _encode(
    reader: StateReader, key: str, found: LookupResult, now: int, paths: Sequence[tuple[str, ...]] | None = None
) -> bytes | Unanswered:
    outcome, partition_status, partition = found
    if isinstance(outcome, Problem):
        text = orjson.dumps(reader.encoder.describe(key, outcome, partition_status).members())
        return Unanswered(partition, outcome.kind, text) if outcome.kind in PASSING else text
    try:
        value = None if paths is None else project(outcome.entry.value, paths)
    except ProblemError as error:
        return encode_problem(key, error.problem)
    return reader.encoder.encode(key, outcome.entry, partition_status, now, value)
