"""A checkpoint fits a state model whatever the order of its fields, and a difference is named by its field."""

import json
from datetime import timedelta
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AwareDatetime, create_model

from contracts import Application, Count, Emit, Enriched, Event, Latest, Max, Min, Processor, State, Sum, field
from contracts.model.state import reducers
from contracts.reducers import Coverage, Reducer
from spark_app.query.lift import DELTA_IDS
from spark_app.query.state_model import StateField, StateModel, aggregates, state_model
from tests import everything, filtered, processed, traced
from tests.clicks import HOUR, MINUTE, Hops, Identified, application, hops
from tests.everything import Everything, Thing, app

CLICKS = Annotated[int, Count()]
DECLARED = {name: (Annotated[kind, reducer], ...) for name, (reducer, kind) in reducers(Everything).items()}


def declared(fields: dict[str, Any], event: type[Event] = Thing, **options: Any) -> Application:
    """Return an application whose state declares these fields, in their order."""
    enrichments = tuple(enrichment for enrichment in app.enrichments if enrichment.name in fields)
    state = create_model("Declared", __base__=State, **fields)
    return Application(name="declared", event=event, state=state, enrichments=enrichments, **options)


@given(st.permutations(sorted(DECLARED)))
def test_the_order_of_declaration_has_no_effect(order: list[str]) -> None:
    permuted = declared({name: DECLARED[name] for name in order})
    assert list(permuted.reducers) == order
    assert list(aggregates(permuted).items()) == list(aggregates(app).items())
    assert state_model(permuted) == state_model(app)
    assert state_model(permuted).digest() == state_model(app).digest()


def one(reducer: Reducer, kind: Any = float | None, event: type[Event] = Thing) -> StateModel:
    """Return the state model of a state of one field."""
    return state_model(declared({"speed": (Annotated[kind, reducer], ...)}, event))


class Whole(Event):
    """An event whose speed is a whole number."""

    speed: int | None = None


class Seen(Identified):
    """A click of a device that has an initial one."""

    first_seen: AwareDatetime


class Counted(Event):
    """An event with an offset of its own."""

    offset: int | None = None


def test_each_field_that_differs_is_named_with_its_difference() -> None:
    stored = state_model(app)
    less = state_model(declared({name: field for name, field in DECLARED.items() if name != "total"}))
    assert less.differences(stored) == ["the application removes the field total"]
    assert stored.differences(less) == ["the application adds the field total"]
    assert one(Latest(), int | None, Whole).differences(one(Latest())) == [
        "the type of the field speed changes from DOUBLE to BIGINT"
    ]
    assert one(Max()).differences(one(Min())) == ["the reducer of the field speed changes from Min() to Max()"]


def test_a_reducer_of_positions_in_the_window_is_named_with_the_size_of_the_windows() -> None:
    coverage = Coverage(step=MINUTE)
    stored, other = (lasting(lifetime, coverage, list[list[int]]) for lifetime in (HOUR, 2 * HOUR))
    change = f"from {coverage} in windows of 1:00:00 to {coverage} in windows of 2:00:00"
    assert other.differences(stored) == [f"the reducer of the field speed changes {change}"]
    assert lasting(2 * HOUR, Latest(), float | None).differences(lasting(HOUR, Latest(), float | None)) == []


def lasting(lifetime: timedelta, reducer: Reducer, kind: Any) -> StateModel:
    """Return the state model of a state of one field with this lifetime."""

    class Lasting(State, lifetime=lifetime):
        """A state without fields of its own."""

    state = create_model("Declared", __base__=Lasting, speed=(Annotated[kind, reducer], ...))
    return state_model(Application(name="declared", event=Thing, state=state))


def test_another_filter_of_a_reducer_is_another_model() -> None:
    stored, fast = one(Latest()), Latest(where=field("load") > 3)
    (difference,) = one(fast).differences(stored)
    assert difference.endswith("changes from Latest() to Latest(where=field('load') > 3)")
    assert one(fast).digest() != stored.digest()
    assert one(Latest(where=field("load") > 3)).differences(one(fast)) == []


def test_another_filter_of_the_state_is_another_model() -> None:
    other = state_model(filtered.app)
    assert other.differences(state_model(app)) == [
        f"the filter of its state is None, the application's is {filtered.WHERE.sql(str)}"
    ]
    assert other.digest() != state_model(app).digest()


def test_several_differences_are_all_reported() -> None:
    changed = DECLARED | {"mean": (Annotated[float, Sum(of="speed")], ...), "more": (Annotated[int, Count()], ...)}
    differences = state_model(declared({n: f for n, f in changed.items() if n != "on"})).differences(state_model(app))
    assert differences == [
        "the reducer of the field mean changes from Mean(of='speed') to Sum(of='speed')",
        "the application adds the field more",
        "the application removes the field on",
    ]


