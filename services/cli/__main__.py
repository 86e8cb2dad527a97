"""Runs the part that a subcommand names: `stateloop COMMAND …`, or `python -m services.cli COMMAND …`."""

from __future__ import annotations

import runpy
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, NoReturn

USAGE_ERROR = 2


class Command(NamedTuple):
    """A subcommand: the module that it runs, and one line of help. A module may know subcommands by their name."""

    module: str
    help: str
    passes_name: bool = False
    takes_arguments: bool = True
    needs_spark: bool = False


GROUPS: dict[str, dict[str, Command]] = {
    "Run the loop": {
        "up": Command("services.launcher", "run the whole loop on this machine, with a live view", needs_spark=True),
        "topics": Command(
            "services.topics", "create the application's topics, and check those that exist", takes_arguments=False
        ),
        "job": Command(
            "spark_app", "run the Spark job, which holds the state", takes_arguments=False, needs_spark=True
        ),
        "worker": Command("services.enrichment", "run an enrichment worker", takes_arguments=False),
        "derive": Command("services.derive", "run the worker that writes derived states", takes_arguments=False),
        "sink": Command(
            "services.sink", "run the sinks, which write states to Redis or PostgreSQL", takes_arguments=False
        ),
        "query": Command("services.query", "run the query service, with the console", takes_arguments=False),
        "broker": Command("services.broker", "run the embedded Kafka broker", takes_arguments=False),
    },
    "Query the state": {
        "get": Command("services.client", "print the state of a key", passes_name=True),
        "coverage": Command("services.client", "print where a key has data, and where gaps", passes_name=True),
        "watch": Command("services.client", "print changes of a key, or of keys with a prefix", passes_name=True),
        "keys": Command("services.client", "print the keys of a state", passes_name=True),
        "states": Command("services.client", "print the named states", passes_name=True),
    },
    "Operate": {
        "doctor": Command(
            "services.cli.doctor",
            "check Java, settings, broker, topics, checkpoint, APIs, clocks and the store of a sink",
            takes_arguments=False,
            needs_spark=True,
        ),
        "live": Command("services.live", "show the loop in this terminal"),
        "bootstrap": Command(
            "services.cli.bootstrap", "make the first state of files with events of the past", needs_spark=True
        ),
        "rebuild": Command(
            "services.cli.rebuild", "build the state anew for a changed application, and switch to it", needs_spark=True
        ),
        "savepoint": Command(
            "services.cli.savepoint", "copy the job's state, list copies, or restore one", needs_spark=True
        ),
        "archive": Command(
            "services.cli.archive", "write the snapshots of the job to files of Parquet", needs_spark=True
        ),
        "table": Command("services.cli.table", "put, get, list or remove rows of a reference table"),
        "state": Command(
            "services.cli.state", "read the state from a checkpoint, without the query service", needs_spark=True
        ),
        "verify": Command(
            "services.cli.verify",
            "compare the state in the checkpoint, the topic and the query service",
            needs_spark=True,
        ),
        "redrive": Command("services.redrive", "list dead letters, or send them again"),
    },
    "Describe an application": {
        "graph": Command("services.graph", "print the graph of its enrichments, or write it as a picture"),
        "schemas": Command("services.schemas", "write the JSON Schema of its topics"),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
WITHOUT_SPARK = "Spark is not installed here: use the image stateloop-spark, or pip install pyspark"
NAME_WIDTH = max(map(len, COMMANDS)) + 2


def usage() -> str:
    """Return the list of subcommands."""
    lines = ["usage: stateloop COMMAND [ARGUMENTS]"]
    for title, commands in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:{NAME_WIDTH}}{one.help}" for name, one in commands.items())]
    lines += ["", "Settings are environment variables with the prefix STATELOOP_. `stateloop COMMAND --help` lists"]
    lines += ["the arguments of a command. Options of the queries may stand before the command."]
    return "\n".join(lines)


def main() -> NoReturn:
    """Run the subcommand of sys.argv in this process. Exits with 2 for an unknown one.

    The application may be a module of the working directory, as it may be with `python -m`.
    """
    given = sys.argv[1:]
    if not sys.flags.safe_path:
        sys.path.insert(0, str(Path.cwd()))
    if not given or given[0] in ("-h", "--help", "help"):
        print(usage())
        sys.exit(0 if given else USAGE_ERROR)
    if given[0] == "--version":
        print(f"stateloop {_version()}")
        sys.exit(0)
    if given[0].startswith("-"):  # an option of the client before its subcommand, as `--json get`
        _run("services.client", given)
    command = COMMANDS.get(given[0])
    if command is None:
        print(f"stateloop: no command {given[0]!r}\n\n{usage()}", file=sys.stderr)
        sys.exit(USAGE_ERROR)
    if not command.takes_arguments and given[1:]:
        _describe(given[0], command, given[1:])
    if command.needs_spark and find_spec("pyspark") is None:
        print(f"stateloop {given[0]}: {WITHOUT_SPARK}", file=sys.stderr)
        sys.exit(1)
    _run(command.module, given if command.passes_name else given[1:])


def _describe(name: str, command: Command, arguments: list[str]) -> NoReturn:
    """Print the help of a command that has settings only, and refuse any argument but the one for help."""
    described = (
        f"usage: stateloop {name}\n\n{command.help[0].upper()}{command.help[1:]}. It takes no arguments: its settings\n"
        "are environment variables with the prefix STATELOOP_, which docs/reference/settings.md lists."
    )
    if arguments[0] in ("-h", "--help"):
        print(described)
        sys.exit(0)
    print(f"stateloop {name}: no argument {arguments[0]!r}\n\n{described}", file=sys.stderr)
    sys.exit(USAGE_ERROR)


def _run(module: str, arguments: list[str]) -> NoReturn:
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    sys.exit(0)


def _version() -> str:
    try:
        return version("stateloop")
    except PackageNotFoundError:
        return "(not installed as a package)"


if __name__ == "__main__":
    main()
