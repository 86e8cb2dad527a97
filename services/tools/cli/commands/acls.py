"""`stateloop acls`."""

import os
from typing import Annotated

from cyclopts import Parameter

PARTS = ("topics", "job", "worker", "derive", "sink", "query", "table", "redrive")
"""The parts. Their enumeration is not imported: help would take a third of a second more."""


def acls(
    parts: Annotated[tuple[str, ...], Parameter(name="PART", choices=PARTS, help="a part (default: all)")] = (),
    /,
    *,
    principal: Annotated[
        str, Parameter(metavar="NAME", help="the user of a part, in which {part} is its name")
    ] = "User:stateloop-{part}",
) -> None:
    """Print the commands that grant each part the rights that it needs on the brokers, and no others.

    STATELOOP_APPLICATION names the application. The settings of a part name its consumer groups: those of sinks need
    STATELOOP_SINK_URL, without which sinks are left out.
    """
    from contracts.model.suite import load_suite
    from contracts.settings import ApplicationSettings, read
    from services.tools.cli.acls import Part, commands

    settings = read(ApplicationSettings)
    suite = load_suite(settings.application)
    for part in parts or (name for name in PARTS if name != "sink" or "STATELOOP_SINK_URL" in os.environ):
        print(f"# {part}")
        for command in commands(Part(part), suite, settings.kafka, principal.replace("{part}", part)):
            print(command)
