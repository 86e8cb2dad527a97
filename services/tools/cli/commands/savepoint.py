"""`stateloop savepoint create|list|restore`."""

from cyclopts import App

from services.tools.cli.commands.parameters import ApplicationName

savepoint = App(
    name="savepoint",
    help="Savepoints of the checkpoint of STATELOOP_CHECKPOINT, in a folder of any file system of Spark.",
)


@savepoint.command
def create(folder: str, /, *, application: ApplicationName = None) -> None:
    """Copy the last commit of the job, which may run, into a new folder below FOLDER."""
    from services.tools.cli import savepoint as checkpoint

    checkpoint.on_each(checkpoint.create, folder, application)


@savepoint.command(name="list")
def listing(folder: str, /, *, application: ApplicationName = None) -> None:
    """List the savepoints in FOLDER."""
    from services.tools.cli import savepoint as checkpoint

    checkpoint.on_each(checkpoint.listing, folder, application)


@savepoint.command
def restore(savepoint: str, /, *, application: ApplicationName = None) -> None:
    """Make the checkpoint, which must not exist, of SAVEPOINT."""
    from services.tools.cli import savepoint as checkpoint

    checkpoint.restore_one(savepoint, application)
