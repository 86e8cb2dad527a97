"""The bounds of keys, and the key of a dead letter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from contracts.types.key import LARGEST_KEY, LONGEST_CHARACTER, Key, composite_key, shortened


def test_a_key_within_the_bound_stays_as_it_is() -> None:
    for key in (None, b"", b"d1", b"\xff\xc3", b"k" * LARGEST_KEY):
        assert shortened(key) == key


def test_a_key_that_is_not_utf8_is_cut_anywhere() -> None:
    assert shortened(b"\xff" * 10_000) == b"\xff" * LARGEST_KEY


@given(st.text(min_size=LARGEST_KEY // LONGEST_CHARACTER, max_size=2 * LARGEST_KEY))
def test_a_long_key_is_cut_between_two_characters(key: str) -> None:
    cut = shortened(key.encode()) or b""
    assert key.startswith(cut.decode())
    assert len(cut) == len(key.encode()) or LARGEST_KEY - LONGEST_CHARACTER < len(cut) <= LARGEST_KEY


@pytest.mark.parametrize("key", ["k", "k" * LARGEST_KEY, "ä" * (LARGEST_KEY // 2)])
def test_a_key_within_its_bounds_is_taken(key: str) -> None:
    assert TypeAdapter(Key).validate_python(key) == key


@pytest.mark.parametrize("key", ["", "k" * (LARGEST_KEY + 1), "ä" * (LARGEST_KEY // 2 + 1)])
def test_a_key_outside_its_bounds_is_refused(key: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Key).validate_python(key)


def test_the_schema_of_a_key_has_its_bounds() -> None:
    assert TypeAdapter(Key).json_schema() == {"type": "string", "minLength": 1, "maxLength": LARGEST_KEY}


parts = st.lists(st.text(st.sampled_from("ab:\\"), max_size=4), min_size=2, max_size=4)


@given(parts, parts)
def test_different_parts_make_different_keys(left: list[str], right: list[str]) -> None:
    assert (composite_key(*left) == composite_key(*right)) == (left == right)


def test_a_composite_key_can_be_read() -> None:
    assert composite_key("JFK", "UA") == "JFK:UA"
    assert composite_key("a:b", "c\\") == r"a\:b:c\\"
    assert composite_key("a:b") == "a:b", "the key of a state that one field identifies"
