"""The components of an application's loop, the processes that work for it, and the components without a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.api.loop import UnmonitoredComponent

if TYPE_CHECKING:
    from collections.abc import Collection

    from contracts import Application
    from contracts.api.loop import Component

OPTIONAL: dict[str, Component] = {"enrichment": "workers", "derive": "derive"}
"""The component that processes of a kind belong to. Processes of any other kind serve all applications."""
SETTING = "STATELOOP_SCRAPE_TARGETS"


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


def unmonitored(application: Application, kinds: Collection[str]) -> tuple[UnmonitoredComponent, ...]:
    """Return the components of this application for which no scrape target of these kinds is set.

    Only the workers report on the APIs. Kafka and the query service itself are always monitored.
    """
    targets = [
        ("job", "job", "The job is"),
        ("enrichment", "workers", "The enrichment workers are"),
        *(("enrichment", f"api:{name}", f"The API {name} is") for name in sorted(set(application.called_apis))),
        ("derive", "derive", "The derive worker is"),
    ]
    return tuple(
        _unmonitored(kind, component, subject)
        for kind, component, subject in targets
        if kind not in kinds and works_for(kind, application)
    )


def _unmonitored(kind: str, component: str, subject: str) -> UnmonitoredComponent:
    source = " The workers report its health." if component.startswith("api:") else ""
    return UnmonitoredComponent(
        component=component,
        message=f"{subject} not monitored: {SETTING} has no scrape target of kind {kind}.{source}",
        action=f'Set {SETTING}=\'{{"{kind}": ["http://host:port"]}}\' for the query service, with the other kinds',
    )
