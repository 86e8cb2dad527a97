from __future__ import annotations

from contracts.model.suite import load_suite
from contracts.model.topics import Stamp
from examples.departures.state import CarrierDay, Departures


def test_the_suite_reads_one_topic_of_events_and_writes_to_topics_of_each() -> None:
    suite = load_suite("examples.departures.application:suite")
    assert [application.name for application in suite.applications] == ["flights", "departures", "carriers"]
    assert {application.topics.events for application in suite.applications} == {"events"}
    outputs = [topic for application in suite.applications for topic in application.outputs]
    assert len(outputs) == len(set(outputs))


def test_old_data_brings_its_own_time() -> None:
    catalogue = {topic.name: topic for topic in load_suite("examples.departures.application:suite").catalogue()}
    assert catalogue["events"].stamp is Stamp.PRODUCER


def test_both_states_have_the_same_fields_in_windows_of_their_own() -> None:
    assert Departures.model_fields.keys() == CarrierDay.model_fields.keys()
    assert (Departures.keys, CarrierDay.keys) == (("origin",), ("carrier",))
