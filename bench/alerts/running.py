"""The processes of an engine, as one."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Self

from confluent_kafka import Consumer, TopicPartition

from bench.alerts.engines import AlertEngine
from bench.harness.jobs import Job
from bench.harness.plan import Plan, Site
from bench.harness.process import RunningJob
from bench.harness.topics import ANSWER_S, PARTITIONS, consumer_settings
from bench.query.footprint import own_mb

LOOK_S = 0.05


class RunningEngine:
    """Some processes of an engine, each on empty state. A context manager; leaving it ends them."""

    def __init__(self, engine: AlertEngine, processes: tuple[Job, ...], plan: Plan, site: Site, name: str) -> None:
        self._engine, self._site, self._name = engine, site, name
        self._started = [
            RunningJob(one, plan, site, f"{name}-{number}", {"group": name}) for number, one in enumerate(processes)
        ]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for one in self._started:
            self._stack.enter_context(one)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def cpu_s(self) -> float:
        """The CPU seconds that all of them have used."""
        return sum(one.group.cpu_s() for one in self._started)

    def own_mb(self) -> float:
        """The memory of the process that evaluates the rules, without files."""
        return own_mb(self._started[-1].group.pids())

    def rss_mb(self) -> float:
        """The same with the pages of files that it has mapped."""
        return self._started[-1].group.rss_mb()

    def wait(self, seconds: float, look_s: float = 1.0) -> None:
        """Wait while all run. Raises JobExitedError."""
        self.until(lambda: False, "", seconds, look_s, is_required=False)

    def until(
        self,
        condition: Callable[[], bool],
        waited_for: str,
        patience_s: float,
        look_s: float = LOOK_S,
        *,
        is_required: bool = True,
    ) -> None:
        """Wait for a condition. Raises JobExitedError, and JobStalledError if it is required."""
        deadline = time.monotonic() + patience_s
        while not condition():
            for one in self._started:
                one.require_running()
            left = deadline - time.monotonic()
            if left <= 0:
                if is_required:
                    raise self._started[-1].stalled(waited_for, patience_s)
                return
            time.sleep(min(look_s, left))

    def await_committed(self, records: int, patience_s: float) -> None:
        """Wait until so many of the records that it evaluates are committed. Raises JobExitedError, JobStalledError."""
        parts = [TopicPartition(self._engine.reads, number) for number in range(PARTITIONS)]
        consumer = Consumer(consumer_settings(self._site.boot) | {"group.id": self._name})
        try:
            self.until(
                lambda: sum(max(0, one.offset) for one in consumer.committed(parts, ANSWER_S)) >= records,
                f"commit of {records:,} records",
                patience_s,
                1.0,
            )
        finally:
            consumer.close()
