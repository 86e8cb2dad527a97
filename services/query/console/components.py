"""The components of an application's loop, and the processes that work for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contracts import Application
    from contracts.api.loop import Component

OPTIONAL: dict[str, Component] = {"enrichment": "workers", "derive": "derive"}
"""The component that processes of a kind belong to. Processes of any other kind serve all applications."""


def components(application: Application) -> tuple[Component, ...]:
    """Return the components that this application has. Enrichments need feedback; webhooks need the workers alone."""
    found: list[Component] = ["devices", "events", "job", "snapshots", "query", "dead_letters"]
    if application.enrichments:
        found.append("feedback")
    if application.called_apis:
        found += ["workers", "apis"]
    if application.derived_names:
        found.append("derive")
    return tuple(found)


def works_for(kind: str, application: Application) -> bool:
    """Return whether processes of this kind are part of the application's loop."""
    return kind not in OPTIONAL or OPTIONAL[kind] in components(application)
