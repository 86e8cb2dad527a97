"""Opens the console where somebody would see it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DESKTOPS = ("DISPLAY", "WAYLAND_DISPLAY")


def browsing(environ: Mapping[str, str], *, wanted: bool, terminal: bool, platform: str = sys.platform) -> bool:
    """Whether to open a page: somebody sits at the terminal, and has a desktop that is not another machine's."""
    if not (wanted and terminal) or "SSH_CONNECTION" in environ:
        return False
    return platform == "darwin" or any(environ.get(name) for name in DESKTOPS)


def browser(environ: Mapping[str, str], *, wanted: bool) -> Callable[[str], object]:
    """What opens a page, or does nothing."""
    return (lambda page: opened(page, environ)) if wanted else lambda _page: None


def opened(page: str, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Leave it to a process of its own to open a page.

    A desktop may have none but a browser for terminals, which would wait for keys in the terminal that the live view
    needs: so it gets no terminal, and without the name of one Python and most desktops do not even try.
    """
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(
        (sys.executable, "-m", "webbrowser", page),
        env={name: value for name, value in environ.items() if name != "TERM"},
        stdin=nowhere,
        stdout=nowhere,
        stderr=nowhere,
        start_new_session=True,
    )
