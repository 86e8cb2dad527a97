"""Derived states with tables, against their function on the last snapshots and rows, while workers are killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from contracts import Application, DeclarationError, Derived
from contracts.records.named_states import named
from contracts.wire import DeadLetter, DerivedRecord, Snapshot
from contracts.wire.window_key import window_key
from tests.services.derive.alerted import LIMITS, Limit, Reading, Sensor
from tests.services.derive.crashing import AT
from tests.services.derive.test_alerts import Story

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Margin(BaseModel):
    """The distance of a value below a limit."""

    margin: int


def margins(snapshot: Snapshot, tables: Mapping[str, Mapping[str, BaseModel]]) -> Iterator[tuple[str, Margin]]:
    """By key and limit. Raises for a snapshot without a value."""
    for name, limit in tables["limits"].items():
        assert isinstance(limit, Limit)
        yield f"{snapshot.device_id} {name}", Margin(margin=limit.high - snapshot.state["value"])


APP = Application(
    name="sensors",
    event=Reading,
    state=Sensor,
    deduplicate=False,
    tables=(LIMITS,),
    derived=(Derived("margins", Margin, margins, tables=(LIMITS,)),),
)


OF_A_LIST = "TypeError: unsupported operand type(s) for -: 'int' and 'list'"


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 1 << 32), st.booleans())
def test_the_last_record_of_each_window_is_of_the_last_snapshot_and_row(seed: int, waits: bool) -> None:  # noqa: FBT001
    story = Story(seed)
    story.broker.application = APP
    faults = story.kill, story.refuse, story.stop
    story.kill, story.refuse, story.stop = (
        fault / 8 for fault in faults
    )  # a slice has a record for each window and row
    story.run(waits=waits)
    last = {}
    for one in story.broker.topics["margins"]:
        record = DerivedRecord.model_validate(orjson.loads(one.value or b""))
        last[record.key, window_key(record.device_id, record.first_seen).decode()] = record.value["margin"]
    for window, (_, value, _) in story.oracle.states.items():
        for name, (_, limit) in story.oracle.rules.items():
            assert last[f"{window.partition('@')[0]} {name}", window] == limit.high - value
    assert not story.broker.topics["too_high"]


@pytest.mark.parametrize(
    ("state", "detail"),
    [
        (b"{}", "KeyError: 'value'"),
        (b'{"value":' + b"[" * 253 + b"]" * 253 + b"}", OF_A_LIST),
        (b'{"value":' + b"[" * 300 + b"]" * 300 + b"}", OF_A_LIST),
    ],
)
def test_a_function_that_raises_for_present_states_makes_a_dead_letter(state: bytes, detail: str) -> None:
    """A state that is nested deeply can be read, and not written."""
    story = Story(0)
    broker = story.broker
    story.kill = story.refuse = 0.0
    broker.application = APP
    for key in ("a", "b"):
        snapshot = Snapshot(device_id=key, first_seen=AT, version=1, as_of=AT, state={"value": 1})
        broker.append("snapshots", window_key(key, AT), snapshot.encode().replace(b'{"value":1}', state))
    broker.run()
    assert not broker.topics["dead_letters"], "without a row the function looks at nothing"
    while not story.oracle.rules:
        story.change_rule()
    broker.run()
    (dead_letter,) = (
        DeadLetter.model_validate(orjson.loads(one.value or b"")) for one in broker.topics["dead_letters"]
    )
    assert (dead_letter.reason, dead_letter.detail) == ("not_derived", detail)


def test_its_records_are_in_the_order_of_their_offsets() -> None:
    state = named(APP)["margins"]
    assert (state.epoch, state.version, state.window_start) == ("layout", None, "first_seen")
    assert state.copied_from == "copied_from"


def test_a_table_that_is_not_declared_is_refused() -> None:
    with pytest.raises(DeclarationError, match="'limits' is not declared"):
        Application(name="sensors", event=Reading, state=Sensor, deduplicate=False, derived=APP.derived)
