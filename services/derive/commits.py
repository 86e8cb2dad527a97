"""Commits that do not delay a stop."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Consumer, TopicPartition

log = logging.getLogger(__name__)

SLICE_S = 0.1
STOP_S = 2.0
"""The wait for a commit in progress when the worker stops. The client itself waits for a whole session."""


class Commits:
    """The commits of a consumer. After an unfinished one the consumer must not be closed, which would wait for it."""

    def __init__(self, consumer: Consumer, stopping: Callable[[], bool]) -> None:
        self._consumer = consumer
        self._stopping = stopping
        self.undone = False

    def commit(self, offsets: list[TopicPartition]) -> bool:
        """Return whether the group took it, and so still knows this member. If not, what was read may be read again."""
        done, errors = threading.Event(), list[Exception]()

        def work() -> None:
            try:
                self._consumer.commit(offsets=offsets, asynchronous=False)
            except Exception as error:  # noqa: BLE001 (raised in the thread that waits)
                errors.append(error)
            finally:
                done.set()

        threading.Thread(target=work, name="commit", daemon=True).start()
        if not self._waited(done):
            self.undone = True
            return self._failed("it was to stop")
        if errors and not isinstance(errors[0], KafkaException):
            raise errors[0]
        return not errors or self._failed(errors[0].args[0].str())

    def _waited(self, done: threading.Event) -> bool:
        """Return whether it was done before it was time to stop."""
        end = float("inf")
        while not done.wait(SLICE_S):
            if self._stopping():
                end = min(end, time.monotonic() + STOP_S)
            if time.monotonic() >= end:
                return False
        return True

    def _failed(self, detail: str) -> bool:
        log.warning("not committed", extra={"facts": {"detail": detail}})
        return False
