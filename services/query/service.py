"""Puts an instance together from its settings, and runs it until it is told to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.api.endpoints import Endpoints, Watched

if TYPE_CHECKING:
    from services.query.parts import Parts, Routed


def pieces(parts: Parts, watched: Watched) -> list[Routed]:
    """Everything that answers requests: a piece with routes of its own has its line here."""
    return [
        Endpoints(watched, parts.counts),
    ]
