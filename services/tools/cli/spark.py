"""The Spark session of the commands that read or write a checkpoint, and the applications that they work on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from contracts.errors import DeclarationError
from contracts.model.suite import load_suite
from services.runtime.command_line import CommandError
from spark_app.run.session import open_session
from spark_app.run.supervise import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from contracts import Application
    from spark_app.settings import JobSettings

TASKS = 2


@contextmanager
def spark_session(settings: JobSettings) -> Iterator[SparkSession]:
    """Yield a session in this process, with the job's settings. An error of Spark is a CommandError of one line."""
    try:
        with open_session(settings, TASKS) as spark:
            spark.sparkContext.setLogLevel("ERROR")
            yield spark
    except PySparkException as error:
        raise CommandError(first_line(str(error))) from error


def selected(settings: JobSettings, name: str | None) -> list[tuple[Application, JobSettings]]:
    """Return the applications with their settings, or the one of this name. Raises DeclarationError."""
    each = settings.by_application(load_suite(settings.application))
    chosen = [(application, own) for application, own in each if name in (None, application.name)]
    if not chosen:
        known = ", ".join(application.name for application, _ in each)
        raise DeclarationError(f"--application {name}", "is not in the suite", f"Name one of these: {known}")
    return chosen
