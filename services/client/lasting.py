"""A stream that lasts: when it breaks, another instance is asked to go on."""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from services.client.replies import Elsewhere
from services.client.transport import Unreachable
from services.client.tries import TryAgain

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from services.client.answers import T
    from services.client.discovery import Discovery
    from services.client.tries import Tries

PATIENCE_S = 60.0


class Aim(NamedTuple):
    """What a stream is about: in words, and the state and key if it is about one."""

    what: str
    place: tuple[str, str] | None
    patience_s: float


class Lasting:
    """Keeps streams going. `clock` gives seconds."""

    def __init__(self, discovery: Discovery, tries: Tries, clock: Callable[[], float]) -> None:
        self._discovery = discovery
        self._tries = tries
        self._clock = clock

    async def stream(
        self, aim: Aim, connect: Callable[[str], AsyncGenerator[T | None, None]]
    ) -> AsyncGenerator[T, None]:
        """What `connect` gives of one instance after the other. It ends with TryAgain; None is a sign of life.

        Raises NoAnswer when nobody gave such a sign for as long as one is patient.
        """
        tried: Counter[str] = Counter()
        heard, failures = self._clock(), 0
        while True:
            url = min(self._discovery.candidates(aim.place), key=tried.__getitem__)
            tried[url] += 1
            try:
                async with aclosing(connect(url)) as items:
                    async for item in items:
                        heard, failures = self._clock(), 0
                        tried.clear()
                        if item is not None:
                            yield item
                            heard = self._clock()  # the reader's time is not theirs
            except TryAgain as failed:
                failures += 1
                self._note(url, failed)
                if self._clock() - heard >= aim.patience_s:
                    raise failed.kind(aim.what, aim.patience_s, failures, failed.reason) from failed
                await self._tries.pause(failures, failed)

    def _note(self, url: str, failed: TryAgain) -> None:
        if isinstance(failed, Unreachable):
            self._discovery.failed(url)
        if isinstance(failed, Elsewhere):
            self._discovery.look()
