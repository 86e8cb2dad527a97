"""Declarations of windowed states, composite keys and events without a device."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

import pytest
from pydantic import Field

from contracts import Application, BaseEvent, Count, Coverage, DeclarationError, Event, Latest, State
from contracts.model.named_state import CoverageField
from contracts.records.named_states import named

VIEWS = Annotated[int, Count()]
HOUR, QUARTER = timedelta(hours=1), timedelta(minutes=15)


class View(BaseEvent):
    page: str
    country: str
    path: str | None = None


class Identified(View):
    event_id: str


def state(name: str = "views", annotation: Any = VIEWS, **arguments: Any) -> type[State]:
    """A state with one field."""
    body = {"__annotations__": {name: annotation}, "__module__": __name__}
    return type("Views", (State,), body, **arguments)


def of(state: type[State], event: type[BaseEvent] = View, **options: Any) -> Application:
    return Application(**{"name": "views", "event": event, "state": state, "deduplicate": False, **options})


def test_windows_follow_each_other_unless_they_hop() -> None:
    tumbling, hopping = state(window=HOUR), state(window=HOUR, every=QUARTER, offset=timedelta(minutes=5))
    assert (tumbling.window, tumbling.every, tumbling.offset) == (HOUR, HOUR, timedelta(0))
    assert (hopping.window, hopping.every, hopping.offset) == (HOUR, QUARTER, timedelta(minutes=5))
    assert tumbling.lifetime == hopping.lifetime == HOUR, "kept_for is window and grace"
    assert tumbling.is_windowed
    assert hopping.is_windowed


def test_a_state_with_a_lifetime_has_no_windows_of_the_clock() -> None:
    with_lifetime = state(lifetime=HOUR)
    assert (with_lifetime.is_windowed, with_lifetime.window, with_lifetime.every) == (False, None, None)


def test_a_subclass_inherits_the_arguments_and_may_change_its_span() -> None:
    class Hourly(State, key="page", window=HOUR, every=QUARTER, offset=timedelta(minutes=5), grace=QUARTER):
        views: Annotated[int, Count()]

    class More(Hourly):
        last: Annotated[str | None, Latest(of="path")]

    class Daily(Hourly, window=timedelta(days=1)):
        pass

    class Expiring(Hourly, lifetime=HOUR):
        pass

    assert (More.keys, More.window, More.every, More.grace) == (("page",), HOUR, QUARTER, QUARTER)
    assert (Daily.every, Daily.lifetime, Daily.offset) == (timedelta(days=1), timedelta(days=1), timedelta(minutes=5))
    assert (Expiring.is_windowed, Expiring.every, Expiring.offset) == (False, None, timedelta(0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": HOUR, "lifetime": HOUR}, "has a window and a lifetime"),
        ({"window": timedelta(0)}, "window and grace must be positive"),
        ({"window": HOUR, "grace": timedelta(0)}, "Write window="),
        ({"every": QUARTER}, "has every= without window="),
        ({"offset": QUARTER}, "has offset= without window="),
        ({"window": HOUR, "every": timedelta(minutes=25)}, "does not divide the window. Write every="),
        ({"window": HOUR, "every": timedelta(hours=2)}, "does not divide the window"),
        ({"window": HOUR, "every": timedelta(0)}, "does not divide the window"),
        ({"window": HOUR, "every": timedelta(seconds=30)}, "puts an event into 120 windows"),
        ({"window": HOUR, "offset": HOUR}, r"Write offset=timedelta\(0\)"),
        ({"window": HOUR, "offset": -QUARTER}, r"Write offset=timedelta\(seconds=2700\)"),
        ({"window": HOUR, "key": ()}, "has the key"),
        ({"window": HOUR, "key": ("page", "page")}, "Name each field of the key once"),
    ],
)
def test_a_wrong_window_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        state(**arguments)


@pytest.mark.filterwarnings("ignore:Field name")
@pytest.mark.parametrize("name", ["key", "keys", "window", "offset", "where"])
def test_a_field_with_the_name_of_an_argument_is_refused(name: str) -> None:
    with pytest.raises(DeclarationError, match=f"Choose another name, and name the event's field with of='{name}'"):
        state(name, Annotated[str | None, Latest()])


def test_a_windowed_state_needs_only_a_time_and_its_key() -> None:
    application = of(state(key=("page", "country"), window=HOUR))
    shape = application.event_shape.model_json_schema()["properties"]
    assert {name: (shape[name]["minLength"], shape[name]["maxLength"]) for name in ("page", "country")} == {
        "page": (1, 500),
        "country": (1, 500),
    }
    assert application.kept_for == timedelta(minutes=70)


@pytest.mark.parametrize("key", ["path", "ts", "nothing", ("page", "path")])
def test_a_key_that_is_no_required_text_is_refused(key: Any) -> None:
    with pytest.raises(DeclarationError, match=r"is not a required str of View\. Write class Views"):
        of(state(key=key, window=HOUR))


def test_the_default_key_is_that_of_a_device() -> None:
    with pytest.raises(DeclarationError, match="key='device_id'"):
        of(state(window=HOUR))


class Optional(View):
    first_seen: datetime | None = None


@pytest.mark.parametrize("event", [View, Optional])
def test_a_lifetime_needs_the_time_of_the_initial_event(event: type[BaseEvent]) -> None:
    with pytest.raises(DeclarationError, match="Write `first_seen: AwareDatetime`, or declare the state with window="):
        of(state(key="page", lifetime=HOUR), event)


class Numbered(View):
    event_id: int


@pytest.mark.parametrize("event", [View, Numbered])
def test_duplicates_of_an_event_are_known_by_its_identity(event: type[BaseEvent]) -> None:
    windowed = state(key="page", window=HOUR)
    with pytest.raises(DeclarationError, match="Write `event_id: str`, or Application"):
        of(windowed, event, deduplicate=True)
    assert of(windowed, Identified, deduplicate=True).deduplicate


def test_the_event_of_a_device_is_an_event() -> None:
    assert issubclass(Event, BaseEvent)
    assert set(BaseEvent.model_fields) == {"ts"}
    with pytest.raises(DeclarationError, match="has a default"):
        type("Wrong", (BaseEvent,), {"__annotations__": {"speed": float}, "speed": Field(default=0.0)})


def test_the_named_state_has_the_windows() -> None:
    hopping = named(of(state(key="page", window=HOUR, every=QUARTER)))["views"]
    assert (hopping.window, hopping.every, hopping.lifetime) == (HOUR, QUARTER, HOUR)
    assert hopping.event_offset is None, "the events of a key are in any partition"


def test_the_named_state_has_the_fields_with_coverage() -> None:
    covered = Annotated[list[list[int]], Coverage(step=timedelta(seconds=5))]
    windowed = named(of(state("covered", covered, key="page", window=HOUR)))["views"]
    assert windowed.coverage == (CoverageField("state.covered", timedelta(seconds=5)),)
    assert named(of(state(key="page", window=HOUR)))["views"].coverage == ()
    lived = state("covered", covered, lifetime=HOUR)
    assert named(of(lived, Event, deduplicate=True))["views"].coverage == ()
