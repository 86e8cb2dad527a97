"""Start the job: `stateloop job`, or `spark-submit … spark_app/main.py`."""

import sys
import threading
from collections.abc import Sequence

from contracts.errors import StateloopError
from contracts.model.suite import load_suite
from contracts.settings import read
from services.runtime.monitoring import serving
from services.runtime.shutdown import stop_event
from spark_app.application_job import ApplicationJob
from spark_app.applications import run_all
from spark_app.figures import JobMetrics
from spark_app.raw_job import RawJob
from spark_app.report import JobReport
from spark_app.session import session, stop
from spark_app.settings import JobSettings


def main() -> int:
    """Run until stopped, and return 0; return 1 after an error, which is the last line of the report."""
    stopping = stop_event()
    report = JobReport()
    try:
        settings, metrics = read(JobSettings), JobMetrics()
        suite = load_suite(settings.application)
        jobs: list[ApplicationJob | RawJob] = [
            *(ApplicationJob(one, own, report, metrics) for one, own in settings.by_application(suite)),
            *(RawJob(one, raw, settings, report, metrics) for one, raw in suite.raw_sources()),
        ]
        with serving(metrics, settings.http_host, settings.http_port) as port:
            run(jobs, settings, report, port, stopping)
    except StateloopError as error:
        report.ended(str(error), "error")
        return 1
    report.ended("stopped")
    return 0


def run(
    jobs: Sequence[ApplicationJob | RawJob],
    settings: JobSettings,
    report: JobReport,
    http_port: int | None,
    stopping: threading.Event,
) -> None:
    """Run a query for each application and raw source, in one session. Raises StateloopError when all have given up."""
    slots = sum(job.slots() for job in jobs)
    spark = session(settings, slots)
    try:
        report.started(settings.model_dump(mode="json"), slots, http_port)
        run_all(jobs, spark, stopping, retry_after=settings.give_up)
    finally:
        stop(spark, settings.class_archive)


if __name__ == "__main__":
    sys.exit(main())
