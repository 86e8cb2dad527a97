"""The frame of every command of the product: its exit code, and its error in one line.

It imports nothing heavy, as `stateloop --help` imports it.
"""

from __future__ import annotations

import os
import re
import select
import sys
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
"""The control characters but the tab. A terminal obeys some of them, and a line break makes a line of its own."""


class ExitCode(IntEnum):
    """The exit codes of all commands."""

    OK = 0
    ERROR = 1
    USAGE = 2
    """The arguments are wrong."""
    ABSENT = 3
    """There is no such key, window or row."""
    DIFFERENT = 3
    """`stateloop verify` has found differences."""
    EXPIRED = 4
    """The window of the key has expired."""
    INTERRUPTED = 130
    """Ctrl-C, as a shell reports it."""


class CommandError(Exception):
    """An error that ends a command with an exit code of its own. It is no StateloopError, whose import takes 0.3 s."""

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.ERROR) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class UsageError(CommandError):
    """The arguments of a command are wrong, or do not fit together."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ExitCode.USAGE)


def run(name: str, command: Callable[[], int | None]) -> int:
    """Run a command, and return its exit code. An error of the product is one line on stderr, with its remedy."""
    try:
        return command() or ExitCode.OK
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        if _is_output_closed():
            return ExitCode.OK
        raise
    except CommandError as error:
        report(name, error)
        return error.exit_code
    except Exception as error:
        problems = _problems(error)
        if not problems:
            raise
        report(name, "; ".join(map(str, problems)))
        return ExitCode.ERROR


def report(name: str, text: object) -> None:
    """Print a line of a command on stderr: `stateloop NAME: …`."""
    command = f"stateloop {name}".rstrip()
    print(f"{command}: {printable(' '.join(str(text).splitlines()))}", file=sys.stderr, flush=True)  # noqa: T201


def printable(text: str) -> str:
    r"""Return a text of others, such as a device's key, for one line of a terminal: control characters as `\x1b`."""
    return CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def print_line(line: str) -> None:
    """Print a line of data, as it is where a program reads it."""
    print(printable(line) if sys.stdout.isatty() else line, flush=True)  # noqa: T201


def _problems(error: Exception) -> Sequence[BaseException]:
    """Return the errors that the product raised on purpose, alone or in a group; none if there is another one."""
    from contracts.errors import StateloopError  # noqa: PLC0415  # takes 0.3 s, without which help prints
    from services.runtime.errors import leaves  # noqa: PLC0415

    problems = list(leaves(error))
    return problems if all(isinstance(problem, StateloopError | CommandError) for problem in problems) else []


def _is_output_closed() -> bool:
    """Return whether the reader of stdout has gone, as `head` does; then discard what stdout has not written."""
    output, poll = sys.stdout.fileno(), select.poll()
    poll.register(output, 0)  # poll reports the end of a pipe without being asked
    if not poll.poll(0):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    return True
