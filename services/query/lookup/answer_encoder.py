"""Encodes the answers about the keys of one state as JSON. The parts that do not change are encoded once."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import orjson

from services.query.cluster import Role
from services.query.lookup.decision import iso
from services.query.store.buckets import milliseconds

if TYPE_CHECKING:
    from contracts.model.named_state import NamedState
    from services.query.cluster import PartitionStatus
    from services.query.lookup.problems import Problem
    from services.query.store import Entry, Store

ROLES = {role: role.value.encode() for role in Role}
SECONDS_CACHED = 100_000
MILLISECONDS = tuple(b".%03dZ" % milliseconds for milliseconds in range(1000))


class AnswerEncoder:
    """Encodes answers of this instance about one state. Ages are in milliseconds.

    In a windowed state they have the end of the window and whether it is open, which `store` returns.
    """

    def __init__(self, state: NamedState, instance: str, store: Store | None = None) -> None:
        self.state = state
        self._windows = None if state.window is None else store
        self._encode_window = encode_start if self._windows is None else self._encode_open_window
        self._window = 0 if state.window is None else milliseconds(state.window)
        self._instance = instance
        name, topic, own = (orjson.dumps(one) for one in (state.name, state.topic, instance))
        self._format = (
            b'{"state":' + name + b',"key":%%b,"epoch":%%d,"version":%%d,"window_start":%%b,"event_time":"%%b",'
            b'"age_ms":%%d,"source":{"topic":' + topic + b',"partition":%d,"offset":%%d},"lag":{"records":%d},'
            b'"role":"%b","instance":' + own + b',"value":%%b}'
        )
        self._templates: dict[int, tuple[PartitionStatus, bytes]] = {}

    def encode(  # noqa: PLR0913  # all facts of an answer
        self,
        key: str,
        entry: Entry,
        partition_status: PartitionStatus,
        now: int,
        value: bytes | None = None,
        *,
        is_closed: bool | None = None,
    ) -> bytes:
        """The answer about an entry, with the record's own text as its value, or `value` if it is given.

        `is_closed` is whether its window is, by default now.
        """
        template = self.template(entry.partition, partition_status)
        if self._windows is None or is_closed is None:
            return self.fill(template, key, entry, now, value)
        return self.fill(template, key, entry, now, value, self._window_members(entry.window_start, not is_closed))

    def fill(  # noqa: PLR0913, PLR0917  # the same, in the order of the template
        self,
        template: bytes,
        key: str,
        entry: Entry,
        now: int,
        value: bytes | None = None,
        window: bytes | None = None,
    ) -> bytes:
        """The answer about an entry, from the template of its partition."""
        window_start, epoch, version, event_time, _, offset, whole = entry
        return template % (
            orjson.dumps(key),
            epoch,
            version,
            self._encode_window(window_start) if window is None else window,
            iso_bytes(event_time),
            now - event_time if now > event_time else 0,  # max() takes three times as long
            offset,
            whole if value is None else value,
        )

    def _encode_open_window(self, window_start: int) -> bytes:
        """The value of `window_start`, with the members that follow it in a windowed state."""
        return self._window_members(window_start, self._windows is not None and self._windows.is_open(window_start))

    def _window_members(self, window_start: int, is_open: bool) -> bytes:  # noqa: FBT001
        return b'"%b","window_end":"%b","is_open":%b' % (
            iso_bytes(window_start),
            iso_bytes(window_start + self._window),
            b"true" if is_open else b"false",
        )

    def template(self, partition: int, partition_status: PartitionStatus) -> bytes:
        """An answer of this partition, for `fill`. It is cached until the status of the partition changes."""
        cached = self._templates.get(partition)
        if cached is None or cached[0] != partition_status:
            cached = partition_status, self._format % (partition, partition_status.lag, ROLES[partition_status.role])
            self._templates[partition] = cached
        return cached[1]

    def describe(self, key: str, problem: Problem, partition_status: PartitionStatus) -> Problem:
        """The problem with the key, and with the role and lag of this instance."""
        facts = {"state": self.state.name, "key": key, **problem.facts}
        context = {"lag": {"records": partition_status.lag}, "role": partition_status.role, "instance": self._instance}
        return problem._replace(facts=facts | context)


def encode_start(window_start: int) -> bytes:
    """The start of a window as JSON; null in a state without windows."""
    return b'"%b"' % iso_bytes(window_start) if window_start else b"null"


def iso_bytes(milliseconds: int) -> bytes:
    """A time since 1970, as ISO 8601 in UTC."""
    seconds, rest = divmod(milliseconds, 1000)
    return _second(seconds) + MILLISECONDS[rest]


@lru_cache(SECONDS_CACHED)
def _second(seconds: int) -> bytes:
    """Cached: event times repeat, and formatting one costs as much as the rest of an answer."""
    return iso(seconds * 1000)[: -len(".000Z")].encode()
