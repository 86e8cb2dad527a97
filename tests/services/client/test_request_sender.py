"""Retries within a deadline, by a clock that only the pauses advance."""

from __future__ import annotations

import pytest

from services.client import Client
from services.client.addresses import Addresses
from services.client.errors import AttemptFailedError, NoAnswerError
from services.client.request_sender import MIN_ATTEMPT_S, RequestSender
from services.client.transport import ClientTransport
from tests.clock import Clock


def lowest(low: float, _: float) -> float:
    return low


async def test_no_attempt_is_made_for_which_too_little_time_is_left() -> None:
    clock, attempts = Clock(), list[tuple[str, float]]()
    transport = ClientTransport(None, 1)
    addresses = Addresses(["http://a", "http://b"], transport, clock, discover=False, draw=lowest)

    async def sleep(seconds: float) -> None:
        clock.now += seconds

    async def once(url: str, left_s: float) -> None:
        attempts.append((url, left_s))
        raise AttemptFailedError("it is down", after_s=0.3)

    sender = RequestSender(transport, addresses, clock, sleep, lowest)
    with pytest.raises(NoAnswerError, match="it is down") as caught:
        await sender.retry("a key", 0.6 + MIN_ATTEMPT_S / 2, once)
    assert caught.value.tries == len(attempts) == 2, "a third one would have half of the least time"
    assert [url for url, _ in attempts] == ["http://a", "http://b"]
    assert [left_s for _, left_s in attempts] == pytest.approx([0.6 + MIN_ATTEMPT_S / 2, 0.3 + MIN_ATTEMPT_S / 2])


async def test_a_client_that_is_not_entered_names_the_remedy() -> None:
    with pytest.raises(RuntimeError, match="inside `async with`"):
        await Client("http://a").get("flights", "k")
