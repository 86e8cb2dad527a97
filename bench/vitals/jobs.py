"""The job and the service of the example."""

import sys

from bench.harness.jobs import MEASURED, Job
from bench.query.servers import service_of

APPLICATION = "bench.vitals.application:suite"
VITALS_JOB = Job(
    MEASURED.name,
    (sys.executable, "-m", "spark_app"),
    {
        "STATELOOP_APPLICATION": APPLICATION,
        "STATELOOP_KAFKA": "{boot}",
        "STATELOOP_CHECKPOINT": "{checkpoint}",
        "STATELOOP_JARS": "{jars}/..",
    },
    batch={"STATELOOP_BATCH": "PT{batch_s}S"},
)
VITALS_SERVICE = service_of("query", APPLICATION)
