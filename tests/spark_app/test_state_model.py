"""A checkpoint fits a state model whatever the order of its fields, and a difference is named by its field."""

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import create_model

from contracts import Application, Count, Enriched, Event, Latest, Max, Min, State, Sum, field
from contracts.model.state import reducers
from contracts.reducers import Reducer
from spark_app.lift import DELTA_IDS
from spark_app.state_model import StateModel, aggregates, state_model
from tests import everything, traced
from tests.everything import Everything, Thing, app

DECLARED = {name: (Annotated[kind, reducer], ...) for name, (reducer, kind) in reducers(Everything).items()}


def declared(fields: dict[str, Any], event: type[Event] = Thing, **options: Any) -> Application:
    """Return an application whose state declares these fields, in their order."""
    enrichments = tuple(one for one in app.enrichments if one.name in fields)
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


def test_another_filter_of_a_reducer_is_another_model() -> None:
    stored, fast = one(Latest()), Latest(where=field("load") > 3)
    (difference,) = one(fast).differences(stored)
    assert difference.endswith("changes from Latest() to Latest(where=field('load') > 3)")
    assert one(fast).digest() != stored.digest()
    assert one(Latest(where=field("load") > 3)).differences(one(fast)) == []


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


def test_a_field_named_offset_is_not_the_offset_of_the_event() -> None:
    merged = aggregates(declared({"offset": (Annotated[int | None, Max()], ...)}, Counted))
    assert merged["event_offset"] == "max(events_offset)"
    assert "events_offset" not in merged["state_offset"]


def test_another_order_of_the_same_aggregates_is_another_model() -> None:
    stored = state_model(app)
    turned = stored.model_copy(update={"aggregates": stored.aggregates[::-1]})
    (difference,) = stored.differences(turned)
    assert difference.startswith("this release merges its state by ['version: count(1)', ")


def test_what_does_not_change_the_state_is_no_difference() -> None:
    assert one(Latest(of="speed")).differences(one(Latest())) == []
    assert one(Latest(of="speed")).digest() == one(Latest()).digest()
    assert state_model(everything.application(largest_record=10_000)).differences(state_model(app)) == []


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
