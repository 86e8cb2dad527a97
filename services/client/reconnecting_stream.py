"""A stream that reconnects: when it breaks, it resumes at another instance."""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from services.client.responses import MisdirectedError
from services.client.retrier import AttemptFailedError
from services.client.transport import UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from services.client.answers import T
    from services.client.discovery import Discovery
    from services.client.retrier import Retrier

PATIENCE_S = 60.0


class StreamTarget(NamedTuple):
    """The description of a stream, and its state and key if it has one."""

    what: str
    place: tuple[str, str] | None
    patience_s: float


class ReconnectingStream:
    """Reconnects streams. `clock` returns seconds."""

    def __init__(self, discovery: Discovery, retrier: Retrier, clock: Callable[[], float]) -> None:
        self._discovery = discovery
        self._retrier = retrier
        self._clock = clock

    async def stream(
        self, aim: StreamTarget, connect: Callable[[str], AsyncGenerator[T | None, None]]
    ) -> AsyncGenerator[T, None]:
        """Yield the items of `connect`, which ends with AttemptFailedError, from one instance after the other.

        None is a heartbeat. Raises NoAnswerError after `patience_s` without an item or a heartbeat.
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
            except AttemptFailedError as failed:
                failures += 1
                self._note(url, failed)
                if self._clock() - heard >= aim.patience_s:
                    raise failed.kind(aim.what, aim.patience_s, failures, failed.reason) from failed
                await self._retrier.pause(failures, failed)

    def _note(self, url: str, failed: AttemptFailedError) -> None:
        if isinstance(failed, UnreachableError):
            self._discovery.failed(url)
        if isinstance(failed, MisdirectedError):
            self._discovery.look()
