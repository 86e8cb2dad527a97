"""The consumer groups of the workers: each application has one of its own."""

from __future__ import annotations

import pytest

from contracts import Application, Suite, Topics
from examples.departures.application import carriers
from examples.flights.application import app as flights
from examples.weather.application import notifying
from services.derive.settings import DeriveSettings
from services.enrichment.errors import ApiUnknownError
from services.enrichment.settings import EnrichmentSettings

CHARTERS = Application(
    name="charters",
    event=flights.event,
    state=flights.state,
    enrichments=flights.enrichments,
    topics=Topics(prefix="charters."),
)


@pytest.mark.parametrize(("named", "group"), [(None, "flights-enrichment"), ("fleet", "fleet")])
def test_the_workers_of_a_single_application_have_the_named_group(named: str | None, group: str) -> None:
    settings = EnrichmentSettings(application="", group=named)
    assert settings.groups(Suite(flights)) == {group: flights}


@pytest.mark.parametrize(
    ("named", "groups"),
    [(None, ["flights-enrichment", "charters-enrichment"]), ("fleet", ["fleet-flights", "fleet-charters"])],
)
def test_each_application_of_a_suite_with_enrichments_has_a_group(named: str | None, groups: list[str]) -> None:
    settings = EnrichmentSettings(application="", group=named)
    assert list(settings.groups(Suite(flights, carriers, CHARTERS))) == groups


def test_an_application_without_enrichments_has_a_worker_if_it_is_alone() -> None:
    assert EnrichmentSettings(application="").groups(Suite(carriers)) == {"carriers-enrichment": carriers}


def test_each_webhook_has_a_group_and_an_application_that_has_only_alerts_has_no_other_worker() -> None:
    settings, suite = EnrichmentSettings(application="", apis={"reference": "http://x"}), Suite(notifying)
    assert (list(settings.webhooks(suite)), settings.groups(suite)) == (["weather-temperature_changes-webhook"], {})
    assert settings.base_urls(suite.applications) == {"reference": "http://x"}
    with pytest.raises(ApiUnknownError, match="no address for reference"):
        EnrichmentSettings(application="").base_urls(suite.applications)
    named, both = EnrichmentSettings(application="", group="fleet"), Suite(flights, notifying)
    assert list(named.groups(both)) == ["fleet-flights"]
    assert list(named.webhooks(both)) == ["fleet-weather-temperature_changes"]
    assert list(named.webhooks(suite)) == ["fleet-temperature_changes"]


@pytest.mark.parametrize(
    ("suite", "named", "groups"),
    [
        (Suite(flights), None, {"flights-derive": flights}),
        (Suite(flights), "fleet", {"fleet": flights}),
        (Suite(flights, CHARTERS), None, {"flights-derive": flights}),
        (Suite(flights, CHARTERS), "fleet", {"fleet-flights": flights}),
        (Suite(CHARTERS), None, {}),
    ],
)
def test_only_applications_with_derived_states_have_derive_workers(
    suite: Suite, named: str | None, groups: dict[str, Application]
) -> None:
    assert DeriveSettings(application="", group=named).groups(suite) == groups
