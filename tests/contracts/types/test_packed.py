"""Packed integers against the bits of one large number, and what is refused."""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts import DeclarationError, PackedIntegers, RawRecord

Order = Literal["little", "big"]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def decoded(packed: PackedIntegers, value: bytes) -> dict[str, list[Any]]:
    channels = packed(RawRecord("t", 0, 0, NOW, None, value))
    return {name: samples.tolist() for name, samples in channels.items()}


def as_bits(numbers: list[int], bits: int, order: Order) -> bytes:
    """The numbers as the bits of one large number, from its lower end on or from its higher end on."""
    total = 0
    for place, number in enumerate(numbers):
        shift = place if order == "little" else len(numbers) - 1 - place
        total |= (number & ((1 << bits) - 1)) << (bits * shift)
    size = -(-bits * len(numbers) // 8)
    return (total << (0 if order == "little" else 8 * size - bits * len(numbers))).to_bytes(size, order)


@given(st.data(), st.sampled_from([8, 12, 16, 24, 32]), st.sampled_from(["little", "big"]), st.booleans())
def test_samples_are_the_bits_in_order(data: st.DataObject, bits: int, order: Order, signed: bool) -> None:  # noqa: FBT001
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    numbers = data.draw(st.lists(st.integers(low, high), max_size=9))
    # In bytes, a sample of another size than 12 bits has its own order; so have two of 12 bits.
    groups = (
        [numbers[at : at + 2] for at in range(0, len(numbers), 2)] if bits == 12 else [[number] for number in numbers]
    )
    packed = PackedIntegers(bits, order, signed)
    assert decoded(packed, b"".join(as_bits(group, bits, order) for group in groups)) == {"samples": numbers}


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1), st.integers(0, 5))
def test_channels_alternate_after_the_skipped_bytes(pairs: list[tuple[int, int]], skip: int) -> None:
    value = bytes(skip) + b"".join(number.to_bytes(2, "little", signed=True) for pair in pairs for number in pair)
    packed = PackedIntegers(16, channels=("a", "b"), skip=skip, samples=len(pairs), scale=0.5, offset=-1)
    expected = {"a": [a / 2 - 1 for a, _ in pairs], "b": [b / 2 - 1 for _, b in pairs]}
    assert decoded(packed, value) == expected


@pytest.mark.parametrize(
    ("packed", "size", "message"),
    [
        (PackedIntegers(16), 5, "5 bytes of samples: the last one is truncated"),
        (PackedIntegers(24), 4, "truncated"),
        (PackedIntegers(12), 4, "truncated"),
        (PackedIntegers(16, channels=("a", "b")), 6, "3 samples, which 2 channels do not divide"),
        (PackedIntegers(16, samples=3), 8, "4 samples of each channel, and 3 are declared"),
        (PackedIntegers(16, skip=8), 7, "7 bytes, and 8 come before the samples"),
    ],
)
def test_a_value_of_another_length_is_refused(packed: PackedIntegers, size: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decoded(packed, bytes(size))


@given(st.binary(max_size=40), st.sampled_from([8, 12, 16, 24]), st.sampled_from(["little", "big"]))
def test_any_bytes_are_samples_or_refused(value: bytes, bits: int, order: Order) -> None:
    try:
        samples = decoded(PackedIntegers(bits, order), value)["samples"]
    except ValueError:
        return
    assert len(samples) == len(value) * 8 // bits
    assert all(abs(number) <= 1 << bits - 1 for number in samples)


@pytest.mark.parametrize(
    "declare",
    [
        lambda: PackedIntegers(10),
        lambda: PackedIntegers(order="middle"),  # type: ignore[arg-type]
        lambda: PackedIntegers(channels=()),
        lambda: PackedIntegers(channels=("a", "a")),
        lambda: PackedIntegers(samples=0),
        lambda: PackedIntegers(scale=math.nan),
    ],
)
def test_an_impossible_layout_is_refused(declare: Callable[[], object]) -> None:
    with pytest.raises(DeclarationError):
        declare()
