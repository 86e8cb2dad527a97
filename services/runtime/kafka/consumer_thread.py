"""A Kafka consumer with a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException

from services.runtime.errors import ConsumerFailedError
from services.runtime.kafka.options import create_consumer, log_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Consumer

    from services.runtime.kafka.options import Options

log = logging.getLogger(__name__)

POLL_S = 0.1
CLOSE_S = 3.0


class ConsumerThread:
    """Calls `work` repeatedly in the thread until `run` is cancelled; closing the consumer has a timeout.

    When `run` returns, the last call has returned, so what it uses may be closed; a call must be short.
    """

    def __init__(self, client: Options, name: str, group: str, options: Options) -> None:
        self.consumer = create_consumer(client, name, group, options, log)
        self._name = name
        self._stopping = threading.Event()

    @property
    def stopping(self) -> bool:
        """Whether the thread stops: the work must not wait for the event loop then."""
        return self._stopping.is_set()

    async def run(self, work: Callable[[Consumer], None]) -> None:
        """Call the work until cancelled. Raises what the work raises, and ConsumerFailedError for a fatal error."""
        loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1, self._name)
        working = loop.run_in_executor(thread, self._work, work)
        try:
            await asyncio.shield(working)
        finally:
            self._stopping.set()
            thread.shutdown(wait=False)
            await asyncio.wait([working])
            await self._close(loop)

    def _work(self, work: Callable[[Consumer], None]) -> None:
        while not self._stopping.is_set():
            try:
                work(self.consumer)
            except KafkaException as raised:
                error: KafkaError = raised.args[0]
                if error.fatal() or error.code() == KafkaError._FATAL:  # noqa: SLF001  # a public name
                    raise ConsumerFailedError(error.name(), error.str()) from raised
                log_error(log, self._name, error)
                self._stopping.wait(POLL_S)

    async def _close(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close in the background: while the broker is down closing takes long, and its effect is not needed."""
        closed = asyncio.Event()

        def close() -> None:
            try:
                self.consumer.close()
            finally:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(closed.set)

        threading.Thread(target=close, name=f"closing {self._name}", daemon=True).start()
        try:
            async with asyncio.timeout(CLOSE_S):
                await closed.wait()
        except TimeoutError:
            log.warning(
                "a client was not closed, because the broker does not respond", extra={"facts": {"client": self._name}}
            )
