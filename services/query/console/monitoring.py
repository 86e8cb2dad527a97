"""Finds the components of an application that have no scrape target, so that their health is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contracts.api.loop import UnmonitoredComponent
from services.query.console.components import works_for

if TYPE_CHECKING:
    from collections.abc import Collection

    from contracts import Application

SETTING = "STATELOOP_SCRAPE_TARGETS"


def unmonitored(application: Application, kinds: Collection[str]) -> tuple[UnmonitoredComponent, ...]:
    """Return the components of this application for which no scrape target of these kinds is set.

    Only the workers report on the APIs. Kafka and the query service itself are always monitored.
    """
    found = [] if "job" in kinds else [_missing("job", "The job is", "job")]
    if works_for("enrichment", application) and "enrichment" not in kinds:
        found.append(_missing("workers", "The enrichment workers are", "enrichment"))
        found += [
            _missing(f"api:{name}", f"The API {name} is", "enrichment") for name in sorted(set(application.called_apis))
        ]
    if works_for("derive", application) and "derive" not in kinds:
        found.append(_missing("derive", "The derive worker is", "derive"))
    return tuple(found)


def _missing(component: str, subject: str, kind: str) -> UnmonitoredComponent:
    source = " The workers report its health." if component.startswith("api:") else ""
    return UnmonitoredComponent(
        component=component,
        message=f"{subject} not monitored: {SETTING} has no scrape target of kind {kind}.{source}",
        action=f'Set {SETTING}=\'{{"{kind}": ["http://host:port"]}}\' for the query service, with the other kinds',
    )
