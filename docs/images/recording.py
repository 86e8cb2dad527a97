"""Record the live view of `make up` as an animated picture, beside this file: `python docs/images/recording.py`.

It needs tmux, Java and the jars of `make jars`. The loop runs in a temporary folder, on ports of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from rich.cells import cell_len
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.style import Style

ROOT = Path(__file__).parents[2]
RECORDING = Path(__file__).with_name("recording.svg")
TMUX = ["tmux", "-L", f"stateloop-recording-{os.getpid()}"]
COLUMNS, LINES = 112, 30
FRAMES, EVERY_S, SHOWN_S = 24, 2.0, 0.5
"""The number of frames, the time between two of them in the loop, and in the picture."""
START_S, STOP_S = 300, 60
CELL, LINE, MARGIN = 7.8, 17, 14
"""The width of a character, the height of a line and the margin, in pixels."""
FIRST_PORT = 29_500
SETTINGS = {
    "STATELOOP_BROKER_PORT": str(FIRST_PORT),
    "STATELOOP_HTTP_PORT": str(FIRST_PORT + 10),
    "STATELOOP_REFERENCE_PORT": str(FIRST_PORT + 5),
    "STATELOOP_JARS": str(ROOT / ".stateloop" / "jars"),
    "STATELOOP_BROWSE": "false",
}
STYLE = """
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre }
.frame { visibility: hidden; animation: show %.1fs step-end infinite } .last { visibility: visible }
@keyframes show { 0%% { visibility: visible } %.3f%% { visibility: hidden } }
@media (prefers-reduced-motion: reduce) { .frame { animation: none } }
"""


def main() -> None:
    """Record the loop, and write the picture."""
    folder = tempfile.mkdtemp()
    try:
        frames = record(folder)
    finally:
        stop()
        shutil.rmtree(folder)
    RECORDING.write_text(svg(frames), encoding="utf-8")


def record(folder: str) -> list[str]:
    """Start the loop, and return what the terminal shows: a frame at each interval from the first states on."""
    settings = SETTINGS | {"STATELOOP_DATA": folder}
    variables = [part for name, value in settings.items() for part in ("-e", f"{name}={value}")]
    size = ["-x", str(COLUMNS), "-y", str(LINES)]
    tmux("new-session", "-d", *size, *variables, f"cd {ROOT} && {Path(sys.executable).with_name('stateloop')} up")
    wait_until(has_states, START_S)
    frames = []
    for number in range(FRAMES):
        frames.append(captured())
        if number < FRAMES - 1:
            time.sleep(EVERY_S)
    return frames


def has_states() -> bool:
    """Return whether the terminal shows a healthy loop, with states of flights."""
    shown = tmux("capture-pane", "-p").stdout
    return "● healthy" in shown and "scheduled" in shown


def stop() -> None:
    """Stop the loop as Ctrl-C does, and the terminal with it."""
    if tmux("has-session", check=False).returncode == 0:
        tmux("send-keys", "C-c")
        wait_until(lambda: tmux("has-session", check=False).returncode != 0, STOP_S)


def captured() -> str:
    """Return what the terminal shows now, with its escape sequences."""
    return tmux("capture-pane", "-e", "-p").stdout


def tmux(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command of tmux, on a server of its own."""
    return subprocess.run([*TMUX, *arguments], capture_output=True, text=True, check=check)


def wait_until(is_true: Callable[[], bool], within_s: float) -> None:
    """Return when the condition is true. Raises TimeoutError."""
    end = time.monotonic() + within_s
    while not is_true():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.2)


def svg(frames: Sequence[str]) -> str:
    """Return the animated picture: lines that never change once, the others in each frame."""
    classes = Classes()
    screens = [[classes.line(row, line) for row, line in enumerate(frame.splitlines())] for frame in frames]
    height = max(len(screen) for screen in screens)
    rows = [[screen[row] if row < len(screen) else "" for screen in screens] for row in range(height)]
    fixed = "".join(row[0] for row in rows if len(set(row)) == 1)
    changing = [row for row in rows if len(set(row)) > 1]
    whole_s = SHOWN_S * len(frames)
    last = len(frames) - 1
    groups = (
        f'<g class="frame{" last" * (number == last)}" style="animation-delay:{SHOWN_S * number - whole_s:g}s">'
        f"{''.join(row[number] for row in changing)}</g>\n"
        for number in range(len(frames))
    )
    size = round(COLUMNS * CELL + 2 * MARGIN), (height + 1) * LINE + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}">\n'
        f"<title>The live view of make up</title>\n"
        f"<style>{STYLE % (whole_s, 100 / len(frames))}{classes.style()}</style>\n"
        f'<rect width="{size[0]}" height="{size[1]}" rx="8" fill="{SVG_EXPORT_THEME.background_color.hex}"/>\n'
        f"{fixed}\n{''.join(groups)}</svg>\n"
    )


class Classes:
    """The classes of the styles that occur."""

    def __init__(self) -> None:
        self._console = Console(width=COLUMNS, color_system="truecolor", force_terminal=True)
        self._by_declaration: dict[str, str] = {}

    def line(self, row: int, line: str) -> str:
        """Return a line of the terminal: a text, with a span for each word or words of one style."""
        spans = "".join(self._spans(line))
        return f'<text y="{MARGIN + (row + 1) * LINE}">{spans}</text>\n' if spans else ""

    def style(self) -> str:
        """Return the rules of all classes."""
        return "".join(f".{name} {{ {text} }}\n" for text, name in self._by_declaration.items())

    def _spans(self, line: str) -> Iterator[str]:
        column = 0
        for segment in Text.from_ansi(line).render(self._console):
            for words in re.finditer(r"\S+(?: \S+)*", segment.text):
                x = MARGIN + CELL * (column + cell_len(segment.text[: words.start()]))
                yield f'<tspan x="{x:g}" class="{self._name(segment.style)}">{escape(words[0])}</tspan>'
            column += cell_len(segment.text)

    def _name(self, style: Style | None) -> str:
        color = style.color.get_truecolor(SVG_EXPORT_THEME) if style and style.color else None
        text = f"fill: {(color or SVG_EXPORT_THEME.foreground_color).hex}"
        text += "; font-weight: 700" * bool(style and style.bold) + "; opacity: .6" * bool(style and style.dim)
        return self._by_declaration.setdefault(text, f"c{len(self._by_declaration)}")


if __name__ == "__main__":
    main()
