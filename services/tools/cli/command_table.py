"""The table of commands: what `stateloop --help` lists. A new command is a line here, and its file in `commands/`."""

from typing import NamedTuple


class Command(NamedTuple):
    """A command: the function or App that it runs, as module:name, and one line of help."""

    target: str
    help: str
    takes_arguments: bool = True


GROUPS: dict[str, dict[str, Command]] = {
    "Begin": {
        "new": Command("services.tools.cli.commands.new:new", "write a project of your own, which runs at once"),
    },
    "Run the loop": {
        "up": Command("services.tools.cli.commands.up:up", "run the whole loop on this machine, with a live view"),
        "jars": Command(
            "services.tools.broker.jars:main",
            "download the jars of Kafka and of Spark's Kafka connector, as `up` does where they are missing",
            takes_arguments=False,
        ),
        "topics": Command(
            "services.tools.topics.__main__:main",
            "create the application's topics, and check those that exist",
            takes_arguments=False,
        ),
        "job": Command("spark_app.main:main", "run the Spark job, which holds the state", takes_arguments=False),
        "worker": Command("services.enrichment.__main__:main", "run an enrichment worker", takes_arguments=False),
        "derive": Command(
            "services.derive.__main__:main", "run the worker that writes derived states", takes_arguments=False
        ),
        "sink": Command(
            "services.sink.__main__:main",
            "run the sinks, which write states to Redis or PostgreSQL",
            takes_arguments=False,
        ),
        "query": Command(
            "services.query.__main__:main", "run the query service, with the console", takes_arguments=False
        ),
        "broker": Command(
            "services.tools.broker.__main__:main", "run the embedded Kafka broker", takes_arguments=False
        ),
    },
    "Query the state": {
        "get": Command("services.tools.cli.commands.queries:get", "print the state of a key"),
        "coverage": Command(
            "services.tools.cli.commands.queries:coverage", "print where a key has data, and where gaps"
        ),
        "watch": Command(
            "services.tools.cli.commands.queries:watch", "print changes of a key, or of keys with a prefix"
        ),
        "keys": Command("services.tools.cli.commands.queries:keys", "print the keys of a state"),
        "states": Command("services.tools.cli.commands.queries:states", "print the named states"),
    },
    "Operate": {
        "doctor": Command(
            "services.tools.cli.doctor:main",
            "check Java, settings, broker, topics, checkpoint, APIs, clocks and the store of a sink",
            takes_arguments=False,
        ),
        "live": Command("services.tools.cli.commands.live:live", "show the loop in this terminal"),
        "bootstrap": Command(
            "services.tools.cli.commands.bootstrap:bootstrap", "make the first state of files with events of the past"
        ),
        "rebuild": Command(
            "services.tools.cli.commands.rebuild:rebuild",
            "build the state anew for a changed application, and switch to it",
        ),
        "savepoint": Command(
            "services.tools.cli.commands.savepoint:savepoint", "copy the job's state, list copies, or restore one"
        ),
        "archive": Command(
            "services.tools.cli.commands.archive:archive", "write the snapshots of the job to files of Parquet"
        ),
        "table": Command(
            "services.tools.cli.commands.table:table", "put, get, list or remove rows of a reference table"
        ),
        "state": Command(
            "services.tools.cli.commands.state:state", "read the state from a checkpoint, without the query service"
        ),
        "verify": Command(
            "services.tools.cli.commands.verify:verify",
            "compare the state in the checkpoint, the topic and the query service",
        ),
        "redrive": Command("services.tools.cli.commands.redrive:redrive", "list dead letters, or send them again"),
    },
    "Describe an application": {
        "graph": Command(
            "services.tools.cli.commands.graph:graph", "print the graph of its enrichments, or write it as a picture"
        ),
        "acls": Command(
            "services.tools.cli.commands.acls:acls", "print the commands that grant each part its rights on the brokers"
        ),
        "schemas": Command("services.tools.cli.commands.schemas:schemas", "write the JSON Schemas of its records"),
    },
    "Set up the shell": {
        "completion": Command(
            "services.tools.cli.commands.completion:completion", "print the script that completes commands and options"
        ),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
