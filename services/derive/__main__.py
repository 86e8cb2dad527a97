"""Runs the derive worker: `stateloop derive`. SIGTERM and SIGINT stop it cleanly."""

from __future__ import annotations

import os
import signal
import sys

import uvloop

from contracts import logs
from contracts.model.suite import load_suite
from contracts.settings import read
from services.derive.errors import NothingDerivedError
from services.derive.service import serve
from services.derive.settings import DeriveSettings
from services.runtime.command_line import report, run
from services.runtime.kafka.clients import accepted_clients
from services.runtime.shutdown import STOP_SIGNALS


def main() -> None:
    """Work until a signal stops it. Raises StateloopError."""
    settings = read(DeriveSettings)
    groups = settings.groups(load_suite(settings.application))
    if not groups:
        raise NothingDerivedError(settings.application)
    for number in STOP_SIGNALS:  # until the worker runs there is nothing to finish, and no place to raise SystemExit
        signal.signal(number, lambda *_: os._exit(0))
    report("derive", settings.model_dump_json())
    logs.to(sys.stderr)
    uvloop.run(serve(settings, groups, accepted_clients(settings)))


if __name__ == "__main__":
    sys.exit(run("derive", main))
