"""Runs the sinks of an application in the foreground: `stateloop sink`. SIGTERM and SIGINT stop them cleanly."""

from __future__ import annotations

import sys

from contracts import StateloopError, logs
from contracts.model.suite import load_suite
from contracts.settings import read
from services.runtime.foreground import failure, run
from services.sink.service import serve, stores
from services.sink.settings import SinkSettings


def main() -> int:
    """Run until a signal, and return 0; or print an error with its remedy, and return 1."""
    try:
        settings = read(SinkSettings)
        suite = load_suite(settings.application)
        stores(settings, suite)
    except StateloopError as error:
        return failure("sink", error)
    print(f"stateloop sink: {settings.model_dump_json()}", file=sys.stderr, flush=True)
    logs.to(sys.stderr)
    return run("sink", serve(settings, suite))


if __name__ == "__main__":
    sys.exit(main())
