"""Delivers events to a webhook: the path of one delivery."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import orjson

from contracts import PermanentCallError, RetryableCallError
from contracts.errors import AUTHOR_ERRORS
from contracts.wire.alert_record import AlertEvent
from services.enrichment.calls.caller import Outcome
from services.enrichment.calls.transport import Post

if TYPE_CHECKING:
    from contracts import Webhook
    from contracts.planning.request import Request
    from services.enrichment.calls.api_client import ApiClient
    from services.enrichment.calls.caller import Enricher
    from services.enrichment.calls.retrier import CallRetrier, Effort
    from services.enrichment.calls.signature import Signer

log = logging.getLogger(__name__)

IDEMPOTENCY_KEY = "Idempotency-Key"


class OrderedCaller:
    """Delivers the events of each alert one after the other, in the order of the requests. Implements `Enricher`."""

    def __init__(self, caller: Enricher) -> None:
        self._caller = caller
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """The locks of the alerts with a delivery in progress. A lock is fair, so the deliveries stay in order."""

    async def answer(self, request: Request) -> Outcome:
        """See `Enricher.answer`. After a failure the next event of the alert is delivered."""
        lock = self._locks.setdefault(request.inputs["id"], asyncio.Lock())
        async with lock:
            return await self._caller.answer(request)


class WebhookCaller:
    """Delivers events. Implements `Enricher`."""

    def __init__(self, webhook: Webhook, client: ApiClient, retrier: CallRetrier, signer: Signer | None) -> None:
        self._webhook = webhook
        self._client = client
        self._retrier = retrier
        self._signer = signer

    async def answer(self, request: Request) -> Outcome:
        """See `Enricher.answer`."""
        try:
            await self._retrier.call(partial(self._attempt, request, self._content(request)))
        except (RetryableCallError, PermanentCallError) as failure:
            return Outcome("failure", None, failure.reason, failure.calls, failure.response)
        except AUTHOR_ERRORS as error:
            log.exception("webhook has a bug", extra={"facts": {"alerts": request.enrichment}})
            return Outcome("failure", reason=f"the function raised {type(error).__name__}")
        return Outcome("result")

    def _content(self, request: Request) -> bytes:
        """The body of the request. It is the same in each repetition."""
        if self._webhook.body is None:
            return orjson.dumps(request.inputs)
        return orjson.dumps(self._webhook.body(AlertEvent.model_validate(request.inputs)))

    async def _attempt(self, request: Request, content: bytes, effort: Effort) -> None:
        key = request.fingerprint
        headers = {"Content-Type": "application/json", IDEMPOTENCY_KEY: key}
        if self._signer:
            headers |= self._signer.headers(key, content)
        await self._client.post(request.enrichment, Post(self._webhook.path, content, headers), effort)
