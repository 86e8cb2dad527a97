"""The requests of readers, and what the responses say of keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import orjson

from contracts.api.reads import BATCH, KEY, PAGE
from contracts.api.windows import WINDOWS
from services.client.answers import Found, reader
from services.client.pages import page
from services.client.responses import answer, content
from services.client.transport import InstanceResponse
from tests.simulation.instances.handlers import Request
from tests.simulation.instances.job import PLATE, plate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from random import Random
    from typing import Any

    from services.client.answers import Answer
    from services.query.store.entry import EntryOrder
    from tests.simulation.instances.handlers import Reply

FOUND_BY = "p0"
"""The value of PLATE by which some keys are found."""
LARGEST_PAGE = 3
WAIT_S = 0.5
"""How long some requests wait for the version that they need."""


class KeyState(NamedTuple):
    """What a response says of a key: the order of its entry, None if it has none.

    `expired` is the last version of a window that has expired; a read of `live_only` windows does not report it.
    """

    key: str
    order: EntryOrder | None
    expired: EntryOrder | None = None
    live_only: bool = False
    without: str | None = None
    """The value of the field by which it was not found: its entry may have another one."""
    is_open: bool | None = None
    window: int | None = None
    """The start of the window that was read; None of the newest one."""


class Read(NamedTuple):
    """A request, and what reads a response with a body. It raises AttemptFailedError if that is no answer."""

    request: Request
    parse: Callable[[InstanceResponse], Iterable[KeyState]]
    unchanged: KeyState | None = None
    """What a response without a body says."""

    def states(self, name: str, reply: Reply) -> list[KeyState]:
        """Return what a response of an instance says. Raises ClientError."""
        if self.unchanged is not None and not reply.body:
            return [self.unchanged]
        return [*self.parse(InstanceResponse(name, reply.status, reply.json, None))]


class Reads:
    """Makes the requests about the keys of a state."""

    def __init__(self, state: str, keys: Sequence[str], random: Random, *, has_windows: bool) -> None:
        self._state = state
        self._keys = keys
        self._random = random
        self._has_windows = has_windows

    def next(self, key: str, newest: EntryOrder | None) -> Read:
        """Return a request about a key, of which the reader has this version."""
        drawn = self._random.random()
        if drawn < 0.05:  # the shares of the kinds
            return self._page()
        if drawn < 0.1:
            return self._batch()
        if drawn < 0.2 and self._has_windows:
            return self._windows(key)
        if newest is not None and drawn < 0.5:
            return self._after(key, newest)
        return Read(Request(KEY.target(name=self._state, key=key)), self._one(key))

    def _after(self, key: str, newest: EntryOrder) -> Read:
        """Return a request for this version or a later one; or for another one than this."""
        tag, drawn = ".".join(map(str, newest)), self._random.random()
        if drawn < 0.3:
            request = Request(KEY.target(name=self._state, key=key), headers=(("If-None-Match", f'"{tag}"'),))
            return Read(request, self._one(key), KeyState(key, newest))
        query: dict[str, object] = {"min_version": tag, "wait": WAIT_S if drawn < 0.5 else None}
        return Read(Request(KEY.target(query, name=self._state, key=key)), self._one(key))

    def _batch(self) -> Read:
        def parse(reply: InstanceResponse) -> Iterator[KeyState]:
            for key, member in zip(self._keys, content(reply, self._state)["answers"], strict=True):
                status = member.get("status", reply.status)
                if status < 500:  # the other keys are answered
                    yield from self._one(key)(reply._replace(status=status, body=member))

        body = orjson.dumps({"keys": self._keys})
        return Read(Request(BATCH.target(name=self._state), "POST", body=body), parse)

    def _windows(self, key: str) -> Read:
        def parse(reply: InstanceResponse) -> Iterator[KeyState]:
            items = page(reply, self._state, "windows").items
            yield listed(key, items[0] if items else None)

        query = {"order": "desc", "limit": 1}
        return Read(Request(WINDOWS.target(query, name=self._state, key=key)), parse)

    def _page(self) -> Read:
        """Return a request for the keys after one of them, or for the first ones, with any value or one of them."""
        after = self._random.choice([None, *self._keys])
        wanted = self._random.choice([None, FOUND_BY])

        def parse(reply: InstanceResponse) -> Iterator[KeyState]:
            found = page(reply, self._state, after="after")
            items = {item.key: item for item in found.items}
            for key in self._keys:
                if (after or "") < key <= (found.after or key):
                    yield listed(key, items.get(key), wanted)

        where = [] if wanted is None else [f"{PLATE}:{wanted}"]
        query = {"after": after, "limit": self._random.randint(1, LARGEST_PAGE), "where": where}
        return Read(Request(PAGE.target(query, name=self._state)), parse)

    def _one(self, key: str) -> Callable[[InstanceResponse], Iterable[KeyState]]:
        def parse(reply: InstanceResponse) -> Iterator[KeyState]:
            yield answered(answer(reply, self._state, key, reader(self._state, key, None)))

        return parse


class WrongAnswerError(Exception):
    """An answer is wrong, whatever the topic has."""


def order_of(found: Found[Any]) -> EntryOrder:
    """Return the order of a result. Raises WrongAnswerError if its value is that of another version."""
    if found.value["state"] != {"plate": plate(found.order)}:
        raise WrongAnswerError(f"{found} has the value of another version")
    return found.order


def answered(found: Answer[Any]) -> KeyState:
    """Return what an answer says of its key."""
    if isinstance(found, Found):
        return KeyState(found.key, order_of(found), is_open=found.is_open)
    return KeyState(found.key, None, getattr(found, "order", None))


def listed(key: str, item: Found[Any] | None, wanted: str | None = None, window: int | None = None) -> KeyState:
    """Return what a list says of a key, or of a window: its item, or that it has none of the wanted value."""
    if item is None:
        return KeyState(key, None, live_only=True, without=wanted, window=window)
    return KeyState(key, order_of(item), live_only=True, is_open=item.is_open, window=window)
