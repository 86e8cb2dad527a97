"""The job in the process of the tests: for those that kill nothing. One Spark session runs the jobs of all of them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from typing_extensions import override

from services.runtime.monitoring import serving
from spark_app.application_job import ApplicationJob
from spark_app.applications import run_all
from spark_app.figures import JobMetrics
from spark_app.report import JobReport
from spark_app.settings import JobSettings
from tests.spark_app.running import PATIENCE_S, Job

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from contracts import Application


class HostedJob(Job):
    """`spark_app.main` of one application, but for the session: a Spark that is warm starts a query in a moment."""

    def __init__(
        self,
        spark: SparkSession,
        kafka: str,
        folder: Path,
        application: Application,
        environment: dict[str, str] | None = None,
    ) -> None:
        super().__init__(kafka, folder, "", environment or {})
        self._spark, self._application = spark, application
        self._stopping = threading.Event()
        self._thread = threading.Thread()
        self._failed = False

    @override
    def start(self) -> HostedJob:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="job", daemon=True)
        self._thread.start()
        return self

    @override
    def ended(self) -> bool:
        return not self._thread.is_alive()

    @override
    def stop(self) -> int:
        self._stopping.set()
        self._thread.join(PATIENCE_S)
        assert self.ended()
        return int(self._failed)

    def _run(self) -> None:
        settings = JobSettings.model_validate(
            {name.removeprefix("STATELOOP_").lower(): value for name, value in self.environment.items()}
        )
        self._failed = True
        with self.log.open("a", encoding="utf-8", buffering=1) as log:
            report, metrics = JobReport(log.write), JobMetrics()
            job = ApplicationJob(self._application, settings, report, metrics)
            with serving(metrics, "127.0.0.1", 0) as port:
                report.started(settings.model_dump(mode="json"), job.slots(), port)
                run_all([job], self._spark, self._stopping, retry_after=settings.give_up)
        self._failed = False
