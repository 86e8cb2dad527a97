"""Buffered state variables against PySpark's in memory: the same content after any writes and undone records."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DoubleType,
    FloatType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from spark_app.query.processor.handle import BufferedHandle
from spark_app.query.processor.values import ValueCheck, unsupported
from spark_app.query.processor.variables import BufferedList, BufferedMap, BufferedValue, StateStoreError
from tests.spark_app.query.processor.unused import Unused

NUMBER = StructType().add("n", LongType())
TEXT = StructType().add("t", StringType())
SCHEMAS = {"value": (NUMBER,), "list": (NUMBER,), "map": (TEXT, NUMBER)}
numbers = st.integers(0, 9)
texts = st.sampled_from(["a", "b", "c"])
times = st.integers(1, 6)
WRITES: dict[str, st.SearchStrategy[Any]] = {
    "update": numbers,
    "clear_value": st.none(),
    "put": st.lists(numbers, max_size=3),
    "append": numbers,
    "append_all": st.lists(numbers, max_size=3),
    "clear_list": st.none(),
    "set": st.tuples(texts, numbers),
    "remove": texts,
    "clear_map": st.none(),
    "register": times,
    "delete": times,
}
write = st.sampled_from(sorted(WRITES)).flatmap(lambda name: st.tuples(st.just(name), WRITES[name]))
record = st.tuples(st.lists(write, max_size=6), st.booleans(), st.booleans(), st.booleans())
"""The writes for a record; whether the processor then raises, the key's records end, and the content is read."""


class Variables:
    """The variables of a handle, and the writes by name."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.value = handle.getValueState("value", NUMBER)
        self.list = handle.getListState("list", NUMBER)
        self.map = handle.getMapState("map", TEXT, NUMBER)

    def write(self, name: str, argument: Any) -> None:
        writes = {
            "update": lambda n: self.value.update((n,)),
            "clear_value": lambda _: self.value.clear(),
            "put": lambda ns: self.list.put([(n,) for n in ns]),
            "append": lambda n: self.list.appendValue((n,)),
            "append_all": lambda ns: self.list.appendList([(n,) for n in ns]),
            "clear_list": lambda _: self.list.clear(),
            "set": lambda pair: self.map.updateValue((pair[0],), (pair[1],)),
            "remove": lambda t: self.map.removeKey((t,)),
            "clear_map": lambda _: self.map.clear(),
            "register": self.handle.registerTimer,
            "delete": self.handle.deleteTimer,
        }
        writes[name](argument)

    def content(self) -> Any:
        mapping = {key: self.map.getValue(key) for key in self.map.keys()}  # noqa: SIM118  # a method of PySpark's
        assert dict(self.map.iterator()) == mapping
        assert sorted(self.map.values()) == sorted(mapping.values())
        assert all(self.map.containsKey((key,)) == ((key,) in mapping) for key in "abc")
        assert self.value.exists() == (self.value.get() is not None)
        return self.value.get(), list(self.list.get()), mapping, sorted(self.handle.listTimers())


@given(st.lists(record, max_size=8))
@example([([("set", ("a", 0))], False, True, False), ([("remove", "a")], False, True, True)])
def test_buffered_variables_have_the_content_of_sparks_without_the_undone_records(records: list[Any]) -> None:
    store, expected = in_memory().handle, Variables(in_memory().handle)
    handle = BufferedHandle(store, SCHEMAS)
    buffered = Variables(handle)
    for writes, raises, ends, reads in records:
        for name, argument in writes:
            buffered.write(name, argument)
        if raises:
            handle.journal.undo()
        else:
            handle.journal.keep()
            for name, argument in writes:
                expected.write(name, argument)
        if ends:
            handle.flush()
            assert Variables(store).content() == expected.content()
        if reads:
            assert buffered.content() == expected.content()
            value, items, mapping, _ = expected.content()
            assert [variable.exists() for variable in (buffered.value, buffered.list)] == [
                value is not None,
                bool(items),
            ]
            in_store = Variables(store).map.exists()  # also if it is empty: PySpark's in memory, unlike Spark's own
            assert buffered.map.exists() in {bool(mapping), in_store}
    assert buffered.content() == expected.content()


def test_a_map_without_the_key_that_the_store_has_does_not_exist() -> None:
    handle = BufferedHandle(in_memory().handle, SCHEMAS)
    variables = Variables(handle)
    assert not variables.map.exists()
    variables.write("set", ("a", 3))
    handle.flush()
    assert variables.map.exists()
    variables.write("remove", "a")
    assert not variables.map.exists()
    variables.write("set", ("b", 3))
    assert variables.map.exists()
    variables.write("clear_map", None)
    assert not variables.map.exists()


def test_the_own_timer_of_a_window_is_hidden_and_makes_way() -> None:
    store = in_memory().handle
    handle = BufferedHandle(store, SCHEMAS)
    handle.registerTimer(1_000)
    handle.claim_timer(1_000)
    assert handle.own_timer == 1_001
    assert list(handle.listTimers()) == [1_000]
    handle.registerTimer(1_001)
    handle.flush()
    assert handle.own_timer == 1_002
    assert list(handle.listTimers()) == [1_000, 1_001]
    assert sorted(store.listTimers()) == [1_000, 1_001, 1_002]
    handle.deleteTimer(1_002)
    handle.flush()
    assert 1_002 in store.listTimers()


@pytest.mark.parametrize("time", [2.0, None, "5", 1 << 63, -(1 << 63) - 1])
def test_a_time_that_spark_does_not_take_is_refused_when_the_timer_is_set(time: Any) -> None:
    """The record that sets it is a dead letter then; at the end of the key's records, the batch would fail."""
    handle = BufferedHandle(in_memory().handle, SCHEMAS)
    for set_timer in (handle.registerTimer, handle.deleteTimer):
        with pytest.raises((TypeError, ValueError)):
            set_timer(time)
    handle.flush()
    assert list(handle.listTimers()) == []


