"""Runs a worker in the foreground: `stateloop worker`. SIGTERM and SIGINT stop it cleanly."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import uvloop

from contracts import StateloopError, logs
from contracts.model.suite import load_suite
from contracts.settings import read
from services.enrichment.service import open_tracing, serve, tune_gc
from services.enrichment.settings import EnrichmentSettings

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        return_code = _fail("; ".join(map(str, _leaves(errors))))
    else:
        return_code = 0
    return return_code


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """Return the errors in a group: that of a worker is in the group of all workers."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _leaves(one)
    else:
        yield error


def _fail(problem: str) -> int:
    print(f"stateloop enrichment: {problem}", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
