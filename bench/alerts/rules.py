"""Rules as both jobs read them."""

import time

from confluent_kafka import Producer

from bench.alerts.application import Limit, limits
from bench.alerts.jobs import RULES
from bench.harness.load import IN_ORDER
from contracts.records.tables import encode_row


class RuleWriter:
    """Writes rows of the topic of rules."""

    def __init__(self, boot: str) -> None:
        self._producer = Producer({"bootstrap.servers": boot, "linger.ms": 0, **IN_ORDER})

    def put(self, name: str, limit: Limit) -> tuple[float, int]:
        """Write a rule; gives when it was handed to the client, in seconds of the epoch, and its version."""
        versions, value = list[int](), encode_row(limits, name, limit.model_dump_json(), None)
        at = time.time()
        self._producer.produce(
            RULES, value, name, on_delivery=lambda _, message: versions.append(message.offset() or 0)
        )
        self._producer.flush()
        return at, versions[0]

    def remove(self, name: str) -> None:
        """Remove a rule."""
        self._producer.produce(RULES, None, name)
        self._producer.flush()
