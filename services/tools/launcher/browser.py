"""Opens the console in a browser, on a desktop."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DESKTOPS = ("DISPLAY", "WAYLAND_DISPLAY")


def browsing(environ: Mapping[str, str], *, wanted: bool, terminal: bool, platform: str = sys.platform) -> bool:
    """Return whether to open a page: on an interactive terminal of a local desktop."""
    if not (wanted and terminal) or "SSH_CONNECTION" in environ:
        return False
    return platform == "darwin" or any(environ.get(name) for name in DESKTOPS)


def browser(environ: Mapping[str, str], *, wanted: bool) -> Callable[[str], object]:
    """Return the function that opens a page; it does nothing unless `wanted`."""
    return (lambda page: opened(page, environ)) if wanted else lambda _page: None


def opened(page: str, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Open a page from a separate process.

    The process has no terminal and no TERM, so that a text browser cannot take the terminal of the live view.
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
