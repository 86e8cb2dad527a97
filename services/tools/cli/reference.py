"""Writes the reference of commands: `python -m services.tools.cli.reference docs/reference/commands.md`."""

from __future__ import annotations

import re
import sys
from collections import Counter
from io import StringIO
from pathlib import Path

from rich.console import Console

from services.runtime.command_line import run
from services.tools.cli.app import create_app
from services.tools.cli.command_table import COMMANDS, GROUPS

WIDTH = 100
SEVERAL = 3
OWN = ("Usage", "Arguments", "Parameters")
"""The beginnings of the parts of a help that stay with their command."""
HEAD = """# Commands

`python -m services.tools.cli.reference docs/reference/commands.md` generates this page from the help of the commands.

`stateloop COMMAND --help` prints the help of a command. It starts nothing, and needs neither Spark nor a broker. An
error is one line on stderr, `stateloop COMMAND: …`, with its remedy. Abbreviations of options are not accepted.

## Exit codes

| code | meaning |
|---|---|
| 0 | done; of a query: found |
| 1 | error; of `stateloop doctor`: a check failed; of `stateloop rebuild`: refused without `--accept-missing` |
| 2 | wrong arguments |
| 3 | `get`, `coverage`, `state get`, `table get`: there is no such key, window or row; `verify`: differences |
| 4 | `get`: the window of the key has expired |
| 130 | Ctrl-C. SIGTERM and Ctrl-C stop a service cleanly, with 0 |

`stateloop job` reports an error as the last line of its JSON report.

## Completion

A shell completes commands, options and their choices by a script:

    stateloop completion bash > ~/.local/share/bash-completion/completions/stateloop
    stateloop completion zsh > "${fpath[1]}/_stateloop"
    stateloop completion fish > ~/.config/fish/completions/stateloop.fish

The script has the commands of the release that wrote it: write it again after an upgrade.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join((HEAD, *(part for title, commands in GROUPS.items() for part in _group(title, tuple(commands)))))


def _group(title: str, names: tuple[str, ...]) -> list[str]:
    """Return the helps of a group. What several of them end with is printed once, before them."""
    helps = [re.split(r"\n{2,}", help_of(*words)) for name in names for words in _commands(name)]
    counts = Counter(block for blocks in helps for block in blocks if not block.startswith(OWN))
    shared = [block for block, count in counts.items() if count >= SEVERAL]
    own = ["\n\n".join(block for block in blocks if block not in shared) for blocks in helps]
    head = ["Several of these commands have in common:\n", _text("\n\n".join(shared))] if shared else []
    return [f"## {title}\n", *head, *map(_text, own)]


def _text(content: str) -> str:
    return f"```text\n{content}\n```\n"


def _commands(name: str) -> list[tuple[str, ...]]:
    """Return a command and its subcommands."""
    own = create_app(described=name)[name] if COMMANDS[name].takes_arguments else ()
    return [(name,), *((name, subcommand) for subcommand in own if not subcommand.startswith("-"))]


def help_of(*words: str) -> str:
    """Return the help of a command, as a terminal of 100 columns shows it."""
    printed = StringIO()
    create_app(described=words[0]).help_print(words, console=Console(file=printed, width=WIDTH))
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())


def main() -> None:
    """Write the page."""
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(run("reference", main))
