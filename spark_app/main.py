"""Start the job: `stateloop job`, or `spark-submit … spark_app/main.py`."""

import sys
import threading
import time

from pyspark.sql.streaming.listener import StreamingQueryProgress

from contracts.errors import StateloopError
from contracts.model.application import load
from contracts.settings import read
from services.runtime.monitoring import serving
from services.runtime.shutdown import stop_event
from services.runtime.topic_owners import TopicOwners
from spark_app.checkpoint import claim, identity, verify
from spark_app.figures import JobMetrics
from spark_app.folder import CheckpointFolder
from spark_app.heartbeat import Heartbeat
from spark_app.keeper import kept
from spark_app.lease import acquire
from spark_app.pipeline import pipeline
from spark_app.process import this_job
from spark_app.report import JobReport
from spark_app.session import java_pid, session, slots, stop_queries
from spark_app.settings import JobSettings
from spark_app.start import QueryRun, Starter
from spark_app.state_model import state_name
from spark_app.supervise import Failures, supervise
from spark_app.topics import identify


def main() -> int:
    """Run until stopped, and return 0; return 1 after an error, which is the last line of the report."""
    stopping = stop_event()
    report = JobReport()
    try:
        settings = read(JobSettings)
        figures = JobMetrics(settings.batch, time.monotonic, time.time)
        report.count(figures)
        with serving(figures, settings.http_host, settings.http_port) as port:
            run(settings, report, figures, port, stopping)
    except StateloopError as error:
        report.ended(str(error), "error")
        return 1
    report.ended("stopped")
    return 0


def run(
    settings: JobSettings, report: JobReport, figures: JobMetrics, http_port: int | None, stopping: threading.Event
) -> None:
    """Run the driver. Raises StateloopError when it cannot go on."""
    application = load(settings.application)
    topics = identify(settings, application)
    owners = TopicOwners(application, settings.client(), report.warning)
    owners.claim()
    state_partitions = settings.state_partitions or topics[0].partitions
    needed = slots(application, topics, state_partitions)
    spark = session(settings, needed, state_partitions)
    try:
        folder = CheckpointFolder(spark, settings.checkpoint)
        lease = acquire(folder, this_job(java_pid(spark)), time.monotonic, time.sleep)
        with kept(lease, lambda: stop_queries(spark)):
            epoch = claim(folder, identity(application, topics, state_partitions), time.time_ns() // 1_000_000)
            query = pipeline(spark, application, settings, epoch, topics[0].partitions)

            starter = Starter(settings, application, folder, query, report)

            def start() -> QueryRun:
                """Check lease, topics and checkpoint at each start: a topic may have been deleted and created again."""
                lease.renew()
                found = identify(settings, application)
                verify(folder, identity(application, found, state_partitions), epoch)
                return starter.start(found)

            figures.about(application.name, state_name(application), settings.checkpoint)
            report.started(settings.model_dump(mode="json"), needed, http_port)
            give_up = max(settings.give_up, 2 * settings.batch)  # only a batch that is over is progress
            heartbeat = Heartbeat(application, settings)

            def after_batch(progress: StreamingQueryProgress) -> None:
                """Write a heartbeat, and renew the claims. Raises ForeignTopicsError after a takeover."""
                heartbeat.after(progress)
                owners.claim()

            supervise(start, report, Failures(give_up, time.monotonic), stopping, after_batch)
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