def test_clear_removes_all_variables_and_timers() -> None:
    store = in_memory().handle
    handle = BufferedHandle(store, SCHEMAS)
    variables = Variables(handle)
    for name, argument in (("update", 1), ("append", 2), ("set", ("a", 3)), ("register", 4)):
        variables.write(name, argument)
    handle.flush()
    handle.clear()
    assert Variables(store).content() == (None, [], {}, [])


@pytest.mark.parametrize("wrong", [("x",), (1.5,), (True,), (2**63,), (1, 2), 1, [1]])
def test_a_value_of_another_type_is_refused_when_it_is_written(wrong: Any) -> None:
    handle = BufferedHandle(in_memory().handle, SCHEMAS)
    variables = Variables(handle)
    with pytest.raises(TypeError, match="value"):
        variables.value.update(wrong)
    assert variables.content() == (None, [], {}, [])


PARTS = (
    StructType().add("list", ArrayType(NUMBER)).add("map", MapType(StringType(), DoubleType())).add("raw", BinaryType())
)


@pytest.mark.parametrize(
    ("value", "is_right"),
    [
        (([(1,), (None,), None], {"a": 1.5, "b": None}, b"\x00"), True),
        (([], {}, bytearray(b"x")), True),
        ((None, None, None), True),
        (([1], {}, b""), False),
        (([("1",)], {}, b""), False),
        (((1,), {}, b""), False),
        (([], {"a": 1}, b""), False),
        (([], {1: 1.0}, b""), False),
        (([], [("a", 1.0)], b""), False),
        (([], {}, "text"), False),
    ],
)
def test_a_nested_value_is_checked_to_its_leaves(value: Any, is_right: bool) -> None:  # noqa: FBT001  # what is expected
    check = ValueCheck(PARTS, "parts")
    if is_right:
        assert check(value) == value
    else:
        with pytest.raises(TypeError, match=r"parts takes a tuple of struct<list:array<struct<n:bigint>>"):
            check(value)


NESTED = {"value": (PARTS,), "list": (PARTS,), "map": (TEXT, PARTS)}
WRITTEN = ([(1,), (2,)], dict.fromkeys(("c", "a", "b"), 0.5), bytearray(b"x"))
STORED = ([Row(n=1), Row(n=2)], dict.fromkeys(("a", "b", "c"), 0.5), b"x")
"""The same as Spark returns it: with a Row for a struct, and bytes. Spark's maps have any order."""