def test_a_reducer_of_another_expression_is_another_model(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = one(Latest())
    monkeypatch.setattr(Latest, "sql", lambda _, x: f"last({x})")
    (difference,) = one(Latest()).differences(stored)
    assert difference.startswith("the SQL of the field speed changes from max(CASE WHEN event_speed IS NOT NULL")
    assert difference.endswith("to last(event_speed)")
    assert one(Latest()).digest() != stored.digest()


def test_a_delta_named_otherwise_is_another_model(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = state_model(app)
    monkeypatch.setitem(DELTA_IDS, "event", "f_event_id")
    (difference,) = state_model(app).differences(stored)
    assert difference.startswith("the deduplication of its state is {'columns': 'first_seen, delta_id', 'event': ")


@pytest.mark.parametrize(
    ("arguments", "difference"),
    [
        ({"window": 2 * HOUR}, "the window of its state is 1:00:00, the application's is 2:00:00"),
        ({"every": 15 * MINUTE}, "the every of its state is 1:00:00, the application's is 0:15:00"),
        ({"offset": MINUTE}, "the offset of its state is 0:00:00, the application's is 0:01:00"),
        ({"key": ("page", "country")}, "the key of its state is page, the application's is page:country"),
        ({"lifetime": HOUR}, "the window of its state is 1:00:00, the application's is None"),
    ],
)
def test_other_windows_are_another_model(arguments: dict[str, Any], difference: str) -> None:
    def model(**arguments: Any) -> StateModel:
        state = type("Clicks", (State,), {"__annotations__": {"clicks": CLICKS}, "__module__": __name__}, **arguments)
        return state_model(Application(name="clicks", event=Seen, state=state))

    first = {} if "lifetime" in arguments else {"window": HOUR}
    changed, stored = model(**{"key": "page"} | first | arguments), model(key="page", window=HOUR)
    assert difference in changed.differences(stored)
    assert changed.digest() != stored.digest()
    assert StateModel.model_validate_json(changed.model_dump_json()) == changed


def test_the_grace_is_no_part_of_the_model() -> None:
    class Patient(Hops, grace=HOUR):
        """The same windows, for later records."""

    assert state_model(application(Patient)).differences(state_model(hops)) == []


def test_a_checkpoint_of_an_earlier_release_has_no_windows() -> None:
    stored = json.loads(state_model(app).model_dump_json())
    for name in ("window", "every", "offset"):
        assert stored.pop(name) is None
    assert StateModel.model_validate_json(json.dumps(stored)) == state_model(app)


def test_a_field_named_offset_is_not_the_offset_of_the_event() -> None:
    merged = aggregates(declared({"furthest": (Annotated[int | None, Max(of="offset")], ...)}, Counted))
    assert merged["event_offset"] == "max(events_offset)"
    assert "events_offset" not in merged["state_furthest"]


def test_another_order_of_the_same_aggregates_is_another_model() -> None:
    stored = state_model(app)
    turned = stored.model_copy(update={"aggregates": stored.aggregates[::-1]})
    (difference,) = stored.differences(turned)
    assert difference.startswith("this release merges its state by ['version: count(1)', ")


def test_a_change_outside_the_state_is_no_difference() -> None:
    assert one(Latest(of="speed")).differences(one(Latest())) == []
    assert one(Latest(of="speed")).digest() == one(Latest()).digest()
    assert state_model(everything.application(largest_record=100_000)).differences(state_model(app)) == []


@pytest.mark.parametrize("other", [everything.application(deduplicate=False), traced.app])
def test_each_other_part_of_the_model_is_compared(other: Application) -> None:
    assert state_model(other).differences(state_model(app))
    assert state_model(other).digest() != state_model(app).digest()


def test_the_model_of_an_enrichment_is_part_of_its_field() -> None:
    stored = state_model(app)
    assert "`cars`: ARRAY<STRING>" in stored.fields["owner"].type
    assert stored.fields["owner"].reducer == str(Enriched())
    narrow = stored.model_copy(update={"fields": stored.fields | {"owner": stored.fields["score"]}})
    (*_, difference) = [text for text in stored.differences(narrow) if "type" in text]
    assert difference.startswith("the type of the field owner changes from STRUCT<")


def test_a_processor_its_version_and_its_variables_are_part_of_the_model() -> None:
    stored = state_model(processed.tallies)
    next_one = Processor(processed.Tally, version=2)
    (difference,) = state_model(application(processed.Tallies, emit=Emit.BATCH, processor=next_one)).differences(stored)
    assert difference.startswith("the processor of its state is tests.processed.Tally, version 1, the application's is")
    assert stored.fields["countries"] == StateField(type="ARRAY<STRING>", reducer="", sql="")
    assert stored.model_copy(update={"aggregates": stored.aggregates[1:]}).differences(stored)
    assert state_model(application()).differences(stored)
