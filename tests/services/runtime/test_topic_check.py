"""The check of topics, with a broker in memory."""

from __future__ import annotations

import pytest

from services.runtime.errors import TopicsMissingError
from services.runtime.topic_check import EVERY_S, PATIENCE_S, RECHECK_S, TopicCheck

TOPICS = ("snapshots", "feedback")


class Broker:
    """Lists these topics, or does not answer. `looks` counts."""

    def __init__(self) -> None:
        self.now = 100.0
        self.topics: set[str] | None = None
        self.looks = 0

    def check(self, checked: TopicCheck, after_s: float = EVERY_S) -> None:
        self.now += after_s
        checked.check(self.listed)

    def listed(self) -> set[str] | None:
        self.looks += 1
        return self.topics


@pytest.fixture
def fake() -> Broker:
    return Broker()


@pytest.fixture
def checked(fake: Broker) -> TopicCheck:
    return TopicCheck(TOPICS, "here:9092", lambda: None, lambda: fake.now)


def test_the_check_waits_for_a_broker_that_does_not_answer(fake: Broker, checked: TopicCheck) -> None:
    fake.check(checked)
    fake.check(checked, 100 * PATIENCE_S)
    fake.topics = {"snapshots"}
    fake.check(checked)
    fake.check(checked, PATIENCE_S - EVERY_S)
    with pytest.raises(TopicsMissingError, match="here:9092 does not have the topics feedback: run"):
        fake.check(checked)


def test_topics_that_exist_are_looked_up_rarely(fake: Broker, checked: TopicCheck) -> None:
    fake.topics = set()
    fake.check(checked)
    fake.topics = {*TOPICS, "another"}
    fake.check(checked)
    fake.check(checked, RECHECK_S - EVERY_S)
    assert fake.looks == 2
    fake.check(checked)
    assert fake.looks == 3


def test_a_topic_that_is_deleted_later_is_a_problem_until_it_is_created_again(fake: Broker) -> None:
    owners = list[float]()
    checked = TopicCheck(TOPICS, "here:9092", lambda: owners.append(fake.now), lambda: fake.now)
    fake.topics = {*TOPICS}
    fake.check(checked)
    fake.topics = {"snapshots"}
    fake.check(checked, RECHECK_S)
    fake.check(checked, PATIENCE_S - EVERY_S)
    assert checked.problem is None, "a broker that was started just now lists a topic after some time"
    fake.check(checked)
    assert "no longer has feedback: run `stateloop topics`" in str(checked.problem)
    fake.topics = None
    fake.check(checked)
    assert str(checked.problem).startswith("the broker"), "while no broker answers, nothing is known"
    fake.topics = {*TOPICS}
    fake.check(checked)
    assert (checked.problem, len(owners)) == (None, 2), "another application may have created it"


def test_the_broker_is_queried_once_a_second(fake: Broker, checked: TopicCheck) -> None:
    for _ in range(5):
        fake.check(checked, EVERY_S / 2)
    assert fake.looks == 3
