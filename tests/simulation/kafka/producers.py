"""A producer of the model broker for an event loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.simulation.kafka.errors import RefusedError, delivery_failed
from tests.simulation.kafka.placement import Placement

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from services.runtime.errors import DeliveryFailedError
    from services.runtime.kafka.values import Output
    from tests.simulation.kafka.broker import Broker
    from tests.simulation.kafka.network import Network

FLUSH_S = 5.0
TIMED_OUT, PURGED = "_MSG_TIMED_OUT", "_PURGE_QUEUE"


class ModelProducer:
    """Sends the records of all waiting calls in one request, and the next ones after its answer. Implements Producer.

    With `drop_after`, it drops records that are not acknowledged in this time: they may be written.
    """

    def __init__(self, broker: Broker, network: Network, drop_after: timedelta | None = None) -> None:
        self._broker = broker
        self._network = network
        self._drop_after_s = float("inf") if drop_after is None else drop_after.total_seconds()
        self._placement = Placement(broker)
        self._waiting: list[_Delivery] = []
        self._sending: asyncio.Task[None] | None = None

    def send(self, outputs: Sequence[Output]) -> asyncio.Future[Sequence[int]]:
        """See `Producer.send`."""
        loop = asyncio.get_running_loop()
        delivery = _Delivery(outputs, loop.create_future(), loop.time() + self._drop_after_s)
        if not outputs:
            delivery.settle()
            return delivery.future
        self._waiting.append(delivery)
        if self._sending is None:
            self._sending = loop.create_task(self._send())
        return delivery.future

    def drop_unsent(self) -> None:
        """See `Producer.drop_unsent`."""
        self._drop(self._waiting, PURGED)
        self._waiting = []

    async def close(self) -> None:
        """See `Producer.close`. Records that may be dropped are not waited for."""
        if (sending := self._sending) is not None:
            await asyncio.wait([sending], timeout=FLUSH_S if self._drop_after_s == float("inf") else 0.0)
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending

    async def _send(self) -> None:
        while self._waiting:
            is_up = await self._network.reach_leaders(self._waiting[0].drop_at)
            sent, self._waiting = (self._waiting, []) if is_up else (self._waiting[:1], self._waiting[1:])
            if not is_up or not await self._is_acknowledged(sent):
                self._drop(sent, TIMED_OUT)
            for delivery in sent:
                delivery.settle()
        self._sending = None

    async def _is_acknowledged(self, deliveries: Sequence[_Delivery]) -> bool:
        for delivery in deliveries:
            delivery.write(self._broker, self._placement)
        self._network.carry_out()
        until = min(delivery.drop_at for delivery in deliveries)
        if self._network.loses_acknowledgement():  # the client repeats the request, and the broker its answer
            if until != float("inf"):
                await asyncio.sleep(until - asyncio.get_running_loop().time())
                return False
            await self._network.pass_through()
        return await self._network.reach_leaders(until)

    def _drop(self, deliveries: Sequence[_Delivery], code: str) -> None:
        for delivery in deliveries:
            delivery.fail(delivery.outputs[0].topic, RefusedError(code))
            delivery.settle()


class _Delivery:
    """The records of one call."""

    def __init__(self, outputs: Sequence[Output], future: asyncio.Future[Sequence[int]], drop_at: float) -> None:
        self.outputs = outputs
        self.future = future
        self.drop_at = drop_at
        self._offsets: list[int] = []
        self._error: DeliveryFailedError | None = None

    def write(self, broker: Broker, placement: Placement) -> None:
        """Append the records; one that is refused does not keep the others back."""
        for output in self.outputs:
            try:
                placement.require_size(output)
                self._offsets.append(broker.append(placement.partition(output), output))
            except RefusedError as error:
                self.fail(output.topic, error)

    def fail(self, topic: str, error: RefusedError) -> None:
        """Note the error of a record."""
        self._error = self._error or delivery_failed(topic, error)

    def settle(self) -> None:
        """Set the result of the future."""
        if self.future.done():
            return
        if self._error is None:
            self.future.set_result(self._offsets)
        else:
            self.future.set_exception(self._error)
