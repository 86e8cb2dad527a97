"""The console of the commands, for a terminal that must not obey what it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.segment import Segment
from typing_extensions import override

from services.runtime.command_line import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType


class TerminalConsole(Console):
    """A console that escapes the control characters of texts: keys, values and errors have what devices send."""

    @override
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            shown = text if control else "\n".join(map(printable, text.split("\n")))
            yield Segment(shown, style, control)
