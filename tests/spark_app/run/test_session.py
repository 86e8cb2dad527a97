"""The settings of the session that are computed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from spark_app.run.session import (
    CONF,
    STATE_STORE,
    archive_of,
    batches_per_snapshot,
    default_archive,
    java_options,
    query_session,
    silence,
)
from spark_app.settings import JobSettings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("seconds", "batches"), [(5, 12), (15, 4), (60, 1), (300, 1)])
def test_the_state_is_laid_down_whole_once_a_minute_or_with_each_batch(seconds: int, batches: int) -> None:
    assert batches_per_snapshot(timedelta(seconds=seconds)) == batches


def test_the_first_job_makes_the_archive_of_classes_and_the_next_one_uses_it(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    assert java_options("-Xss4m", None) == "-Xss4m"
    assert f"-Xss4m -XX:ArchiveClassesAtExit={archive}" in java_options("-Xss4m", archive)
    archive.touch()
    assert f"-Xss4m -XX:SharedArchiveFile={archive}" in java_options("-Xss4m", archive)


def test_a_job_uses_the_archive_that_its_settings_name_or_else_that_of_the_installation(tmp_path: Path) -> None:
    settings = JobSettings(application="", jars=tmp_path)
    assert archive_of(settings) is None
    default_archive(tmp_path).touch()
    assert archive_of(settings) == default_archive(tmp_path)
    own = tmp_path / "own.jsa"
    assert archive_of(settings.model_copy(update={"class_archive": own})) == own


@pytest.mark.spark
def test_a_query_has_its_own_settings_and_those_of_the_job(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    own = query_session(spark, timedelta(seconds=2), 7)
    assert own.conf.get("spark.sql.shuffle.partitions") == "7"
    assert own.conf.get(f"{STATE_STORE}.minDeltasForSnapshot") == "30"
    assert spark.conf.get("spark.sql.shuffle.partitions") == before
    job = {name: value for name, value in CONF.items() if name.startswith("spark.sql.")}
    assert {name: own.conf.get(name) for name in job} == job


@pytest.mark.spark
def test_spark_does_not_warn_of_each_batch_that_takes_longer_than_its_interval(spark: SparkSession) -> None:
    context: Any = spark.sparkContext
    logs = context._jvm.org.apache.logging.log4j.LogManager  # noqa: SLF001  # PySpark has no public way
    streaming, former = "org.apache.spark.sql.execution.streaming.runtime", logs.getRootLogger().getLevel().toString()
    spark.sparkContext.setLogLevel("WARN")
    silence(spark)
    names = ("ProcessingTimeExecutor", "X")
    warns = {name: logs.getLogger(f"{streaming}.{name}").isWarnEnabled() for name in names}
    spark.sparkContext.setLogLevel(former)
    assert warns == {"ProcessingTimeExecutor": False, "X": True}
