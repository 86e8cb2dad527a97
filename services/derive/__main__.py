"""Runs the worker in the foreground: `stateloop derive`. SIGTERM and SIGINT stop it cleanly."""

from __future__ import annotations

import signal
import sys

from contracts import StateloopError, logs
from contracts.model.suite import load_suite
from contracts.settings import read
from services.derive.errors import NothingDerivedError
from services.derive.service import serve
from services.derive.settings import DeriveSettings
from services.runtime.foreground import failure, run
from services.runtime.shutdown import STOP_SIGNALS


def main() -> int:
    """Work until a signal stops it, and return 0; return 1 after an error, which is printed in one line."""
    try:
        settings = read(DeriveSettings)
        groups = settings.groups(load_suite(settings.application))
        if not groups:
            raise NothingDerivedError(settings.application)
    except StateloopError as error:
        return failure("derive", error)
    for number in STOP_SIGNALS:  # until the worker runs there is nothing to finish
        signal.signal(number, lambda *_: sys.exit(0))
    print(f"stateloop derive: {settings.model_dump_json()}", file=sys.stderr, flush=True)
    logs.to(sys.stderr)
    return run("derive", serve(settings, groups))


if __name__ == "__main__":
    sys.exit(main())
