"""`stateloop new`."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def new(
    name: Annotated[str, Parameter(help="the name of its folder and package, such as cold_store")],
    /,
) -> None:
    """Write a project of one's own into a new folder, which runs at once.

    It has an application, a stub of its API, a source of events, tests, and the files of its deployment.
    """
    from services.tools.new.project import write_project

    files = write_project(name, Path())
    print(f"Wrote {name} with {len(files)} files. Next:")
    print(f"  cd {name}")
    print("  make test    # in memory, in seconds")
    print("  make up      # the whole loop on this machine")
