"""Samples of keys."""

from __future__ import annotations

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from services.tools.verify.sample import KeySample, rank

KEYS = st.lists(st.text(max_size=5), max_size=30)


def sample(size: int, keys: list[str]) -> frozenset[str]:
    chosen = KeySample(size, "seed")
    chosen.offer_all(keys)
    return chosen.keys


@given(st.integers(0, 10), KEYS)
def test_a_sample_has_the_keys_of_the_largest_ranks(size: int, keys: list[str]) -> None:
    wanted = sorted(set(keys), key=lambda key: rank(key, "seed"), reverse=True)[:size]
    assert sample(size, keys) == frozenset(wanted)


@given(st.integers(0, 10), st.lists(KEYS, max_size=4))
def test_the_sample_of_samples_is_that_of_all(size: int, groups: list[list[str]]) -> None:
    merged = sample(size, list(chain.from_iterable(sample(size, keys) for keys in groups)))
    assert merged == sample(size, list(chain.from_iterable(groups)))


@given(st.integers(1, 5), KEYS)
def test_a_key_that_was_offered_is_chosen_at_once_or_never(size: int, keys: list[str]) -> None:
    chosen = KeySample(size, "seed")
    first: dict[str, bool] = {}
    for key in keys:
        first.setdefault(key, chosen.offer(key))
    assert all(first[key] for key in chosen.keys)
