"""`stateloop graph`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from services.runtime.command_line import CommandError
from services.tools.cli.commands.parameters import ApplicationName


def graph(
    suite: Annotated[str, Parameter(name="APPLICATION", help="an application or a suite, as package.module:name")],
    /,
    *,
    application: ApplicationName = None,
    svg: Annotated[Path | None, Parameter(metavar="FILE", help="write a picture there")] = None,
) -> None:
    """Print the graph of the enrichments of each application, or write that of one as a picture."""
    from contracts.errors import DeclarationError
    from contracts.model.suite import load_suite
    from services.tools.graph.picture import picture
    from services.tools.graph.text import text

    applications = load_suite(suite).select(application)
    if svg is None:
        titled = len(applications) > 1
        print("\n\n".join(f"{chosen.name}\n\n{text(chosen)}" if titled else text(chosen) for chosen in applications))
        return
    if len(applications) > 1:
        known = ", ".join(chosen.name for chosen in applications)
        raise DeclarationError(suite, "has several applications", f"Write --application with one of {known}")
    try:
        svg.write_text(picture(applications[0]), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{svg} cannot be written: {error.strerror}") from error
    print(f"wrote {svg}")
