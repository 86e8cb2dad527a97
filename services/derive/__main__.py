"""Runs the worker in the foreground: `stateloop derive`. SIGTERM and SIGINT stop it cleanly."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, ProcessCollector, generate_latest

from contracts import StateloopError, logs
from contracts.metrics import Metric
from contracts.metrics import derive as metrics
from contracts.model.application import load
from contracts.settings import read
from services.derive.errors import NothingDerivedError
from services.derive.kafka import RealKafka
from services.derive.settings import DeriveSettings
from services.derive.worker import DeriveWorker, names
from services.runtime.monitoring import serving
from services.runtime.shutdown import stop_event
from services.runtime.topic_owners import TopicOwners

if TYPE_CHECKING:
    import threading

    from contracts import Application

log = logging.getLogger(__name__)


def main() -> int:
    """Work until a signal stops it, and return 0; return 1 after an error, which is printed in one line."""
    stopping = stop_event()
    try:
        settings = read(DeriveSettings)
        application = load(settings.application)
        if not application.derived:
            raise NothingDerivedError(settings.application)
        print(f"stateloop derive: {settings.model_dump_json()}", file=sys.stderr, flush=True)
        logs.to(sys.stderr)
        counters = _Counters()
        with serving(counters, settings.http_host, settings.http_port):
            _work(settings, application, counters, stopping)
    except StateloopError as error:
        print(f"stateloop derive: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


def _work(settings: DeriveSettings, application: Application, counters: _Counters, stopping: threading.Event) -> None:
    group, topic = settings.group_of(application), application.topics.snapshots
    kafka = RealKafka(settings.client(), group, topic, settings.max_poll_records, stopping.is_set)
    try:
        partitions = kafka.partitions(list(names(application)), settings.kafka)
        if not stopping.is_set():
            TopicOwners(application, settings.client(), log.warning).check(stopping.is_set)
        kafka.join()
        DeriveWorker(application, kafka, partitions, counters, stopping.is_set).run()
    finally:
        kafka.close()


class _Counters:
    """The catalogue's counters. The process exits on every error that it cannot survive, so it is always healthy."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._counters = {one: Counter(one.family, one.help, registry=self._registry) for one in metrics.CATALOGUE}

    def __call__(self, metric: Metric, by: int) -> None:
        self._counters[metric].inc(by)

    def unhealthy(self) -> None:
        """See `Monitored.unhealthy`."""

    def unready(self) -> None:
        """See `Monitored.unready`."""

    def text(self) -> bytes:
        """See `Monitored.text`."""
        return generate_latest(self._registry)


if __name__ == "__main__":
    sys.exit(main())
