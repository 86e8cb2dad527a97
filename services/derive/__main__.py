"""Runs the worker in the foreground: `stateloop derive`. SIGTERM and SIGINT stop it cleanly."""

from __future__ import annotations

import logging
import signal
import sys
import threading

from prometheus_client import CollectorRegistry, Counter, ProcessCollector, start_http_server

from contracts import Application, StateloopError, logs
from contracts.metrics import Metric
from contracts.metrics import derive as metrics
from contracts.model.application import load
from contracts.settings import read
from services.derive.errors import NothingDerivedError, PortTakenError
from services.derive.kafka import RealKafka
from services.derive.settings import DeriveSettings
from services.derive.worker import Worker, names
from services.runtime.topic_owners import TopicOwners

log = logging.getLogger(__name__)


def main() -> int:
    """Work until told to stop: 0. Or return 1 after a line that says what to do."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        settings = read(DeriveSettings)
        application = load(settings.application)
        if not application.derived:
            raise NothingDerivedError(settings.application)
        print(f"stateloop derive: {settings.model_dump_json()}", file=sys.stderr, flush=True)
        logs.to(sys.stderr)
        _work(settings, application, stopping)
    except StateloopError as error:
        print(f"stateloop derive: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


def _work(settings: DeriveSettings, application: Application, stopping: threading.Event) -> None:
    counters = _Counters(settings)
    consumer, topic = settings.consumer(application), application.topics.snapshots
    kafka = RealKafka(settings.client(), consumer, topic, settings.fetch_most, stopping.is_set)
    try:
        partitions = kafka.partitions(list(names(application)), settings.kafka)
        if not stopping.is_set():
            TopicOwners(application, settings.client(), log.warning).check(stopping.is_set)
        kafka.join()
        Worker(application, kafka, partitions, counters, stopping.is_set).run()
    finally:
        kafka.close()


class _Counters:
    """The catalogue's counters, served where the settings say. Raises PortTakenError."""

    def __init__(self, settings: DeriveSettings) -> None:
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._counters = {one: Counter(one.family, one.help, registry=registry) for one in metrics.CATALOGUE}
        if settings.http_port is not None:
            try:
                start_http_server(settings.http_port, settings.http_host, registry)
            except OSError as error:
                raise PortTakenError(settings.http_host, settings.http_port, str(error)) from error

    def __call__(self, metric: Metric, by: int) -> None:
        self._counters[metric].inc(by)


if __name__ == "__main__":
    sys.exit(main())
