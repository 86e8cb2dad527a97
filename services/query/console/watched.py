"""Which components of an application have no scrape target, so that nothing is known of their health: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.query.console.answers import NotWatched

if TYPE_CHECKING:
    from collections.abc import Collection

    from contracts import Application

SETTING = "STATELOOP_PARTS"


def not_watched(application: Application, kinds: Collection[str]) -> tuple[NotWatched, ...]:
    """The components of this application for which no target of these kinds is set.

    APIs are seen by the workers alone. Kafka and the query service itself are always watched.
    """
    found = [] if "job" in kinds else [_missing("job", "The job is", "job")]
    if application.enrichments and "enrichment" not in kinds:
        found.append(_missing("workers", "The enrichment workers are", "enrichment"))
        found += [_missing(f"api:{name}", f"The API {name} is", "enrichment") for name in sorted(application.apis)]
    if application.derived and "derive" not in kinds:
        found.append(_missing("derive", "The derive worker is", "derive"))
    return tuple(found)


def _missing(where: str, what: str, kind: str) -> NotWatched:
    seen = " The workers report its health." if where.startswith("api:") else ""
    return NotWatched(
        where=where,
        says=f"{what} not watched: {SETTING} has no scrape target of kind {kind}.{seen}",
        do=f'Set {SETTING}=\'{{"{kind}": ["http://host:port"]}}\' for the query service, beside the other kinds',
    )
