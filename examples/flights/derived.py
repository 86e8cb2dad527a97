"""States derived from flights: the last flight of each aircraft."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from examples.flights.results import LastFlight
from stateloop import Derived, QueryOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stateloop import Snapshot


def last_flight(snapshot: Snapshot) -> Iterator[tuple[str, LastFlight]]:
    """By tail number, which a flight has once it departed."""
    state, register = snapshot.state, snapshot.enrichments.get("aircraft")
    if tailnum := state.get("tailnum"):
        known = (register and register.result) or {}
        own = {name: state.get(name) for name in LastFlight.model_fields if name in state}
        yield (
            tailnum,
            LastFlight.model_validate(
                {
                    **own,
                    "flight": snapshot.device_id,
                    "manufacturer": known.get("manufacturer"),
                    "model": known.get("model"),
                }
            ),
        )


aircraft = Derived(
    "aircraft",
    LastFlight,
    last_flight,
    lifetime=timedelta(days=30),
    query=QueryOptions(indexes=("value.status", "value.dest")),
)
