"""The query of a raw source alone, as the job runs it, without that of its state: `python -m bench.raw.job`."""

from bench.harness.topics import PARTITIONS
from contracts.model.suite import load_suite
from spark_app.query.pipeline import interval
from spark_app.raw.job import INTERVAL
from spark_app.raw.query import raw_query
from spark_app.run.session import query_session, session
from spark_app.settings import JobSettings


def main() -> None:
    """Run until killed."""
    settings = JobSettings()
    (application,) = load_suite(settings.application).applications
    own = query_session(session(settings, PARTITIONS), INTERVAL, PARTITIONS)
    query = raw_query(own, application, application.raw[0], settings, settings.checkpoint)
    query.trigger(processingTime=interval(INTERVAL)).start().awaitTermination()


if __name__ == "__main__":
    main()
