from __future__ import annotations

import pytest

from contracts.wire.partition import murmur2, partition


@pytest.mark.parametrize(
    ("data", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hash_is_that_of_the_java_clients(data: bytes, signed: int) -> None:
    """Source: UtilsTest.testMurmur2 of Apache Kafka."""
    assert murmur2(data) == signed % 2**32


@pytest.mark.parametrize("partitions", [3, 4, 12])
def test_the_sign_bit_is_dropped(partitions: int) -> None:
    assert partition(b"21", partitions) == (-973932308 & 0x7FFFFFFF) % partitions
