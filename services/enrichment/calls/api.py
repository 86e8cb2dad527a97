"""The Api that an enrichment calls with: its calls from top to bottom."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from services.enrichment.calls.batches import echoed
from services.enrichment.calls.statuses import fitted
from services.enrichment.calls.urls import target

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Mapping

    from contracts import Batch, Enrichment
    from contracts.model.enrichment import M
    from services.enrichment.calls.access import Access
    from services.enrichment.calls.answers import Answers
    from services.enrichment.calls.batches import Batches
    from services.enrichment.calls.tries import Tries


class PolicedApi:
    """Implements `contracts.Api` for one enrichment: kept answers, tries, turns and the call itself."""

    def __init__(self, one: Enrichment, access: Access, answers: Answers, batches: Batches, tries: Tries) -> None:
        self._one = one
        self._access = access
        self._answers = answers
        self._batches = batches
        self._tries = tries

    async def get(self, path: str, model: type[M], /, **values: str | float) -> M:
        """One call: see `contracts.Api.get`."""
        where = target(path, values)
        once = partial(self._access.answer, self._one.name, where, partial(fitted, model, values))
        return await self._answer(where, partial(_again, model, values), partial(self._tries.made, once))

    async def get_one(self, batch: Batch[M], key: str | int) -> M:
        """One key of a call for many: see `contracts.Api.get_one`."""
        ask = partial(self._batches.answer, self._one.name, self._tries, batch, str(key))
        again = partial(_again, batch.model, echoed(batch, str(key)))
        return await self._answer((batch, str(key)), again, ask)

    def _answer(
        self, key: Hashable, again: Callable[[bytes], M], ask: Callable[[], Awaitable[tuple[bytes, M]]]
    ) -> Awaitable[M]:
        """A kept answer, that of a call alike under way, or that of a call of its own, tried as the policy says."""
        return self._answers.get(key, self._one.stale_after, ask, again)


def _again(model: type[M], values: Mapping[str, Any], body: bytes) -> M:
    return fitted(model, values, orjson.loads(body), body)
