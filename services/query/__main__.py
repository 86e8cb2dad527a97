"""Runs an instance in the foreground: `stateloop query`. SIGTERM and SIGINT stop it cleanly."""

from __future__ import annotations

import gc
import sys

import uvloop

from contracts import StateloopError, logs
from contracts.model.application import load
from contracts.settings import read
from services.query.service import serve
from services.query.settings import QuerySettings

SWITCH_S = 0.001
"""How long the follower's thread may keep the event loop from answering; Python's default is five times as long."""

GARBAGE = 100_000, 50, 100
"""How seldom Python looks for garbage. A look at what a thousand watchers hold takes 40 ms, and answers wait for it."""


def main() -> int:
    """Answer until told to stop: 0. Or return 1 after a line that says what to do."""
    try:
        settings = read(QuerySettings)
        application = load(settings.application)
    except StateloopError as error:
        return _ended(str(error))
    print(f"stateloop query: {settings.model_dump_json()}", file=sys.stderr, flush=True)
    logs.to(sys.stderr)
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*GARBAGE)
    try:
        uvloop.run(serve(settings, application))
    except* StateloopError as errors:
        return_code = _ended("; ".join(str(error) for error in errors.exceptions))
    else:
        return_code = 0
    return return_code


def _ended(why: str) -> int:
    print(f"stateloop query: {why}", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
