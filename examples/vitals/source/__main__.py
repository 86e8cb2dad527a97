"""Sends the chunks of all patients, second by second: `python -m examples.vitals.source`. SIGINT and SIGTERM end it."""

import signal
import sys
import time
from threading import Event as Flag

from confluent_kafka import KafkaError, Producer
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from examples.vitals.application import suite
from examples.vitals.arrivals import arrivals
from examples.vitals.errors import NotDeliveredError
from stateloop import StateloopError
from stateloop.settings import KafkaSettings, read

TOPIC = suite.raw_sources()[0][1].topic
FLUSH_S = 10.0


class Monitors(BaseSettings):
    """The number of monitors, and the seed of the faults of their chunks."""

    model_config = SettingsConfigDict(env_prefix="VITALS_", frozen=True)

    patients: int = Field(default=50, ge=1)
    seed: int = 1


class ChunkSource:
    """Sends what arrives in each second."""

    def __init__(self, producer: Producer, monitors: Monitors) -> None:
        self._producer = producer
        self._monitors = monitors
        self._error: KafkaError | None = None

    def run(self, stopped: Flag) -> None:
        """Send until stopped. Raises NotDeliveredError."""
        number = int(time.time())
        while not stopped.wait(max(0.0, number + 1 - time.time())):
            self.send(number)
            number += 1

    def send(self, number: int) -> None:
        """Send the chunks that arrive when this second, since 1970, is over. Raises NotDeliveredError."""
        for arrival in arrivals(self._monitors.seed, self._monitors.patients, number):
            self._producer.produce(
                TOPIC, arrival.value, arrival.patient.encode(), on_delivery=lambda error, _: self._note(error)
            )
        self._producer.flush(FLUSH_S)
        if self._error is not None:
            raise NotDeliveredError(TOPIC, self._error.str())

    def _note(self, error: KafkaError | None) -> None:
        self._error = self._error or error


def main() -> None:
    """Send until SIGTERM; or exit with 1 after one line with the remedy."""
    stopped = Flag()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    try:
        kafka, monitors = read(KafkaSettings), Monitors()
        options = {"partitioner": "murmur2_random", "enable.idempotence": True, "log_level": 2}
        print(f"stateloop source: {monitors.model_dump_json()}", file=sys.stderr, flush=True)
        ChunkSource(Producer({**kafka.client(), **options}), monitors).run(stopped)
    except StateloopError as error:
        sys.exit(f"stateloop source: {error}")


if __name__ == "__main__":
    main()
