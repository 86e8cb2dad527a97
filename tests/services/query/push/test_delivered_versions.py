"""A delivered version is not delivered again, nor an older one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.query.push.delivered_versions import DeliveredVersions

ORDERS = st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(1, 5))


@given(st.lists(st.tuples(st.sampled_from("abc"), ORDERS), max_size=40))
def test_orders_of_a_key_only_grow(versions: list[tuple[str, tuple[int, int, int]]]) -> None:
    delivered, passed = DeliveredVersions(10), dict[str, list[tuple[int, int, int]]]()
    for key, order in versions:
        if delivered.advance(key, order):
            passed.setdefault(key, []).append(order)
    assert all(orders == sorted(set(orders)) for orders in passed.values())
    assert {key: orders[-1] for key, orders in passed.items()} == {
        key: max(order for one, order in versions if one == key) for key, _ in versions
    }


def test_the_most_recently_delivered_keys_are_remembered() -> None:
    forgotten: list[str] = []
    delivered = DeliveredVersions(2, lambda key: forgotten.append(str(key)))
    for key, version in (("a", 1), ("b", 1), ("a", 2), ("c", 1)):
        assert delivered.advance(key, (0, 0, version))
    assert (sorted(delivered.keys()), forgotten) == (["a", "c"], ["b"])


def test_a_forgotten_key_may_return_with_any_order() -> None:
    delivered = DeliveredVersions(2)
    delivered.advance("a", (0, 0, 5))
    assert (delivered.forget("a"), delivered.forget("a"), delivered.advance("a", (0, 0, 1))) == (True, False, True)


@given(st.lists(st.tuples(st.sampled_from("abc"), ORDERS), max_size=40), st.integers(0, 4))
def test_a_window_expires_once(versions: list[tuple[str, tuple[int, int, int]]], watermark: int) -> None:
    delivered = DeliveredVersions(10)
    for key, order in versions:
        delivered.advance(key, order)
    windows = {key: max(order[0] for one, order in versions if one == key) for key, _ in versions}
    wanted = sorted(key for key, start in windows.items() if 0 < start < watermark)
    assert sorted(delivered.pop_expired(lambda start: start < watermark)) == wanted
    assert list(delivered.pop_expired(lambda start: start < watermark)) == []


def test_windows_of_forgotten_keys_do_not_accumulate() -> None:
    delivered = DeliveredVersions(10)
    for number in range(1000):
        delivered.advance(str(number), (number + 1, 0, 1))
    assert len(delivered._windows) <= 20  # noqa: SLF001  # memory shows nowhere else
    assert sorted(delivered.pop_expired(lambda _: True)) == [str(number) for number in range(990, 1000)]
