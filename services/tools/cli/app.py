"""The command `stateloop`, made of the table of commands. Nothing that a command needs is imported before it runs."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from typing import TYPE_CHECKING

from cyclopts import App, CycloptsError, Group, Parameter, UnusedCliTokensError

from services.runtime.command_line import CommandError, UsageError
from services.tools.cli.command_table import COMMANDS, GROUPS
from services.tools.cli.help import SectionFormatter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from services.tools.cli.command_table import Command

HELP = (
    "The full state of every device on Spark, published as it changes, enriched through Kafka.\n\n"
    "Settings are environment variables with the prefix STATELOOP_. `stateloop COMMAND --help` lists the arguments of "
    "a command. Options of the queries may stand before the command."
)
SETTINGS_ONLY = (
    "It takes no arguments: its settings are environment variables with the prefix STATELOOP_, which "
    "docs/reference/settings.md lists."
)
WITHOUT_SPARK = "Spark is not installed here: use the image stateloop-spark, or pip install 'stateloop[job]'"
OF_SPARK = {"pyspark", "spark_app"}
"""The packages that the image of the services does not have."""


def create_app(described: str | None = None) -> App:
    """Return the command. The `described` subcommand has its own help, each other one its line of the table."""
    app = App(
        name="stateloop",
        version=_version,
        help=HELP,
        usage="Usage: stateloop COMMAND [ARGUMENTS]",
        help_format="plaintext",
        help_formatter=SectionFormatter(),
        default_parameter=Parameter(negative=(), show_default=False, allow_repeating=True),
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    numbers = count()
    for title, commands in GROUPS.items():
        group = Group.create_ordered(title)
        for name, command in commands.items():
            add = partial(app.command, name=name, group=group, sort_key=next(numbers))
            if command.takes_arguments:
                add(command.target, help=None if name == described else command.help)
            else:
                add(_without_arguments(command), help=_sentence(command.help) if name == described else command.help)
    app["--help"].group = app["--version"].group = Group.create_ordered("Options")
    return app


def run_command(arguments: Sequence[str]) -> int | None:
    """Run the command of these arguments, and return its exit code. Raises UsageError, CommandError, StateloopError."""
    name = arguments[0] if arguments else ""
    app = create_app(described=name)
    _require_utf8(arguments)
    try:
        _require_subcommand(app, arguments)
        code: int | None = app(arguments)
    except CycloptsError as error:
        command = f"stateloop {name}" if name in COMMANDS else "stateloop"
        raise UsageError(f"{_problem(error)} `{command} --help` lists what it takes") from error
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in OF_SPARK:
            raise
        raise CommandError(WITHOUT_SPARK) from error
    return code


def _problem(error: CycloptsError) -> str:
    """Return a sentence on wrong arguments."""
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"Unexpected argument: {error.unused_tokens[0]}."
    text = str(error)
    return text if text.endswith((".", "?")) else f"{text}."


def _require_utf8(arguments: Sequence[str]) -> None:
    """Raise UsageError for an argument with other bytes: no key, name or URL has them."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UsageError(f"the argument {argument!a} is not UTF-8: write it in UTF-8") from None


def _require_subcommand(app: App, arguments: Sequence[str]) -> None:
    """Raise UsageError for a command that has subcommands, without one: cyclopts would print its help."""
    if len(arguments) != 1 or not (command := COMMANDS.get(arguments[0])) or not command.takes_arguments:
        return
    own = app[arguments[0]]
    if own.default_command is None:
        known = ", ".join(name for name in own if not name.startswith("-"))
        raise UsageError(f"a subcommand is missing: write one of {known}")


def _without_arguments(command: Command) -> object:
    """Return a function that imports and runs the command's."""

    def run() -> int | None:
        module, _, name = command.target.partition(":")
        code: int | None = getattr(import_module(module), name)()
        return code

    return run


def _sentence(help_: str) -> str:
    return f"{help_[0].upper()}{help_[1:]}.\n\n{SETTINGS_ONLY}"


def _version() -> str:
    try:
        return f"stateloop {version('stateloop')}"
    except PackageNotFoundError:
        return "stateloop (not installed as a package)"
