"""`stateloop COMMAND …`, or `python -m services.tools.cli COMMAND …`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from services.runtime.command_line import ExitCode, run
from services.tools.cli.app import run_command
from services.tools.cli.command_table import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Sequence

LEADING = {"--json": 0, "--url": 1, "--token-file": 1}
"""The options of the queries that may stand before the command, with the number of their values."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command of the arguments, by default of the process, and return its exit code.

    The application may be a module of the working directory, as it may be with `python -m`.
    """
    arguments = command_first(sys.argv[1:] if argv is None else argv)
    if not sys.flags.safe_path:
        sys.path.insert(0, str(Path.cwd()))
    name = arguments[0] if arguments and arguments[0] in COMMANDS else ""
    code = run(name, lambda: run_command(arguments or ["--help"]))
    return code if arguments else ExitCode.USAGE


def command_first(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the command before its options, and with `--help` in place of `help`."""
    remaining, leading = list(arguments), list[str]()
    while remaining and (value_count := LEADING.get(remaining[0].partition("=")[0])) is not None:
        taken = 1 if "=" in remaining[0] else 1 + value_count
        leading += remaining[:taken]
        remaining = remaining[taken:]
    if remaining[:1] == ["help"]:
        return [*remaining[1:], "--help"]
    return [*remaining[:1], *leading, *remaining[1:]]


if __name__ == "__main__":
    sys.exit(main())
