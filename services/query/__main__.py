"""Runs an instance in the foreground: `stateloop query`. SIGTERM and SIGINT stop it cleanly."""

from __future__ import annotations

import gc
import sys

import uvloop

from contracts import logs
from contracts.model.suite import load_suite
from contracts.settings import read
from services.query.service import serve
from services.query.settings import QuerySettings
from services.runtime.command_line import report, run
from services.runtime.kafka.clients import accepted_clients

SWITCH_S = 0.001
"""How long the ingest thread may block the event loop; a fifth of Python's default."""

GC_THRESHOLDS = 100_000, 50, 100
"""Rare garbage collections: one takes 40 ms with a thousand watchers, and responses wait for it."""


def main() -> None:
    """Run until a signal stops it. Raises StateloopError."""
    settings = read(QuerySettings)
    suite = load_suite(settings.application)
    report("query", settings.model_dump_json())
    logs.to(sys.stderr)
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*GC_THRESHOLDS)
    uvloop.run(serve(settings, suite, accepted_clients(settings)))


if __name__ == "__main__":
    sys.exit(run("query", main))
