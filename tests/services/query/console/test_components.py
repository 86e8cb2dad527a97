"""The loop of an application consists of what it declares, and its health depends on that alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from examples.departures.application import departures
from examples.flights.application import app as flights
from examples.weather.application import notifying
from services.query.console.components import components, works_for
from services.query.console.metrics_history import MetricsHistory
from tests.services.query.console.departing import two_at_work

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


def test_the_response_has_the_components_and_nothing_of_others() -> None:
    history = MetricsHistory(departures, 2.0)
    for at in (0, 2):
        history.record(two_at_work(at, until=2))
    found = history.answer(0)
    assert found is not None
    assert {*found.components} == STREAM
    assert {*found.topics} == {"events", "snapshots", "dead_letters"}
    assert len(found.job) == 1
    assert (found.workers, found.others, found.apis) == ((), {}, ())
    assert {(one.feedback, one.calls, one.worker_lag) for one in found.history} == {(None, None, None)}
