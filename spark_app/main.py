"""Start the job: `python -m spark_app`, or `spark-submit … spark_app/main.py`."""

import signal
import sys
import threading
import time

from pyspark.sql.streaming.query import StreamingQuery

from contracts.application import load
from contracts.errors import StateloopError
from contracts.settings import read
from spark_app.checkpoint import claim, identity, state_model
from spark_app.endpoints import serving
from spark_app.figures import Figures
from spark_app.pipeline import pipeline
from spark_app.report import Report
from spark_app.session import session, slots
from spark_app.settings import Settings
from spark_app.supervise import Failures, supervise
from spark_app.topics import identify


def main() -> int:
    """Run until stopped: 0. An error that a person has to mend: 1, with a line that says how."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    report = Report()
    try:
        settings = read(Settings)
        figures = Figures(settings.batch, time.monotonic, time.time)
        report.count(figures)
        with serving(figures, settings.http_host, settings.http_port) as port:
            run(settings, report, figures, port, stopping)
    except StateloopError as error:
        report.ended(str(error), "error")
        return 1
    report.ended("stopped")
    return 0


def run(settings: Settings, report: Report, figures: Figures, http_port: int | None, stopping: threading.Event) -> None:
    """The driver's life. Raises StateloopError for what a person has to mend."""
    application = load(settings.application)
    topics = identify(settings, application)
    state_partitions = settings.state_partitions or topics[0].partitions
    needed = slots(application, topics, state_partitions)
    spark = session(settings, needed, state_partitions)
    try:
        query = pipeline(spark, application, settings)

        def start() -> StreamingQuery:
            """Each time anew, for a topic may have been deleted and made again while the query ran."""
            found = identify(settings, application)
            claim(spark, settings.checkpoint, identity(application, found, state_partitions))
            return query.start()

        figures.about(application.name, state_model(application), settings.checkpoint)
        report.started(settings.model_dump(mode="json"), needed, http_port)
        give_up = max(settings.give_up, 2 * settings.batch)  # only a batch that is over is progress
        supervise(start, report, Failures(give_up), stopping, time.monotonic)
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
