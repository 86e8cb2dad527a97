"""The webhooks of an application, to which a redrive delivers as a worker does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from contracts.metrics.counts import Counts
from contracts.metrics.worker import CATALOGUE
from services.enrichment.calls.assembly import assemble_webhook, http_transport

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager, AsyncExitStack

    from contracts import Application, Policy
    from contracts.alerts.deliveries import DeliveryRequest
    from services.enrichment.calls.assembly import Runtime
    from services.enrichment.calls.caller import Enricher, Outcome
    from services.enrichment.calls.transport import Transport
    from services.enrichment.settings import ApiSettings

    Connect = Callable[[ApiSettings, str, Policy], AbstractAsyncContextManager[Transport]]
    """Opens the transport to an API."""


class Webhooks:
    """Delivers events of an application's alerts. The stack closes the connections.

    It calls as a worker does: by the policy of the webhook, with its secret headers and signature. There is no
    breaker, which would wait for a receiver that is down: after all attempts the delivery has failed.
    """

    def __init__(
        self,
        settings: ApiSettings,
        application: Application,
        stack: AsyncExitStack,
        *,
        connect: Connect = http_transport,
        given: Runtime | None = None,
    ) -> None:
        self._settings = settings
        self._connect = connect
        self._given = given
        self._webhooks = {alerts.name: alerts.webhook for alerts in application.alerts if alerts.webhook}
        self._stack = stack
        self._callers: dict[str, Enricher] = {}

    def has_address(self, alerts: str) -> bool:
        """Return whether the alerts of this name have a webhook whose address is in the settings."""
        webhook = self._webhooks.get(alerts)
        return webhook is not None and webhook.api in self._settings.apis

    async def deliver(self, request: DeliveryRequest) -> Outcome:
        """Deliver an event of alerts that have an address. Raises a WorkerError for unusable secrets."""
        alerts = request.enrichment
        caller = self._callers.get(alerts) or await self._caller(alerts)
        return await caller.answer(request)

    async def _caller(self, alerts: str) -> Enricher:
        declared, settings = self._webhooks[alerts], self._settings
        webhook = replace(declared, policy=declared.policy.model_copy(update={"breaker": None}))
        transport = await self._stack.enter_async_context(self._connect(settings, webhook.api, webhook.policy))
        secret = settings.webhook_secrets.get(webhook.api)
        calls = assemble_webhook(webhook, alerts, transport, Counts(CATALOGUE), secret=secret, given=self._given)
        self._callers[alerts] = calls.caller
        return calls.caller
