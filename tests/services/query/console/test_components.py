"""The loop of an application consists of what it declares, and its health depends on that alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from examples.departures.application import departures
from examples.flights.application import app as flights
from examples.weather.application import notifying
from services.query.console.components import components, works_for

if TYPE_CHECKING:
    from contracts import Application

STREAM = {"devices", "events", "job", "snapshots", "query", "dead_letters"}


@pytest.mark.parametrize(
    ("application", "others", "kinds"),
    [
        (flights, {"workers", "apis", "feedback", "derive"}, ["enrichment", "derive"]),
        (notifying, {"workers", "apis", "derive"}, ["enrichment", "derive"]),
        (departures, set(), []),
    ],
    ids=["enrichments", "a webhook", "neither"],
)
def test_an_application_has_the_components_that_it_declares(
    application: Application, others: set[str], kinds: list[str]
) -> None:
    found = components(application)
    assert {*found} == STREAM | others
    assert len(found) == len({*found})
    known = ("job", "query", "sink", "enrichment", "derive")
    assert [kind for kind in known if works_for(kind, application)] == ["job", "query", "sink", *kinds]