def nested_variables(handle: BufferedHandle) -> tuple[BufferedValue, BufferedList, BufferedMap]:
    value, items, entries = (
        handle.getValueState("value", PARTS),
        handle.getListState("list", PARTS),
        handle.getMapState("map", TEXT, PARTS),
    )
    assert isinstance(value, BufferedValue)
    assert isinstance(items, BufferedList)
    assert isinstance(entries, BufferedMap)
    return value, items, entries


@pytest.mark.parametrize("flushes", [False, True], ids=["in the batch of the write", "in a later one"])
def test_values_have_one_form_and_one_order_in_every_batch(*, flushes: bool) -> None:
    store = in_memory().handle
    handle = BufferedHandle(store, NESTED)
    value, items, entries = nested_variables(handle)
    value.update(WRITTEN)
    items.appendList([WRITTEN, WRITTEN])
    for key in "bca":
        entries.updateValue((key,), WRITTEN)
    if flushes:
        handle.flush()
        value, items, entries = nested_variables(BufferedHandle(store, NESTED))
    entries.updateValue(("aa",), WRITTEN)
    assert [key for (key,) in entries.keys()] == ["a", "aa", "b", "c"]  # noqa: SIM118  # a method of PySpark's
    read = [value.get(), *items.get(), entries.getValue(("a",)), *(item for _, item in entries.iterator())]
    read += entries.values()
    assert all(item == STORED for item in read)
    for item in read:
        assert item is not None
        numbers_read, by_name, raw = item
        assert [(type(part), part.n) for part in numbers_read] == [(Row, 1), (Row, 2)]
        assert (list(by_name), type(raw)) == (["a", "b", "c"], bytes)


@pytest.mark.parametrize("flushes", [False, True], ids=["written in the batch", "read from the store"])
def test_a_value_that_is_changed_in_place_is_not_changed_in_the_variable(*, flushes: bool) -> None:
    store = in_memory().handle
    handle = BufferedHandle(store, NESTED)
    value, items, entries = nested_variables(handle)
    written: Any = ([(1,), (2,)], {"c": 0.5, "a": 0.5, "b": 0.5}, b"x")
    value.update(written)
    items.put([written])
    entries.updateValue(("a",), written)
    written[0].clear()
    if flushes:
        handle.flush()
    for _ in range(2):
        read: list[Any] = [value.get(), *items.get(), entries.getValue(("a",)), *entries.values()]
        read += [item for _, item in entries.iterator()]
        assert all(item == STORED for item in read)
        for item in read:
            item[0].append(Row(n=9))
            item[1]["d"] = 1.0
    handle.flush()
    assert nested_variables(BufferedHandle(store, NESTED))[0].get() == STORED


def test_a_text_that_cannot_be_stored_is_refused_and_a_float_has_the_precision_of_its_type() -> None:
    check = ValueCheck(StructType().add("text", StringType()).add("single", FloatType()), "parts")
    with pytest.raises(TypeError, match="parts takes a tuple"):
        check(("half \ud800", 0.5))
    with pytest.raises(TypeError, match="parts takes a tuple"):
        check(("", 1e39))
    assert check(("\U0001f600", 0.1)) == ("\U0001f600", 0.10000000149011612)
    assert check((None, float("inf"))) == (None, float("inf"))


def test_a_type_that_spark_gives_back_otherwise_is_found_in_a_nested_schema() -> None:
    assert unsupported(PARTS) is None
    assert unsupported(StructType([*PARTS]).add("times", ArrayType(TimestampType()))) == TimestampType()


def test_an_error_of_the_store_is_no_exception_that_a_processor_can_catch(monkeypatch: pytest.MonkeyPatch) -> None:
    store = in_memory().handle
    variables = Variables(BufferedHandle(store, SCHEMAS))
    monkeypatch.setattr(type(store.value_states["value"]), "get", lambda _: 1 / 0)
    with pytest.raises(StateStoreError):
        variables.value.get()
    assert not issubclass(StateStoreError, Exception)


def in_memory() -> TwsTester:
    """PySpark's own variables in memory, for one key."""
    made = TwsTester(Unused(), timeMode="ProcessingTime")
    made.handle.setGroupingKey("key")
    return made
