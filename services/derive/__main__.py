"""Runs the worker in the foreground: `stateloop derive`. SIGTERM and SIGINT stop it cleanly."""

from __future__ import annotations

import logging
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, ProcessCollector, generate_latest

from contracts import logs
from contracts.metrics import Metric
from contracts.metrics import derive as metrics
from contracts.model.suite import load_suite
from contracts.settings import read
from services.derive.alert_worker import AlertWorker
from services.derive.alerting import Alerting
from services.derive.errors import NothingDerivedError
from services.derive.kafka import RealKafka
from services.derive.settings import DeriveSettings
from services.derive.tables import Tables
from services.derive.worker import DeriveWorker, check_partitions, names
from services.runtime.command_line import report, run
from services.runtime.job_progress import JobProgress
from services.runtime.monitoring import serving
from services.runtime.shutdown import stop_event
from services.runtime.topic_owners import TopicOwners
from services.runtime.topic_reader import TopicReader

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, Sequence

    from contracts import Application

log = logging.getLogger(__name__)


def main() -> None:
    """Work until a signal stops it. Raises StateloopError."""
    stopping = stop_event()
    settings = read(DeriveSettings)
    groups = settings.groups(load_suite(settings.application))
    if not groups:
        raise NothingDerivedError(settings.application)
    report("derive", settings.model_dump_json())
    logs.to(sys.stderr)
    counters = _Counters([one.name for one in groups.values()])
    with serving(counters, settings.http_host, settings.http_port):
        _work_all(settings, groups, counters, stopping)


def _work_all(
    settings: DeriveSettings, groups: Mapping[str, Application], counters: _Counters, stopping: threading.Event
) -> None:
    """Run a worker for each application, in a thread. An error of one stops all."""
    with ThreadPoolExecutor(len(groups)) as threads:
        workers = [threads.submit(_work, settings, group, one, counters, stopping) for group, one in groups.items()]
        for worker in as_completed(workers):
            if worker.exception():
                stopping.set()
    for worker in workers:
        worker.result()


def _work(
    settings: DeriveSettings, group: str, application: Application, counters: _Counters, stopping: threading.Event
) -> None:
    topic = application.topics.snapshots
    kafka = RealKafka(settings.client(), group, topic, settings.max_poll_records, stopping.is_set)
    try:
        partitions = kafka.partitions([topic, *names(application)], settings.kafka)
        if not stopping.is_set():
            check_partitions(application, partitions)
            TopicOwners(application, settings.client(), log.warning).check(stopping.is_set)
        count = partial(counters.add, application.name)
        alerts = _alert_worker(settings, application, partitions, count, stopping) if application.reads_tables else None
        if alerts is not None:
            alerts.start()
        kafka.join(alerts)
        DeriveWorker(application, kafka, partitions, count, stopping.is_set, alerts).run()
    finally:
        kafka.close()


def _alert_worker(
    settings: DeriveSettings,
    application: Application,
    partitions: Mapping[str, int],
    count: Callable[[Metric, int], None],
    stopping: threading.Event,
) -> AlertWorker:
    tables = Tables(application, TopicReader(settings.client(), "tables", log))
    reader = TopicReader(settings.client(), "alerts", log)
    progress = JobProgress(settings.client(), application.topics.snapshots)
    alerting = Alerting(application, partitions, is_replay=application.topics.replay)
    return AlertWorker(application, alerting, tables, reader, count, stopping.is_set, progress.read)


class _Counters:
    """The counters of the catalogue. The process exits on every permanent error, so a running one is healthy."""

    def __init__(self, applications: Sequence[str]) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._counters = {
            one: Counter(one.family, one.help, one.labels, registry=self._registry) for one in metrics.CATALOGUE
        }
        for name in applications:  # so that each is there from the beginning, as 0
            for metric in self._counters:
                self.add(name, metric, 0)

    def add(self, application: str, metric: Metric, by: int) -> None:
        """Count in a thread of an application."""
        self._counters[metric].labels(application).inc(by)

    def unhealthy(self) -> None:
        """See `Monitored.unhealthy`."""

    def unready(self) -> None:
        """See `Monitored.unready`."""

    def text(self) -> bytes:
        """See `Monitored.text`."""
        return generate_latest(self._registry)


if __name__ == "__main__":
    sys.exit(run("derive", main))
