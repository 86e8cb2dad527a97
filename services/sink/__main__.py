"""Runs the sinks of an application in the foreground: `stateloop sink`. SIGTERM and SIGINT stop them cleanly."""

from __future__ import annotations

import sys

import uvloop

from contracts import logs
from contracts.model.suite import load_suite
from contracts.settings import read
from services.runtime.command_line import report, run
from services.runtime.kafka.clients import accepted_clients
from services.sink.service import serve, stores
from services.sink.settings import SinkSettings


def main() -> None:
    """Run until a signal stops them. Raises StateloopError."""
    settings = read(SinkSettings)
    suite = load_suite(settings.application)
    stores(settings, suite)
    report("sink", settings.model_dump_json())
    logs.to(sys.stderr)
    uvloop.run(serve(settings, suite, accepted_clients(settings)))


if __name__ == "__main__":
    sys.exit(run("sink", main))
