"""Records that are written together, by a producer that drops what it cannot send."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from services.runtime.errors import DeliveryFailedError
from services.runtime.kafka import producer
from services.runtime.kafka.producer import KafkaProducer
from services.runtime.kafka.values import BY_KEY, Output
from tests.deadline import DEADLINE_S
from tests.services.enrichment.in_memory import until

if TYPE_CHECKING:
    from collections.abc import Callable

    Delivered = Callable[[KafkaError | None, Any], None]

TIMED_OUT = KafkaError(KafkaError._MSG_TIMED_OUT)  # noqa: SLF001  # a public name
PURGED = KafkaError(KafkaError._PURGE_QUEUE)  # noqa: SLF001  # a public name
REFUSED = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
OUTPUTS = [Output("too_high", b"a", b"1", 2), Output("too_high", b"b", b"2"), Output("x", None, b"3")]
UNREACHABLE = "127.0.0.1:1"


class Message:
    """A message without content."""

    def topic(self) -> str:
        return "too_high"

    def offset(self) -> int:
        return 0


class Client:
    """A client whose records have these outcomes, as soon as the test lets them have it."""

    def __init__(self) -> None:
        self.outcomes: deque[KafkaError | None] = deque()
        self.produced: list[tuple[str, bytes, bytes | None, int]] = []
        self.waiting: deque[Delivered] = deque()
        self.room = 10
        self.refuses = False

    def produce(  # noqa: PLR0913, PLR0917  # as the client's
        self,
        topic: str,
        value: bytes,
        key: bytes | None,
        partition: int,
        on_delivery: Delivered,
        timestamp: int,  # noqa: ARG002
        headers: None,  # noqa: ARG002
    ) -> None:
        if self.refuses:
            raise KafkaException(REFUSED)
        if len(self.produced) >= self.room:
            raise BufferError
        self.produced.append((topic, value, key, partition))
        self.waiting.append(on_delivery)

    def poll(self, _: float) -> None:
        while self.waiting and self.outcomes:
            self.waiting.popleft()(self.outcomes.popleft(), Message())
        time.sleep(0.001)

    def flush(self, _: float) -> int:
        raise AssertionError("there is nothing to wait for")


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    found = Client()
    monkeypatch.setattr(producer, "create_producer", lambda *_: found)
    return found


def dropping() -> KafkaProducer:
    return KafkaProducer({}, "test", timedelta(seconds=5))


async def test_all_records_are_awaited(client: Client) -> None:
    ours = dropping()
    await ours.send([])
    writing = ours.send(OUTPUTS)
    client.outcomes.extend([None, None])
    await until(lambda: not client.outcomes)
    assert not writing.done()
    client.outcomes.append(None)
    async with asyncio.timeout(DEADLINE_S):
        await writing
    assert client.produced == [
        ("too_high", b"1", b"a", 2),
        ("too_high", b"2", b"b", BY_KEY),
        ("x", b"3", None, BY_KEY),
    ]
    await ours.close()


@pytest.mark.parametrize("error", [TIMED_OUT, PURGED])
async def test_a_record_that_was_dropped_is_reported_when_the_outcome_of_all_is_known(
    client: Client, error: KafkaError
) -> None:
    ours = dropping()
    writing = ours.send(OUTPUTS)
    client.outcomes.extend([error, None])
    await until(lambda: not client.outcomes)
    assert not writing.done()
    client.outcomes.append(None)
    with pytest.raises(DeliveryFailedError, check=lambda error: error.is_dropped):
        await writing
    await ours.close()


async def test_a_refused_record_is_an_error_also_if_others_were_dropped(client: Client) -> None:
    ours = dropping()
    client.outcomes.extend([REFUSED, TIMED_OUT, None])
    with pytest.raises(DeliveryFailedError, match="TOPIC_AUTHORIZATION_FAILED"):
        await ours.send(OUTPUTS)
    client.refuses = True
    with pytest.raises(DeliveryFailedError, match="TOPIC_AUTHORIZATION_FAILED"):
        await ours.send(OUTPUTS)
    await ours.close()


async def test_records_without_room_are_dropped_after_a_while(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later record would be sent by a worker that may have been frozen meanwhile."""
    monkeypatch.setattr(producer, "ROOM_S", 0.01)
    ours = dropping()
    client.room = 1
    client.outcomes.append(None)
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(DeliveryFailedError, check=lambda error: error.is_dropped):
            await ours.send(OUTPUTS)
    assert len(client.produced) == 1
    await ours.close()


@pytest.mark.parametrize("is_purged", [False, True])
async def test_a_real_client_drops_what_it_cannot_send(*, is_purged: bool) -> None:
    drop_after = timedelta(seconds=DEADLINE_S if is_purged else 0.1)
    client = {"bootstrap.servers": UNREACHABLE, "log_level": "0"}
    ours = KafkaProducer(client, "test", drop_after)
    writing = ours.send(OUTPUTS)
    await asyncio.sleep(0)
    if is_purged:
        ours.drop_unsent()
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(DeliveryFailedError, check=lambda error: error.is_dropped):
            await writing
    await ours.close()
