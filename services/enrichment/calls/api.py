"""The Api that an enrichment calls with: one call, its answer validated, its failure classified."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from pydantic import ValidationError

from contracts import Absent, PermanentFailure, RetryableFailure
from contracts.errors import CallError
from contracts.metrics import worker as metrics
from services.enrichment.calls.backoff import parse_retry_after
from services.enrichment.calls.urls import target

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from contracts import Policy
    from contracts.enrichment import Enrichment, M
    from services.enrichment.calls.transport import Response, Transport
    from services.enrichment.metrics import Metrics

SUCCESS = range(200, 300)
REDIRECT = range(300, 400)
ABSENCE = (404, 410)
TOO_MANY = 429
SERVER = range(500, 600)


class HttpApi:
    """Implements `contracts.Api` over a transport, for the calls of one enrichment."""

    def __init__(
        self, transport: Transport, one: Enrichment, policy: Policy, now: Callable[[], datetime], counts: Metrics
    ) -> None:
        self._transport = transport
        self._timeout = policy.timeout
        self._labels = one.api, one.name
        self._now = now
        self._counts = counts

    async def get(self, path: str, model: type[M], /, **values: str | float) -> M:
        """One call: see `contracts.Api.get`."""
        where = target(path, values)
        try:
            response = await self._transport.get(where, self._timeout)
            result = validated(model, checked(response, self._now()))
        except CallError as error:
            self._counts.add(metrics.CALLS, *self._labels, outcome(error))
            raise
        self._counts.add(metrics.CALLS, *self._labels, "result")
        return result


def checked(response: Response, now: datetime) -> bytes:
    """The body of a successful response.

    Raises Absent for 404 and 410, RetryableFailure for 429 and 5xx, PermanentFailure for every other status.
    """
    status = response.status
    if status in SUCCESS:
        return response.body
    if status in ABSENCE:
        raise Absent(f"status {status}")
    if status == TOO_MANY or status in SERVER:
        raise RetryableFailure(f"status {status}", parse_retry_after(response.retry_after, now))
    if status in REDIRECT:
        raise PermanentFailure(f"status {status}: redirects are not followed")
    raise PermanentFailure(f"status {status}")


def validated(model: type[M], body: bytes) -> M:
    """The body as the model. Raises RetryableFailure for anything else: proxies answer rubbish with status 200.

    orjson is stricter than pydantic's own parser: it refuses NaN.
    """
    try:
        return model.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise RetryableFailure(f"the response is not JSON ({error.msg})") from error
    except ValidationError as error:
        raise RetryableFailure(f"the response does not fit {model.__name__}: {first_misfit(error)}") from error


def first_misfit(error: ValidationError) -> str:
    """Where a value does not fit, and why; without the value, which may be a secret."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    return f"{'.'.join(str(part) for part in first['loc']) or 'the whole'}: {first['msg']}"[:200]


def outcome(error: CallError) -> str:
    """How a call ended, as the metrics call it."""
    match error:
        case Absent():
            return "absence"
        case RetryableFailure():
            return "retryable"
    return "permanent"
