"""One Spark session for the tests of the job's expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from spark_app.session import CONF

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Give a session with the job's settings."""
    builder = SparkSession.Builder().master("local[2]").config(map=CONF)
    session = builder.config("spark.sql.shuffle.partitions", 2).config("spark.driver.host", "127.0.0.1").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
