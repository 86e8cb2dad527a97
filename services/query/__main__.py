"""Runs an instance in the foreground: `stateloop query`. SIGTERM and SIGINT stop it cleanly."""

from __future__ import annotations

import gc
import sys

from contracts import StateloopError, logs
from contracts.model.suite import load_suite
from contracts.settings import read
from services.query.service import serve
from services.query.settings import QuerySettings
from services.runtime.foreground import failure, run

SWITCH_S = 0.001
"""How long the ingest thread may block the event loop; a fifth of Python's default."""

GC_THRESHOLDS = 100_000, 50, 100
"""Rare garbage collections: one takes 40 ms with a thousand watchers, and responses wait for it."""


def main() -> int:
    """Run until a stop signal and return 0, or return 1 after a line with the cause and its remedy."""
    try:
        settings = read(QuerySettings)
        suite = load_suite(settings.application)
    except StateloopError as error:
        return failure("query", error)
    print(f"stateloop query: {settings.model_dump_json()}", file=sys.stderr, flush=True)
    logs.to(sys.stderr)
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*GC_THRESHOLDS)
    return run("query", serve(settings, suite))


if __name__ == "__main__":
    sys.exit(main())
