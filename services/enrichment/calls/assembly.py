"""Builds the objects that call the APIs of an application, from one transport per API."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from contracts.metrics import worker as metrics
from services.enrichment.calls.api import EnrichmentApi
from services.enrichment.calls.api_client import ApiClient
from services.enrichment.calls.batches import BatchedCalls
from services.enrichment.calls.breaker_report import BreakerReport
from services.enrichment.calls.caller import Caller
from services.enrichment.calls.circuit_breaker import CircuitBreaker
from services.enrichment.calls.headers import reveal
from services.enrichment.calls.permits import ApiAvailability, PermitSource, Unrestricted
from services.enrichment.calls.response_cache import ResponseCache
from services.enrichment.calls.retrier import CallRetrier
from services.enrichment.calls.signature import Signer
from services.enrichment.calls.suspension import SuspendableCaller, Suspension
from services.enrichment.calls.transport import Bounds, HttpTransport
from services.enrichment.calls.webhook import OrderedCaller, WebhookCaller
from services.runtime.adapters import loop_time, uniform, utc_now

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import datetime

    from pydantic import SecretStr

    from contracts import Application, Enrichment, Policy, Webhook
    from contracts.metrics.counts import Counts
    from services.enrichment.calls.caller import Enricher
    from services.enrichment.calls.circuit_breaker import CallLater
    from services.enrichment.calls.suspension import FailureLimits
    from services.enrichment.calls.transport import OpenSpan, Transport
    from services.enrichment.settings import ApiSettings
    from services.runtime.retry import Draw


def call_later(seconds: float, what: Callable[[], None]) -> object:
    """Call a function after a time in seconds."""
    return asyncio.get_running_loop().call_later(seconds, what)


@dataclass(frozen=True)
class Runtime:
    """Time and randomness of the calls; tests replace them."""

    clock: Callable[[], float] = loop_time
    now: Callable[[], datetime] = utc_now
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    later: CallLater = call_later
    draw: Draw = uniform


@dataclass(frozen=True)
class ApiCalls:
    """The caller that answers requests, and the availability of the APIs."""

    caller: Enricher
    availability: ApiAvailability
    batches: tuple[BatchedCalls, ...] = field(default=())

    def close(self) -> None:
        """Cancel the batched calls in flight."""
        for batched_calls in self.batches:
            batched_calls.close()


def assemble(
    application: Application,
    transports: Mapping[str, Transport],
    counts: Counts,
    given: Runtime | None = None,
    *,
    limits: FailureLimits | None = None,
) -> ApiCalls:
    """Build the caller of an application, with one transport per API. Without limits no API is suspended."""
    runtime = given or Runtime()
    permits = {api: _permit_source(api, policy, counts, runtime) for api, policy in application.apis.items()}
    parts = {
        api: _ApiParts(api, policy, transports[api], permits[api], counts=counts, runtime=runtime)
        for api, policy in application.apis.items()
    }
    apis = {enrichment.name: parts[enrichment.api].api(enrichment) for enrichment in application.enrichments}
    retriers = {enrichment.name: parts[enrichment.api].retrier(enrichment) for enrichment in application.enrichments}
    caller = Caller(application, apis, retriers)
    batches = tuple(part.batches for part in parts.values())
    if limits is None:
        return ApiCalls(caller, ApiAvailability(permits, {}), batches)
    suspensions = {api: _suspension(api, policy, limits, counts, runtime) for api, policy in application.apis.items()}
    suspendable = SuspendableCaller(
        caller, {enrichment.name: suspensions[enrichment.api] for enrichment in application.enrichments}
    )
    return ApiCalls(suspendable, ApiAvailability(permits, suspensions), batches)


def assemble_webhook(  # noqa: PLR0913  # it connects these parts
    webhook: Webhook,
    alerts: str,
    transport: Transport,
    counts: Counts,
    *,
    secret: SecretStr | None = None,
    given: Runtime | None = None,
    limits: FailureLimits | None = None,
) -> ApiCalls:
    """Build the caller of a webhook of these alerts. Without limits it is not suspended."""
    runtime, api, policy = given or Runtime(), webhook.api, webhook.policy
    permits = _permit_source(api, policy, counts, runtime)
    client = ApiClient(api, policy, transport, permits, clock=runtime.clock, now=runtime.now, counts=counts)
    signer = None if secret is None else Signer(api, secret, runtime.now)
    caller = WebhookCaller(webhook, client, _retrier(api, alerts, policy, counts, runtime), signer)
    if limits is None:
        return ApiCalls(OrderedCaller(caller), ApiAvailability({api: permits}, {}))
    suspension = _suspension(api, policy, limits, counts, runtime)
    suspendable = SuspendableCaller(caller, {alerts: suspension})
    return ApiCalls(OrderedCaller(suspendable), ApiAvailability({api: permits}, {api: suspension}))


def http_transport(settings: ApiSettings, api: str, policy: Policy, span: OpenSpan | None = None) -> HttpTransport:
    """Return the transport to an API at its address in the settings. Raises HeaderUnreadableError."""
    bounds = Bounds(
        connections=policy.concurrency,
        largest=policy.largest_answer,
        redirects=policy.redirects,
        allowed=settings.allowed_networks,
        headers=reveal(settings.api_headers.get(api, {})),
    )
    return HttpTransport(settings.apis[api], bounds, clock=loop_time, span=span)


def _retrier(api: str, enrichment: str, policy: Policy, counts: Counts, runtime: Runtime) -> CallRetrier:
    on_retry = partial(counts.add, metrics.RETRIES, api, enrichment)
    return CallRetrier(policy, sleep=runtime.sleep, draw=runtime.draw, on_retry=on_retry)


def _permit_source(api: str, policy: Policy, counts: Counts, runtime: Runtime) -> PermitSource:
    """The breaker of an API, with the report of its state and failures."""
    if policy.breaker is None:
        return Unrestricted()
    report = BreakerReport(api, counts, runtime.now)
    return CircuitBreaker(policy.breaker, clock=runtime.clock, later=runtime.later, on_change=report.note)


def _suspension(api: str, policy: Policy, limits: FailureLimits, counts: Counts, runtime: Runtime) -> Suspension:
    """The suspension of an API. Without a breaker its requests also fail while it is only down."""
    own = limits if policy.breaker else limits._replace(first=limits.window)
    return Suspension(api, own, later=runtime.later, report=BreakerReport(api, counts, runtime.now), counts=counts)


class _ApiParts:
    """The objects of one API: those that its enrichments share, and those of each enrichment."""

    def __init__(  # noqa: PLR0913  # it connects these parts
        self,
        name: str,
        policy: Policy,
        transport: Transport,
        permits: PermitSource,
        *,
        counts: Counts,
        runtime: Runtime,
    ) -> None:
        self._name = name
        self._policy = policy
        self._counts = counts
        self._runtime = runtime
        self._client = ApiClient(name, policy, transport, permits, clock=runtime.clock, now=runtime.now, counts=counts)
        self._cache = ResponseCache(name, policy.cache, runtime.clock, counts)
        self.batches = BatchedCalls(self._client, policy, runtime.later)

    def api(self, enrichment: Enrichment) -> EnrichmentApi:
        return EnrichmentApi(enrichment, self._client, self._cache, self.batches, self.retrier(enrichment))

    def retrier(self, enrichment: Enrichment) -> CallRetrier:
        return _retrier(self._name, enrichment.name, self._policy, self._counts, self._runtime)
