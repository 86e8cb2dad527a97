"""The client of the query service: `async with Client(url) as states`, then `await states.get(state, key)`."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

from pydantic import BaseModel

from services.client import pages
from services.client.answers import Found
from services.client.batch import Batch, Batches
from services.client.calls import TRY_S, Call, Calls
from services.client.conversation import Conversation
from services.client.discovery import Discovery
from services.client.errors import SteppedBack
from services.client.highest import Highest
from services.client.lasting import PATIENCE_S, Lasting
from services.client.reading import Value, reader
from services.client.replies import answer
from services.client.targets import ROOT, Asking, key_target, page_target
from services.client.transport import Transport
from services.client.tries import Tries, TryAgain
from services.client.watch import Watch, Watched

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence

    from services.client.answers import Answer
    from services.client.pages import Page, StateInfo
    from services.client.subscriptions import Interest
    from services.client.transport import Reply
    from services.client.updates import Mark, Update

M = TypeVar("M", bound=BaseModel)
DEADLINE_S = 10.0
REMEMBERED = 100_000
CONNECTIONS = 100


class Client:
    """Asks the named states. `url` is that of any instance, or several of them in case one is away.

    All tries of one call take `deadline` seconds at most. Of the keys asked last, so many as `remember` says, nothing
    is shown that is older than what was shown before. Without `discover` only the given addresses are asked, as
    through a proxy. So many `connections` are pooled for reads; each watch has one beside them.
    """

    def __init__(  # noqa: PLR0913  # each stands for itself, and none is needed
        self,
        url: str | Sequence[str],
        *,
        token: str | None = None,
        deadline: float = DEADLINE_S,
        remember: int = REMEMBERED,
        discover: bool = True,
        connections: int = CONNECTIONS,
    ) -> None:
        urls = [url] if isinstance(url, str) else list(url)
        self._deadline_s = deadline
        self._transport = Transport(token, connections)
        self._discovery = Discovery(urls, self._transport, time.monotonic, ask=discover)
        self._tries = Tries(time.monotonic, asyncio.sleep)
        self._calls = Calls(self._transport, self._discovery, self._tries)
        self._highest = Highest(remember)
        self._lasting = Lasting(self._discovery, self._tries, time.monotonic)
        self._batches = Batches(self._calls, self._discovery, self._tries, self._highest)

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._discovery.close()
        await self._transport.__aexit__()

    @overload
    async def get(self, state: str, key: str, *, model: type[M], **asking: Unpack[Asking]) -> Answer[M]: ...

    @overload
    async def get(self, state: str, key: str, *, model: None = None, **asking: Unpack[Asking]) -> Answer[Value]: ...

    async def get(
        self, state: str, key: str, *, model: type[BaseModel] | None = None, **asking: Unpack[Asking]
    ) -> Answer[Any]:
        """What is known of the key: Found, NeverSeen or Expired. Raises NoAnswer, Refused and other QueryErrors."""
        read = reader(state, key, model)

        def take(reply: Reply) -> Answer[Any]:
            got = answer(reply, state, key, read)
            if isinstance(got, Found):
                self._discovery.answered(reply.url, got.instance)
            if "as_of" not in asking and not self._highest.admits(got):
                raise TryAgain(f"{reply.url} gave an earlier version than was shown", kind=SteppedBack)
            return got

        wait_s = asking.get("wait", 0.0)
        deadline_s = asking.get("deadline", max(self._deadline_s, wait_s + TRY_S))
        call = Call(f"{state}/{key}", key_target(state, key, asking), deadline_s, (state, key), wait_s)
        return await self._calls.made(call, take)

    @overload
    async def get_many(
        self,
        state: str,
        keys: Sequence[str],
        *,
        model: type[M],
        fields: Sequence[str] = (),
        deadline: float | None = None,
    ) -> list[Answer[M]]: ...

    @overload
    async def get_many(
        self, state: str, keys: Sequence[str], *, fields: Sequence[str] = (), deadline: float | None = None
    ) -> list[Answer[Value]]: ...

    async def get_many(
        self,
        state: str,
        keys: Sequence[str],
        *,
        model: type[BaseModel] | None = None,
        fields: Sequence[str] = (),
        deadline: float | None = None,
    ) -> list[Answer[Any]]:
        """The same of many keys, in their order. All must be answered within the deadline."""
        batch = Batch(state, keys, fields, model)
        return await self._batches.answered(batch, self._deadline_s if deadline is None else deadline)

    async def page(  # noqa: PLR0913  # as the service's own query
        self,
        state: str,
        *,
        prefix: str = "",
        where: Mapping[str, str] | None = None,
        after: str | None = None,
        limit: int | None = None,
        deadline: float | None = None,
    ) -> Page[Value]:
        """The next keys with this prefix, and with these values of indexed fields, in their order."""
        call = self._call(state, page_target(state, prefix, where or {}, after, limit), deadline)
        return await self._calls.made(call, lambda reply: pages.page(reply, state, None))

    async def items(
        self, state: str, *, prefix: str = "", where: Mapping[str, str] | None = None
    ) -> AsyncIterator[Found[Value]]:
        """What `page` gives, page after page, as long as one reads on."""
        after: str | None = None
        while True:
            page = await self.page(state, prefix=prefix, where=where, after=after)
            for item in page.items:
                yield item
            after = page.after
            if after is None:
                return

    async def keys(self, state: str, *, prefix: str = "", where: Mapping[str, str] | None = None) -> AsyncIterator[str]:
        """The keys of `items`."""
        async for item in self.items(state, prefix=prefix, where=where):
            yield item.key

    async def versions(self, state: str, key: str, *, deadline: float | None = None) -> list[Found[Value]]:
        """The versions that are kept of the key's present life, the earliest first."""
        call = self._call(f"{state}/{key}", key_target(state, key, {}, "/versions"), deadline, (state, key))
        return await self._calls.made(call, lambda reply: pages.versions(reply, state, key, None))

    @overload
    def watch(
        self, state: str, key: str, *, marks: Literal[False] = False, patience: float = PATIENCE_S
    ) -> AsyncGenerator[Update[Value], None]: ...

    @overload
    def watch(
        self, state: str, key: str, *, model: type[M], marks: Literal[False] = False, patience: float = PATIENCE_S
    ) -> AsyncGenerator[Update[M], None]: ...

    @overload
    def watch(
        self, state: str, key: str, *, marks: Literal[True], patience: float = PATIENCE_S
    ) -> AsyncGenerator[Update[Value] | Mark, None]: ...

    def watch(
        self,
        state: str,
        key: str,
        *,
        model: type[BaseModel] | None = None,
        marks: bool = False,
        patience: float = PATIENCE_S,
    ) -> AsyncGenerator[Any, None]:
        """What the key is now, and then what becomes of it. Of changes in quick succession the last one is told.

        It goes on at another instance when a stream breaks, and ends with NoAnswer when nobody has spoken for so many
        seconds as `patience` says. `marks`: it tells a few times a minute, too, how far it is behind.
        """
        target = key_target(state, key, {}, "/watch")
        watched = Watched(state, key, target, marks, patience, reader(state, key, model))
        return Watch(watched, self._transport, self._highest).updates(self._lasting)

    def watch_many(
        self, *interests: Interest, marks: bool = False, patience: float = PATIENCE_S
    ) -> AsyncGenerator[Update[Value] | Mark, None]:
        """The same of many keys, prefixes and filters over one connection."""
        return Conversation(interests, self._transport, self._highest, marks=marks).updates(self._lasting, patience)

    async def states(self, *, deadline: float | None = None) -> list[StateInfo]:
        """The states that this client may ask."""
        return await self._calls.made(self._call("the states", ROOT, deadline), pages.states)

    def _call(self, what: str, target: str, deadline: float | None, place: tuple[str, str] | None = None) -> Call:
        return Call(what, target, self._deadline_s if deadline is None else deadline, place)
