"""Applications run together if each has states and topics of its own, and all agree on the events that they share."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel

from contracts import (
    AlertRule,
    Alerts,
    Api,
    Application,
    Count,
    DeclarationError,
    Derived,
    Emit,
    Enriched,
    Event,
    FromKey,
    FromTimestamp,
    Latest,
    NamedState,
    Raw,
    State,
    Suite,
    Table,
    Topics,
    Webhook,
    enrichment,
)
from contracts.model.application import load
from contracts.model.suite import load_suite


class Ping(Event):
    speed: float | None = None


class Trips(State, lifetime=timedelta(hours=1)):
    trips: Annotated[int, Count(of="speed")]


class Days(State, lifetime=timedelta(days=30)):
    trips: Annotated[int, Count(of="speed")]


class Owner(BaseModel):
    name: str


class Owned(State):
    speed: Annotated[float | None, Latest()]
    owner: Annotated[Owner | None, Enriched()]


@enrichment(api="a")
async def owner(api: Api, speed: float) -> Owner:
    return await api.get("/{speed}", Owner, speed=speed)


def of(name: str, topics: Topics, state: type[State] = Trips, **more: object) -> Application:
    return Application(name=name, event=Ping, state=state, topics=topics, **more)  # type: ignore[arg-type]


TRIPS = of("trips", Topics())
DAYS = of("days", Topics(prefix="days.", events="events"), Days)
PINGS = Raw("pings", lambda record: json.loads(record.value), {"device_id": FromKey(), "ts": FromTimestamp()})


def test_a_suite_has_the_topics_of_its_applications_and_the_shared_one_once() -> None:
    topics = {topic.name: topic for topic in Suite(TRIPS, DAYS).catalogue()}
    outputs = {"feedback", "snapshots", "dead_letters", "query_instances"}
    assert topics.keys() == {"events"} | outputs | {f"days.{output}" for output in outputs}
    assert topics["snapshots"].retention == timedelta(days=1)


@pytest.mark.parametrize("order", [(TRIPS, DAYS), (DAYS, TRIPS)])
def test_shared_events_are_kept_for_the_longest_window(order: tuple[Application, Application]) -> None:
    (events,) = (topic for topic in Suite(*order).catalogue() if topic.name == "events")
    assert events.retention == timedelta(days=30) + Days.grace


def test_a_replay_keeps_shared_events_without_limit() -> None:
    suite = Suite(
        of("trips", Topics(replay=True)), of("days", Topics(prefix="days.", events="events", replay=True), Days)
    )
    (events,) = (topic for topic in suite.catalogue() if topic.name == "events")
    assert events.config()["retention.ms"] == "-1"


def _derives(name: str) -> Derived:
    return Derived(name, Owner, lambda _: ())


def _alerting(name: str, alerts: str) -> Application:
    rules = Table(f"rules-of-{alerts}", AlertRule)
    called = Alerts(alerts, rules, lambda snapshot, _: bool(snapshot.state), webhook=Webhook("pager"))
    return of(name, Topics(prefix=f"{name}."), tables=(rules,), alerts=(called,))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Suite, r"Write Suite\(application"),
        (lambda: Suite(TRIPS, TRIPS), "state 'trips': is declared twice"),
        (
            lambda: Suite(TRIPS, of("days", Topics(prefix="b."), states=(NamedState("trips", "t", {}, 1),))),
            "state 'trips': is declared twice",
        ),
        (lambda: Suite(TRIPS, of("days", Topics())), r"trips and days both write the topic 'feedback'.*prefix"),
        (
            lambda: Suite(
                of("trips", Topics(prefix="a."), derived=(_derives("b.c"),)),
                of("days", Topics(prefix="a.b."), derived=(_derives("c"),)),
            ),
            "both write the topic 'a.b.c'",
        ),
        (
            lambda: Suite(TRIPS, of("days", Topics(prefix="days.", events="snapshots"))),
            "days reads the topic 'snapshots' as events, and trips writes it",
        ),
        (
            lambda: Suite(TRIPS, of("days", Topics(prefix="days.", events="events", replay=True))),
            r"trips declares replay=False for the topic 'events', days True. Write the same Topics\(replay=…\)",
        ),
        (
            lambda: Suite(TRIPS, of("days", Topics(prefix="days.", events="events", partitions=9))),
            "partitions=4 for the topic 'events', days 9",
        ),
        (
            lambda: Suite(of("trips", Topics(), raw=(PINGS,)), of("days", Topics(prefix="days."), Days, raw=(PINGS,))),
            "trips and days decode the topic 'pings' to different topics of events",
        ),
        (
            lambda: Suite(_alerting("a", "b-c"), _alerting("a-b", "c")),
            "the webhooks of 'b-c' of a and of 'c' of a-b have one consumer group, 'a-b-c-webhook'",
        ),
    ],
)
def test_applications_that_disturb_each_other_are_refused(make: Callable[[], Suite], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        make()


def test_a_close_state_has_no_enrichments() -> None:
    assert of("trips", Topics(), emit=Emit.CLOSE).emit is Emit.CLOSE
    with pytest.raises(DeclarationError, match=r"Emit\.CLOSE.*Write Emit\.EVENT or Emit\.BATCH"):
        of("owned", Topics(), Owned, enrichments=(owner,), emit=Emit.CLOSE)


def test_an_interval_of_no_time_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"emit_interval.*positive"):
        of("trips", Topics(), emit=Emit.BATCH, emit_interval=timedelta(0))


def test_a_reference_names_a_suite_or_one_application_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "both_applications.py").write_text(
        f"from contracts import Suite\nfrom {__name__} import DAYS as app, TRIPS as trips\nsuite = Suite(trips, app)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert load_suite("both_applications:suite").applications == (TRIPS, DAYS)
    assert load_suite("both_applications:trips").applications == (TRIPS,)
    assert load_suite("both_applications").applications == (DAYS,)
    with pytest.raises(DeclarationError, match="is not an Application"):
        load("both_applications:suite")


def test_several_applications_do_not_share_a_named_group() -> None:
    assert Suite(TRIPS).group(TRIPS, "fleet") == "fleet"
    both = Suite(TRIPS, DAYS)
    assert [both.group(application, "fleet") for application in both.applications] == ["fleet-trips", "fleet-days"]


@pytest.mark.parametrize("reference", ["contracts:State", "contracts.model.suite:none", "nothing.at.all"])
def test_a_reference_to_neither_is_refused(reference: str) -> None:
    with pytest.raises(DeclarationError, match=r"package\.module:name"):
        load_suite(reference)
