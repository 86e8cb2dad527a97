"""A part of the system, as data: how to start it, how to know that it is ready, and what to do when it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from services.launcher.restarts import RestartPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from services.launcher.readiness import Readiness


@dataclass(frozen=True)
class ProcessSpec:
    """One process. `does` tells a person what it is, when it is ready."""

    name: str
    does: str
    command: tuple[str, ...]
    ready: Readiness
    env: Mapping[str, str] = field(default_factory=dict)
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    finishes: bool = False
    """Exit code 0 means that it is done; of any other part that it died."""
    foreground: bool = False
    """It has the terminal, and Ctrl-C; when it finishes, the person wants to stop."""
    page: str | None = None
    """The address of a page that people look at."""
    patience_s: float = 120.0
    """How long it may take to be ready."""
    stop_within_s: float = 15.0
    """How long it may take to stop; then it is killed."""
