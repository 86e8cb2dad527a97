"""The job with coverage and without it, and the service that answers."""

from bench.harness.jobs import MEASURED
from bench.query.servers import service_of
from bench.windows.engines import stateloop_engine

APPLICATIONS = "bench.coverage.application"
COVERED = stateloop_engine(MEASURED.name, f"{APPLICATIONS}:{{backlog}}_covered", count="state.covered")
COUNTED = stateloop_engine("without-coverage", f"{APPLICATIONS}:{{backlog}}_counted")
COVERAGE_ENGINES = {engine.job.name: engine for engine in (COVERED, COUNTED)}
COVERAGE_JOBS = tuple(engine.job for engine in COVERAGE_ENGINES.values())
COVERAGE_SERVICE = service_of(MEASURED.name, f"{APPLICATIONS}:queried")
