"""Deliveries of a redrive, to a receiver over HTTP."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TYPE_CHECKING

from contracts import Breaker, Policy, Webhook
from contracts.alerts.deliveries import deliveries
from services.enrichment.settings import ApiSettings
from services.tools.redrive.webhooks import Webhooks
from tests.services.enrichment.alerted import MOMENT, application, crossing
from tests.services.enrichment.receiver import ACCEPTED, Receiver

if TYPE_CHECKING:
    from services.enrichment.calls.caller import Outcome

(OPENED,), (CLOSED,) = (deliveries("too_high", one) for one in crossing("sensor-1", 1))
POLICY = Policy(attempts=2, backoff=MOMENT, breaker=Breaker(failures=1, calls=1, open_for=timedelta(hours=1)))
APP = application(Webhook("pager", "/hooks", POLICY))


async def deliver(receiver: Receiver) -> list[Outcome]:
    """Deliver both events of an alert."""
    addresses = {"apis": {"pager": receiver.url}, "allowed_networks": ["127.0.0.0/8"]}
    settings = ApiSettings.model_validate({"application": "x:y", "api_headers": {"pager": {"X-Team": "a"}}} | addresses)
    async with AsyncExitStack() as stack:
        webhooks = Webhooks(settings, APP, stack)
        assert (webhooks.has_address("too_high"), webhooks.has_address("other")) == (True, False)
        return [await webhooks.deliver(OPENED), await webhooks.deliver(CLOSED)]


async def test_events_are_delivered_one_after_the_other_with_retries_and_the_headers_of_a_worker() -> None:
    statuses = iter((503, ACCEPTED, ACCEPTED))
    async with Receiver(lambda: next(statuses)).serving() as receiver:
        assert [one.status for one in await deliver(receiver)] == ["result", "result"]
    assert [attempt.key for attempt in receiver.attempts] == [
        OPENED.fingerprint,
        OPENED.fingerprint,
        CLOSED.fingerprint,
    ]
    assert {attempt.headers["X-Team"] for attempt in receiver.attempts} == {"a"}
    receiver.assert_ordered()


async def test_a_delivery_fails_when_the_receiver_stays_down_and_a_refusal_is_not_retried() -> None:
    """The breaker of a worker would wait until the receiver is back."""
    statuses = iter((503, 503, 410))
    async with Receiver(lambda: next(statuses)).serving() as receiver:
        down, refused = await deliver(receiver)
    assert (down.status, refused.status, refused.reason) == ("failure", "failure", "status 410")
    assert len(receiver.attempts) == 3


def test_without_an_address_nothing_can_be_delivered() -> None:
    webhooks = Webhooks(ApiSettings.model_validate({"application": "x:y"}), APP, AsyncExitStack())
    assert not webhooks.has_address("too_high")
