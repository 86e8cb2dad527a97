"""Runs a worker in the foreground: `stateloop worker`. SIGTERM and SIGINT stop it cleanly."""

from __future__ import annotations

import sys

from contracts import StateloopError, logs
from contracts.model.suite import load_suite
from contracts.settings import read
from services.enrichment.service import open_tracing, serve, tune_gc
from services.enrichment.settings import EnrichmentSettings
from services.runtime.foreground import failure, run


def main() -> int:
    """Run a worker until a signal stops it, and return 0; or print an error with its remedy, and return 1."""
    try:
        settings = read(EnrichmentSettings)
        suite = load_suite(settings.application)
        groups, webhooks = settings.groups(suite), settings.webhooks(suite)
        settings.base_urls(suite.applications)
        tracing = open_tracing(settings, (*groups, *webhooks))
    except StateloopError as error:
        return failure("enrichment", error)
    print(f"stateloop enrichment: {settings.model_dump_json()}", file=sys.stderr, flush=True)
    logs.to(sys.stderr, tracing.trace_id if tracing else None)
    tune_gc()
    return run("enrichment", serve(settings, groups, webhooks, tracing))


if __name__ == "__main__":
    sys.exit(main())
