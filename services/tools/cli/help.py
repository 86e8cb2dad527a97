"""The sections of the help: a title, and the entries in columns, without the frames that cyclopts draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cyclopts.help import DefaultFormatter, TableSpec
from cyclopts.help.specs import DefaultStyled, get_default_command_columns, get_default_parameter_columns

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

INDENT = 2


class SectionFormatter(DefaultFormatter):
    """Prints a section of the help."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Print the section, and an empty line before it."""
        if not panel.entries:
            return
        from rich.padding import Padding  # noqa: PLC0415  # only the help needs it

        columns = get_default_command_columns if panel.format == "command" else get_default_parameter_columns
        table = TableSpec().build(columns(console, options, panel.entries), panel.entries)
        console.print(f"{panel.title}:", highlight=False, markup=False)
        console.print(DefaultStyled(Padding(table, (0, 0, 1, INDENT), expand=False)))
