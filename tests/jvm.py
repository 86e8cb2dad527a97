"""The options of the JVMs that tests start: most of their short lives is compiling and loading."""

from __future__ import annotations

import os

VARIABLE = "SPARK_SUBMIT_OPTS"
COMPILE_FAST = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""No second compiler: what it saves comes after minutes. Without it the code cache is 48 MB, which Spark fills."""
SHORT_BATCHES = "-Dspark.sql.streaming.realTimeMode.minBatchDuration=1s"
"""Spark refuses batches below 5 s in real-time mode otherwise: tests wait for the ends of batches."""


def start_fast() -> None:
    """Let all Spark drivers that this process starts from now on compile fast, and take short batches."""
    os.environ[VARIABLE] = f"{COMPILE_FAST} {SHORT_BATCHES}"
