"""Start the job: `stateloop job`, or `spark-submit … spark_app/main.py`."""

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from pyspark.sql import SparkSession

from contracts.errors import StateloopError
from contracts.model.suite import Suite, load_suite
from contracts.settings import read
from services.runtime.kafka.broker_check import require_accepted
from services.runtime.monitoring import serving
from services.runtime.shutdown import stop_event
from spark_app.query.kafka import ignored
from spark_app.raw.job import RawJob
from spark_app.run.application_job import ApplicationJob
from spark_app.run.applications import run_all
from spark_app.run.low_watermark import RawProgress
from spark_app.run.metrics import JobMetrics
from spark_app.run.report import JobReport
from spark_app.run.session import open_session
from spark_app.settings import JobSettings

OpenSession = Callable[[JobSettings, int], AbstractContextManager[SparkSession]]
"""Opens a session with the settings and this number of slots."""


def main() -> int:
    """Run until stopped, and return 0; return 1 after an error, which is the last line of the report."""
    stopping = stop_event()
    report = JobReport()
    try:
        settings = read(JobSettings)
        run(load_suite(settings.application), settings, report, stopping)
    except StateloopError as error:
        report.ended(str(error), "error")
        return 1
    report.ended("stopped")
    return 0


def run(
    suite: Suite,
    settings: JobSettings,
    report: JobReport,
    stopping: threading.Event,
    open_session: OpenSession = open_session,
) -> None:
    """Run a query for each application and raw source, in one session. Raises StateloopError when all have given up."""
    require_accepted(settings)
    metrics, raw_progress = JobMetrics(), RawProgress()
    jobs: list[ApplicationJob | RawJob] = [
        *(
            ApplicationJob(application, own, report, metrics, raw_progress)
            for application, own in settings.by_application(suite)
        ),
        *(
            RawJob(application, raw, settings, report, metrics, raw_progress)
            for application, raw in suite.raw_sources()
        ),
    ]
    with serving(metrics, settings.http_host, settings.http_port) as port:
        slots = sum(job.slots() for job in jobs)
        with open_session(settings, slots) as spark:
            report.started(settings.model_dump(mode="json"), slots, port)
            if unused := ignored(settings.client()):
                problem = f"Spark's client does not use these of STATELOOP_KAFKA_OPTIONS: {', '.join(unused)}"
                report.line("warning", "warning", problem=problem)
            run_all(jobs, spark, stopping, retry_after=settings.give_up)


if __name__ == "__main__":
    sys.exit(main())
