from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from contracts import (
    Application,
    Count,
    DeclarationError,
    Derived,
    Emit,
    Event,
    NamedState,
    QueryOptions,
    State,
    Topics,
)
from contracts.records.named_states import named
from examples.scooters.application import Ping, Place, Scooter, place, rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contracts.wire import Snapshot


class Ride(Event):
    rider: str
    ts: datetime


class Rides(State, key="rider", window=timedelta(hours=1)):
    count: Annotated[int, Count()]


def _streets(snapshot: Snapshot) -> Iterable[tuple[str, Place]]:
    result = snapshot.enrichments["place"].result
    return [("street", Place.model_validate(result))]


def _application(**parts: Any) -> Application:
    return Application(**{"name": "scooters", "event": Ping, "state": Scooter, "enrichments": (place, rule), **parts})


def test_the_state_of_the_application_can_be_queried_by_its_name() -> None:
    state = named(_application(query=QueryOptions(history=3, indexes=("state.speed",))))["scooters"]
    assert (state.topic, state.partitions, state.window_start) == ("snapshots", 4, "first_seen")
    assert (state.lifetime, state.query.history) == (timedelta(hours=1), 3)
    assert "state" in state.schema["properties"]
    assert (state.key, state.windowed) == ("device_id", True)


@pytest.mark.parametrize(
    ("path", "write"),
    [
        ("state.sped", "Write one of these: state."),
        ("staet.speed", "state"),
        ("enrichments.place.result.stret", "enrichments.place.result.street"),
        ("state.speed.unit", "Write one of these: another field"),
        ("enrichments.palce.status", "enrichments.place"),
    ],
)
def test_an_index_of_an_unknown_field_is_refused_with_the_known_ones(path: str, write: str) -> None:
    with pytest.raises(DeclarationError, match="is no field of its records") as refused:
        named(_application(query=QueryOptions(indexes=("state.speed", path))))
    assert write in str(refused.value)
    assert f"QueryOptions(indexes={path!r}) of scooters" in str(refused.value)


def test_an_index_of_a_field_in_an_answer_or_a_derived_value_is_accepted() -> None:
    derived = Derived("streets", Place, _streets, query=QueryOptions(indexes=("value.street", "device_id")))
    own = QueryOptions(indexes=("enrichments.place.status", "enrichments.place.result.street"))
    assert named(_application(derived=(derived,), query=own))["streets"].query.indexes == ("value.street", "device_id")


def test_derived_and_other_topics_are_states_too() -> None:
    other = NamedState(name="weather", topic="weather.hourly", schema={}, partitions=2, window_start=None, version=None)
    derived = Derived("streets", Place, _streets)
    states = named(_application(derived=(derived,), states=(other,)))
    assert list(states) == ["scooters", "streets", "weather"]
    assert states["streets"].topic == "streets"
    assert (states["streets"].key, states["streets"].lifetime) == ("key", timedelta(hours=1))
    assert states["streets"].schema["properties"]["value"] == {"$ref": "#/$defs/Place"}


@pytest.mark.parametrize("replay", [False, True])
def test_windows_expire_by_the_clock_unless_the_topics_have_the_times_of_a_replay(*, replay: bool) -> None:
    derived = Derived("streets", Place, _streets)
    states = named(_application(derived=(derived,), topics=Topics(replay=replay), skew=timedelta(minutes=2)))
    for state in states.values():
        assert state.expires_by_clock is not replay
        assert state.grace == Scooter.grace + timedelta(minutes=2), "what the job takes records for"


def test_only_windows_that_the_job_emits_closed_are_final_when_published() -> None:
    app = Application(name="rides", event=Ride, state=Rides, emit=Emit.CLOSE)
    assert named(app)["rides"].emits_closed
    assert not named(_application())["scooters"].emits_closed


def test_topics_of_queries_are_compacted() -> None:
    app = _application(
        derived=(Derived("streets", Place, _streets), Derived("soon", Place, _streets, timedelta(days=1)))
    )
    streets, soon, instances = app.topics.query_topics(app.state, app.derived)
    assert (streets.cleanup, streets.retention) == ("compact,delete", timedelta(days=1))
    assert (soon.cleanup, soon.retention) == ("compact,delete", timedelta(days=2))
    assert instances.name == "query_instances"


@pytest.mark.parametrize("name", ["scooters", "Streets", "a/b", "", "1st", "a" * 64])
def test_name_is_refused(name: str) -> None:
    with pytest.raises(DeclarationError, match=r"Name each state once|lower-case"):
        _application(derived=(Derived(name, Place, _streets),))


@pytest.mark.parametrize(
    "options",
    [{"history": 0}, {"indexes": ("",)}, {"indexes": ("a..b",)}, {"stale_after": timedelta(-1)}],
)
def test_query_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match="Write"):
        QueryOptions(**options)
