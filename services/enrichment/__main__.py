"""Runs a worker in the foreground: `stateloop worker`. SIGTERM and SIGINT stop it cleanly."""

from __future__ import annotations

import sys

import uvloop

from contracts import StateloopError, logs
from contracts.model.suite import load_suite
from contracts.settings import read
from services.enrichment.service import open_tracing, serve, tune_gc
from services.enrichment.settings import EnrichmentSettings
from services.runtime.errors import leaves


def main() -> int:
    """Run a worker until a signal stops it, and return 0; or print an error with its remedy, and return 1."""
    try:
        settings = read(EnrichmentSettings)
        groups = settings.groups(load_suite(settings.application))
        settings.base_urls(groups.values())
        tracing = open_tracing(settings, groups)
    except StateloopError as error:
        return _fail(str(error))
    print(f"stateloop enrichment: {settings.model_dump_json()}", file=sys.stderr, flush=True)
    logs.to(sys.stderr, tracing.trace_id if tracing else None)
    tune_gc()
    try:
        uvloop.run(serve(settings, groups, tracing))
    except* StateloopError as errors:
        return_code = _fail("; ".join(map(str, leaves(errors))))
    else:
        return_code = 0
    return return_code


def _fail(problem: str) -> int:
    print(f"stateloop enrichment: {problem}", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
