"""Start the job: `python -m spark_app`, or `spark-submit … spark_app/main.py`."""

import signal
import sys
import threading
import time

from pydantic import ValidationError

from contracts.application import load
from contracts.errors import StateloopError
from spark_app.checkpoint import claim, identity
from spark_app.pipeline import pipeline
from spark_app.report import Report
from spark_app.session import session, slots
from spark_app.settings import Settings
from spark_app.supervise import Failures, supervise
from spark_app.topics import identify, sources


def main() -> int:
    """Run until stopped: 0. An error that a person has to mend: 1, with a line that says how."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    report = Report()
    try:
        run(Settings(), report, stopping)
    except ValidationError as error:
        missing = ", ".join(f"STATELOOP_{str(one['loc'][0]).upper()}: {one['msg']}" for one in error.errors())
        report.ended(f"settings are wrong ({missing}): set them in the environment")
        return 1
    except StateloopError as error:
        report.ended(str(error))
        return 1
    report.ended("stopped")
    return 0


def run(settings: Settings, report: Report, stopping: threading.Event) -> None:
    """The driver's life. Raises StateloopError for what a person has to mend."""
    application = load(settings.application)
    topics = identify(settings.kafka, sources(application))
    state_partitions = settings.state_partitions or topics[0].partitions
    needed = slots(application, topics, state_partitions)
    spark = session(settings, needed, state_partitions)
    try:
        claim(spark, settings.checkpoint, identity(application, topics, state_partitions))
        report.started(settings.model_dump(mode="json"), needed)
        query = pipeline(spark, application, settings)
        supervise(query.start, report, Failures(settings.give_up), stopping, time.monotonic)
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
