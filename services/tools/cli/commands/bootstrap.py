"""`stateloop bootstrap`."""

from services.tools.cli.commands.parameters import ApplicationName


def bootstrap(path: str, /, *paths: str, application: ApplicationName = None) -> None:
    """Write events of the past to the topic of events, and make the state of them in STATELOOP_CHECKPOINT.

    Run it before the first start of the job. Each PATH is a file of Parquet or
    JSON lines, or a folder of them. An interrupted bootstrap continues with the
    same command.
    """
    from services.tools.cli.bootstrap import bootstrap as run

    run([path, *paths], application)
