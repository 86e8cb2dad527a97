"""The index finds the subscriptions that a scan of all of them would find, and inspects no others."""

from __future__ import annotations

import time

import orjson
from hypothesis import given
from hypothesis import strategies as st

from services.query.push.filter import RecordFields, SubscriptionFilter
from services.query.push.filter_index import FilterIndex

KEYS = st.text("ab", max_size=4)
VALUES = st.sampled_from(["x", "y", "1", "true", "1.5"])
FIELDS = st.fixed_dictionaries(
    {}, optional={"a": st.sampled_from(["x", "y", 1, True, 1.5, None, [1]]), "b": st.fixed_dictionaries({"c": VALUES})}
)
WHERE = st.dictionaries(st.sampled_from(["a", "b.c", "b", "a.z"]), VALUES, max_size=2)
FILTERS = st.one_of(
    st.builds(SubscriptionFilter, st.just("s"), KEYS, silent_for=st.none()),
    st.builds(lambda prefix, where: SubscriptionFilter("s", None, prefix, tuple(sorted(where.items()))), KEYS, WHERE),
)


def matches(wanted: SubscriptionFilter, key: str, record: RecordFields) -> bool:
    """Return whether one filter matches, without an index."""
    if wanted.key is not None:
        return wanted.key == key
    return key.startswith(wanted.prefix) and all(record.text(path) == value for path, value in wanted.where)


@given(st.lists(st.tuples(FILTERS, st.booleans()), max_size=20), KEYS, FIELDS)
def test_the_index_finds_what_a_scan_finds(
    filters: list[tuple[SubscriptionFilter, bool]], key: str, fields: object
) -> None:
    index: FilterIndex[int] = FilterIndex()
    for number, (wanted, _) in enumerate(filters):
        index.add(wanted, number)
    for number, (wanted, stays) in enumerate(filters):
        if not stays:
            index.remove(wanted, number)
    record = RecordFields(orjson.dumps(fields))
    found = [*index.by_key(key), *index.by_fields(key, record)]
    expected = [number for number, (one, stays) in enumerate(filters) if stays and matches(one, key, record)]
    assert sorted(found) == expected
    assert sorted(index) == [number for number, (_, stays) in enumerate(filters) if stays]


@given(st.lists(FILTERS, max_size=10))
def test_removed_subscriptions_leave_nothing_behind(filters: list[SubscriptionFilter]) -> None:
    index: FilterIndex[int] = FilterIndex()
    for number, wanted in enumerate(filters):
        index.add(wanted, number)
    for number, wanted in enumerate(filters):
        index.remove(wanted, number)
    empty: FilterIndex[int] = FilterIndex()
    assert vars(index) == vars(empty)


def test_subscriptions_that_do_not_match_cost_nothing() -> None:
    few, many = _index(10), _index(100_000)
    assert _cost(many) < 20 * _cost(few)  # a scan would cost 10,000 times as much


def test_a_record_is_parsed_on_demand() -> None:
    broken = RecordFields(b"no JSON")
    assert list(_index(10).by_fields("key-1", broken)) == []
    index: FilterIndex[int] = FilterIndex()
    index.add(SubscriptionFilter("s", None, "", (("a.b", "x"),)), 1)
    assert list(index.by_fields("k", broken)) == []
    assert list(index.by_fields("k", RecordFields(b'{"a":{"b":"x"}}'))) == [1]


def _index(number: int) -> FilterIndex[int]:
    index: FilterIndex[int] = FilterIndex()
    for one in range(number):
        index.add(SubscriptionFilter("s", f"key-{one}"), one)
        index.add(SubscriptionFilter("s", None, f"prefix-{one:06}"), number + one)
        index.add(SubscriptionFilter("s", None, "", (("a", f"{one}"),)), 2 * number + one)
    return index


def _cost(index: FilterIndex[int]) -> float:
    """Return the shortest of several measurements: other processes disturb some."""
    record, costs = RecordFields(b'{"a":"1"}'), []
    for _ in range(50):
        began = time.perf_counter()
        assert len([*index.by_key("key-1"), *index.by_fields("key-1", record)]) == 2
        costs.append(time.perf_counter() - began)
    return min(costs)
