"""Runs a service in the foreground, and reports the errors that end it."""

import sys
from collections.abc import Coroutine

import uvloop

from contracts import StateloopError
from services.runtime.errors import leaves


def run(name: str, service: Coroutine[None, None, None]) -> int:
    """Run until the service ends, and return its exit code: 0, or 1 after a line with errors and their remedies."""
    try:
        uvloop.run(service)
    except* StateloopError as errors:
        return_code = failure(name, "; ".join(map(str, leaves(errors))))
    else:
        return_code = 0
    return return_code


def failure(name: str, problem: object) -> int:
    """Print why a service cannot run, and return its exit code."""
    print(f"stateloop {name}: {problem}", file=sys.stderr, flush=True)  # noqa: T201  # for the operator
    return 1
