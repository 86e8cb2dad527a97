"""The Api that an enrichment's function receives: a call from top to bottom."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from services.enrichment.calls.batches import echo_values
from services.enrichment.calls.statuses import validate
from services.enrichment.calls.urls import target

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Mapping

    from contracts import Batch, Enrichment
    from contracts.model.enrichment import M
    from services.enrichment.calls.api_client import ApiClient
    from services.enrichment.calls.batches import BatchedCalls
    from services.enrichment.calls.response_cache import ResponseCache
    from services.enrichment.calls.retrier import CallRetrier


class EnrichmentApi:
    """Implements `contracts.Api` for one enrichment: cache, retries, limits, and the call itself."""

    def __init__(
        self, one: Enrichment, client: ApiClient, cache: ResponseCache, batches: BatchedCalls, retrier: CallRetrier
    ) -> None:
        self._one = one
        self._client = client
        self._cache = cache
        self._batches = batches
        self._retrier = retrier

    async def get(self, path: str, model: type[M], /, **values: str | float) -> M:
        """See `contracts.Api.get`."""
        where = target(path, values)
        once = partial(self._client.answer, self._one.name, where, partial(validate, model, values))
        return await self._answer(where, model, partial(_read, model, values), partial(self._retrier.call, once))

    async def get_one(self, batch: Batch[M], key: str | int) -> M:
        """See `contracts.Api.get_one`."""
        fetch = partial(self._batches.answer, self._one.name, self._retrier, batch, str(key))
        read = partial(_read, batch.model, echo_values(batch, str(key)))
        return await self._answer((batch, str(key)), batch.model, read, fetch)

    def _answer(
        self,
        key: Hashable,
        model: type[M],
        read: Callable[[bytes], M],
        fetch: Callable[[], Awaitable[tuple[bytes, M]]],
    ) -> Awaitable[M]:
        """A cached response, that of a call in flight, or that of a new call with the policy's retries."""
        return self._cache.get(key, model, self._one.stale_after, fetch, read)


def _read(model: type[M], values: Mapping[str, Any], body: bytes) -> M:
    return validate(model, values, orjson.loads(body), body)
