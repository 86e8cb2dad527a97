"""Opens the console where somebody would see it."""

from __future__ import annotations

import sys
import webbrowser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DESKTOPS = ("DISPLAY", "WAYLAND_DISPLAY")


def browsing(environ: Mapping[str, str], *, wanted: bool, terminal: bool, platform: str = sys.platform) -> bool:
    """Whether to open a page: somebody sits at the terminal, and has a desktop that is not another machine's.

    Without a desktop Python opens a page in a browser for terminals, which the live view needs for itself.
    """
    if not (wanted and terminal) or "SSH_CONNECTION" in environ:
        return False
    return platform == "darwin" or any(environ.get(name) for name in DESKTOPS)


def browser(*, wanted: bool) -> Callable[[str], object]:
    """What opens a page, or does nothing."""
    return webbrowser.open if wanted else lambda _page: None
