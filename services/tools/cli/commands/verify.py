"""`stateloop verify`."""

from dataclasses import dataclass, replace
from typing import Annotated

from cyclopts import Parameter

from services.tools.cli.commands.parameters import FLAT, ApplicationName


@dataclass(frozen=True, kw_only=True)
class VerifyOptions:
    """The keys and options of a comparison."""

    keys: Annotated[tuple[str, ...], Parameter(parse=False)] = ()
    sample: Annotated[int, Parameter(metavar="N", help="number of keys (default: 1000)")] = 1000
    no_query: Annotated[bool, Parameter(help="leave the query service out")] = False
    patience: Annotated[
        float,
        Parameter(
            metavar="SECONDS",
            help="how long the query service may take to read what the topic has (default: 30)",
        ),
    ] = 30.0
    application: ApplicationName = None


def verify(*keys: str, options: Annotated[VerifyOptions, FLAT] = VerifyOptions()) -> int:
    """Compare the state after the last commit in STATELOOP_CHECKPOINT with the topic and the query service.

    The topic has the newest snapshots; the query service is at STATELOOP_URL.
    The job may run. KEYS are compared in place of a sample. It returns 0 without
    a difference, 3 with one, and 1 after an error.
    """
    from services.tools.cli.verify import verify as run

    return run(replace(options, keys=keys))
