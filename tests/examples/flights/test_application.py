from contracts.model.application import load
from contracts.model.topics import Stamp
from examples.flights.application import app


def test_it_is_found_by_its_name() -> None:
    assert load("examples.flights.application:app") is app


def test_each_enrichment_comes_after_its_dependencies() -> None:
    names = list(app.by_name)
    assert sorted(names) == sorted(app.slots)
    assert names.index("route") > max(names.index("origin_airport"), names.index("dest_airport"))
    assert names.index("performance") > max(names.index(need) for need in ("route", "aircraft", "weather"))


def test_old_data_brings_its_own_time() -> None:
    catalogue = {topic.name: topic for topic in app.topics.catalogue(app.state)}
    assert catalogue[app.topics.events].stamp is Stamp.PRODUCER
