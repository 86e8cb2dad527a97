"""The calls of a webhook against a real server."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from contracts import DeclarationError, Policy, Webhook
from contracts.alerts.deliveries import deliveries
from contracts.metrics.counts import Counts
from contracts.metrics.worker import CATALOGUE
from services.enrichment.calls.assembly import Runtime, assemble_webhook
from services.enrichment.calls.caller import Outcome
from services.enrichment.calls.signature import Signer
from services.enrichment.errors import WebhookSecretError
from tests.docs.signed_webhook import is_signed
from tests.services.enrichment.alerted import crossing
from tests.services.enrichment.calls.calling import transport
from tests.services.enrichment.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path
    from typing import Any

KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
NOW = datetime(2026, 5, 1, 12, 0, 7, tzinfo=UTC)
HOOK = Webhook("pager", "/hooks", Policy(attempts=3))
OPENED, CLOSED = (deliveries("too_high", record)[0] for record in crossing("sensor-1", 1))


class Sender:
    """Sends events to a receiver, and notes the pauses between its attempts."""

    def __init__(self, receiver: Receiver, webhook: Webhook, secret: str | None, **bounds: Any) -> None:
        self.pauses: list[float] = []
        self.transport = transport(receiver.url, **bounds)
        runtime = Runtime(now=lambda: NOW, sleep=self._sleep, draw=lambda low, _: low)
        hidden = None if secret is None else SecretStr(secret)
        calls = assemble_webhook(webhook, "too_high", self.transport, Counts(CATALOGUE), secret=hidden, given=runtime)
        self.caller = calls.caller

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@asynccontextmanager
async def sending(
    receiver: Receiver, webhook: Webhook = HOOK, secret: str | None = None, **bounds: Any
) -> AsyncIterator[Sender]:
    async with receiver.serving():
        sender = Sender(receiver, webhook, secret, **bounds)
        async with sender.transport:
            yield sender


async def test_an_event_is_posted_with_its_key_and_signed() -> None:
    receiver = Receiver()
    async with sending(receiver, secret=SECRET) as sender:
        assert await sender.caller.answer(OPENED) == Outcome("result")
    (attempt,) = receiver.attempts
    assert json.loads(attempt.content) == OPENED.inputs
    assert attempt.event.idempotency_key == attempt.key == OPENED.fingerprint
    assert attempt.headers["Content-Type"] == "application/json"
    assert is_signed(KEY, attempt.headers, attempt.content)
    assert not is_signed(KEY, attempt.headers, attempt.content + b" ")
    assert (attempt.headers["webhook-id"], attempt.headers["webhook-timestamp"]) == (attempt.key, "1777636807")


async def test_a_failed_attempt_is_repeated_with_the_same_content_after_the_pause_that_the_receiver_asks_for() -> None:
    statuses = iter([503, 429, 204])
    receiver = Receiver(lambda: next(statuses))
    receiver.headers = {"Retry-After": "3"}
    async with sending(receiver, Webhook("pager", "/hooks", Policy(attempts=3, breaker=None))) as sender:
        assert await sender.caller.answer(OPENED) == Outcome("result")
        assert sender.pauses == [3, 3]
    assert {(attempt.key, attempt.content) for attempt in receiver.attempts} == {
        (OPENED.fingerprint, receiver.attempts[0].content)
    }
    assert "webhook-signature" not in receiver.attempts[0].headers


@pytest.mark.parametrize(
    ("status", "reason", "attempts"),
    [
        (404, "status 404", 1),
        (410, "status 410", 1),
        (401, "status 401", 1),
        (307, "status 307: redirects are not followed", 1),
        (500, "status 500", 3),
    ],
)
async def test_every_other_status_is_a_failure(status: int, reason: str, attempts: int) -> None:
    receiver = Receiver(lambda: status)
    receiver.headers = {"Location": "/base/hooks"}
    async with sending(receiver) as sender:
        outcome = await sender.caller.answer(OPENED)
    assert (outcome.status, outcome.reason, outcome.attempts) == ("failure", reason, attempts)
    assert len(receiver.attempts) == attempts


async def test_an_address_that_is_not_allowed_is_not_called() -> None:
    receiver = Receiver()
    async with sending(receiver, allowed=()) as sender:
        outcome = await sender.caller.answer(OPENED)
    assert (outcome.status, receiver.attempts) == ("failure", [])


async def test_the_events_of_an_alert_wait_for_each_other_and_those_of_others_do_not() -> None:
    receiver, other = Receiver(seconds=0.05), deliveries("too_high", crossing("sensor-2", 1)[0])[0]
    async with sending(receiver) as sender:
        await asyncio.gather(*(sender.caller.answer(one) for one in (OPENED, CLOSED, other)))
    receiver.assert_ordered()
    began = {attempt.key: attempt.began for attempt in receiver.attempts}
    assert max(began[OPENED.fingerprint], began[other.fingerprint]) < began[CLOSED.fingerprint]


async def test_the_body_may_be_another_and_a_bug_in_it_is_a_failure() -> None:
    receiver = Receiver()
    webhook = Webhook("pager", "/hooks", body=lambda event: event.model_dump(mode="json") | {"text": f"{event.rule}!"})
    async with sending(receiver, webhook) as sender:
        assert await sender.caller.answer(OPENED) == Outcome("result")
        assert json.loads(receiver.attempts[0].content)["text"] == "high!"
    async with sending(receiver, Webhook("pager", "/hooks", body=lambda event: dict[str, str]()[event.id])) as sender:
        assert await sender.caller.answer(OPENED) == Outcome("failure", reason="the function raised KeyError")


def test_a_signature_is_that_of_the_specification() -> None:
    """Its example: https://github.com/standard-webhooks/standard-webhooks, the tests of its libraries."""
    signer = Signer(
        "pager", SecretStr("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), lambda: datetime.fromtimestamp(1614265330, UTC)
    )
    headers = signer.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}')
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_secret_may_be_in_a_file_and_a_wrong_one_is_rejected_without_its_text(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n", "utf-8")
    assert Signer("pager", SecretStr(f"file:{tmp_path}/secret"), lambda: NOW).headers("k", b"") == Signer(
        "pager", SecretStr(SECRET), lambda: NOW
    ).headers("k", b"")
    for wrong in ("whsec_not base64!", base64.b64encode(b"short").decode(), f"file:{tmp_path}/none"):
        with pytest.raises(WebhookSecretError, match="of pager in STATELOOP_WEBHOOK_SECRETS") as raised:
            Signer("pager", SecretStr(wrong), lambda: NOW)
        assert wrong not in str(raised.value)


@pytest.mark.parametrize("path", ["hooks", "/two words", "/a\r\nHost: x"])
def test_a_path_that_is_none_is_rejected(path: str) -> None:
    with pytest.raises(DeclarationError, match="is no path"):
        Webhook("pager", path)
