"""`stateloop savepoint create|list|restore`."""

from typing import Annotated

from cyclopts import App, Parameter

from services.tools.cli.commands.parameters import ApplicationName

OTHER_TOPICS = Parameter(
    help=(
        "the topics have other ids, as on another cluster. Begin at the `time` of the savepoint, at the `beginning` of "
        "the topics, or at the offsets of a JSON file, {topic: {partition: offset}}"
    ),
    metavar="time|beginning|FILE",
)

savepoint = App(
    name="savepoint",
    help="Savepoints of the checkpoint of STATELOOP_CHECKPOINT, in a folder of any file system of Spark.",
)


@savepoint.command
def create(folder: str, /, *, application: ApplicationName = None) -> None:
    """Copy the last commit of the job, which may run, into a new folder below FOLDER."""
    from services.tools.cli import savepoint as checkpoint

    checkpoint.create_each(folder, application)


@savepoint.command(name="list")
def listing(folder: str, /, *, application: ApplicationName = None) -> None:
    """List the savepoints in FOLDER."""
    from services.tools.cli import savepoint as checkpoint

    checkpoint.list_each(folder, application)


@savepoint.command
def restore(
    savepoint: str,
    /,
    *,
    other_topics: Annotated[str | None, OTHER_TOPICS] = None,
    accept_loss: Annotated[
        bool, Parameter(help="continue although the other topics lack events, or may lack some")
    ] = False,
    application: ApplicationName = None,
) -> None:
    """Make the checkpoint, which must be empty, of SAVEPOINT."""
    from services.tools.cli import savepoint as checkpoint

    checkpoint.restore_one(savepoint, application, other_topics, accepts_loss=accept_loss)
