"""The jobs that decode: one for each format of the chunks."""

import sys

from bench.harness.jobs import Job
from bench.raw.application import FORMATS


def _job(name: str) -> Job:
    environment = {
        "STATELOOP_APPLICATION": f"bench.raw.application:{name.replace('-', '_')}",
        "STATELOOP_KAFKA": "{boot}",
        "STATELOOP_CHECKPOINT": "{checkpoint}",
        "STATELOOP_JARS": "{jars}/..",
    }
    return Job(name, (sys.executable, "-m", "bench.raw.job"), environment)


RAW_JOBS = tuple(map(_job, FORMATS))
