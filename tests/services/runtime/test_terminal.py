"""What devices send does not control the terminal of an operator."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.live import Live
from rich.table import Table
from rich.text import Text

from services.runtime.command_line import printable, report
from services.runtime.terminal import TerminalConsole

if TYPE_CHECKING:
    import pytest

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b1mkey\x7f"
SHOWN = r"\x1b[2J\x1b]0;owned\x07\x9b1mkey\x7f"


def test_control_characters_are_escaped() -> None:
    assert printable(HOSTILE) == SHOWN
    assert printable("a\n        0  in all\r") == r"a\x0a        0  in all\x0d"
    assert printable("Zürich\t日本 \\x1b") == "Zürich\t日本 \\x1b"


def test_the_line_of_an_error_has_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    report("table", f"the record of\n{HOSTILE} is bad")
    assert capsys.readouterr().err == f"stateloop table: the record of {SHOWN} is bad\n"


def test_a_console_styles_texts_that_control_nothing() -> None:
    table = Table("key")
    table.add_row(Text(HOSTILE))
    console = TerminalConsole(file=StringIO(), width=100, force_terminal=True, color_system="standard")
    console.print(f"[green]good[/]\n{HOSTILE}", table, Text.assemble((HOSTILE, "bold")), highlight=False)
    assert isinstance(console.file, StringIO)
    printed = console.file.getvalue()
    assert printed.startswith("\x1b[32mgood\x1b[0m\n" + SHOWN.replace(r"\x07", ""))  # rich removes a bell
    assert not [part for part in ("\x07", "\x7f", "\x9b", "\x1b]", "\x1b[2J") if part in printed]


def test_a_live_view_moves_the_cursor() -> None:
    console = TerminalConsole(file=StringIO(), width=100, force_terminal=True)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        live.update(Text(HOSTILE), refresh=True)
    assert isinstance(console.file, StringIO)
    printed = console.file.getvalue()
    assert printed.startswith("\x1b[?1049h")
    assert "\x1b]" not in printed
