"""The fence: a driver whose lease may have ended publishes nothing.

A driver that was frozen reads on when it resumes, sooner than it finds that another job has taken its lease over. So
each row that it publishes is compared with the time of the last renewal, which the driver stores in a property of its
JVM. A row that is too late waits for the next renewal: after it the query continues, as on a machine that was only
busy; without it the keeper stops the query. It closes the fence before it gives the lease back, since tasks may outlive
their query for a moment. Executors in other JVMs have no such property, and are not fenced.
"""

import threading
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from spark_app.checkpoint.lease import LEASE_S, CheckpointLease

LOOK_MS = 250
LOOKS = 2400
"""The number of times that a late row looks for a renewal, before it fails the query: the keeper stops it sooner."""


class Fence:
    """The time of the last renewal, in the JVM of the driver. `name` is the property's."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        context: Any = spark.sparkContext
        self._system = context._jvm.java.lang.System  # noqa: SLF001  # PySpark has no public way
        self._property = f"stateloop.renewed.{name}"
        self.is_complete = str(spark.sparkContext.master).partition("[")[0] == "local"
        """Whether all rows pass it: the executors run in the JVM of the driver."""
        self._is_closed, self._lock = False, threading.Lock()

    def renew(self, lease: CheckpointLease) -> None:
        """Renew the lease, and store when that began, unless the fence is closed. Raises what the renewal raises."""
        lease.renew()
        with self._lock:
            if not self._is_closed:
                self._store(lambda: lease.clock() - lease.renewed_at)

    def close(self) -> None:
        """Let no row pass any more, also after a renewal that is on its way."""
        with self._lock:
            self._is_closed = True
            self._store(lambda: LEASE_S)

    def _store(self, age_s: Callable[[], float]) -> None:
        now = self._system.nanoTime()
        renewed = now - round(age_s() * 1e9)  # the age is read after `now`: so no row passes later than it may
        self._system.setProperty(self._property, str(renewed))

    def sql(self) -> str:
        """Return the SQL of whether a row may be published: true, or an error."""
        now = "CAST(reflect('java.lang.System', 'nanoTime') AS BIGINT)"
        renewed = f"try_cast(reflect('java.lang.System', 'getProperty', '{self._property}') AS BIGINT)"
        late = f"coalesce({now} - {renewed} >= {round(LEASE_S * 1e9)}L, false)"
        looks = f"coalesce(reflect('java.lang.Thread', 'sleep', {LOOK_MS}L), '') != 'x' AND NOT {late}"
        # A function of arrays is small: code for each look would be more than Java compiles.
        waits = f"{late} AND NOT exists(sequence(1, {LOOKS}), look -> {looks})"
        problem = f"raise_error('the lease of the checkpoint was not renewed for {LEASE_S:.0f} s')"
        return f"CASE WHEN {waits} THEN CAST({problem} AS BOOLEAN) ELSE true END"
