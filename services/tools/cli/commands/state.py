"""`stateloop state get|export`."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

from services.runtime.command_line import ExitCode
from services.tools.cli.commands.parameters import ApplicationName

state = App(name="state", help="The state after the last commit in STATELOOP_CHECKPOINT, as the job would publish it.")


@state.command
def get(key: str, /, *, application: ApplicationName = None) -> int:
    """Print the windows of a key as JSON lines."""
    from services.tools.cli.state import print_key

    return ExitCode.OK if print_key(key, application) else ExitCode.ABSENT


@state.command
def export(
    folder: str,
    /,
    *,
    kind: Annotated[Literal["parquet", "json"], Parameter(name="--format", help="default: parquet")] = "parquet",
    application: ApplicationName = None,
) -> None:
    """Write all windows to files, in a folder of the application's name."""
    from services.tools.cli.state import export_files

    export_files(folder, kind, application)
