"""The specification of one process: its command, its readiness condition, and its restart policy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from services.tools.launcher.restarts import RestartPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.tools.launcher.readiness import Readiness


@dataclass(frozen=True)
class ProcessSpec:
    """One process. `does` is the line that is printed when it is ready."""

    name: str
    does: str
    command: tuple[str, ...]
    ready: Readiness
    env: Mapping[str, str] = field(default_factory=dict)
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    finishes: bool = False
    """Exit code 0 means that it is done; any other process has died then."""
    foreground: bool = False
    """Whether it has the terminal and receives Ctrl-C; the launch stops when it exits."""
    page: str | None = None
    """The address of its page, to open in a browser."""
    patience_s: float = 120.0
    """The limit of the time until it is ready."""
    stop_within_s: float = 15.0
    """The limit of the time until it has stopped; then it is killed."""
