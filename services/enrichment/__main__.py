"""Runs a worker in the foreground: `stateloop worker`. SIGTERM and SIGINT stop it cleanly."""

from __future__ import annotations

import logging
import sys

import uvloop

from contracts import logs
from contracts.model.suite import load_suite
from contracts.settings import read
from services.enrichment.service import open_tracing, serve, tune_gc
from services.enrichment.settings import EnrichmentSettings
from services.runtime.command_line import report, run
from services.runtime.kafka.clients import accepted_clients

log = logging.getLogger(__name__)


def main() -> None:
    """Run a worker until a signal stops it. Raises StateloopError."""
    settings = read(EnrichmentSettings)
    suite = load_suite(settings.application)
    groups, webhooks = settings.groups(suite), settings.webhooks(suite)
    settings.base_urls(suite.applications)
    tracing = open_tracing(settings, (*groups, *webhooks))
    report("worker", settings.model_dump_json())
    logs.to(sys.stderr, tracing.trace_id if tracing else None)
    for problem in settings.uncalled_apis(suite.applications):
        log.warning(problem)
    tune_gc()
    uvloop.run(serve(settings, groups, webhooks, accepted_clients(settings), tracing))


if __name__ == "__main__":
    sys.exit(run("worker", main))
