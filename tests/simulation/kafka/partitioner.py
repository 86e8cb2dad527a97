"""The partition of a key: that of Java's clients, and of the product's (`contracts.model.topics.PARTITIONER`)."""

from __future__ import annotations

SEED, MULTIPLIER, SHIFT = 0x9747B28C, 0x5BD1E995, 24
WORD = 0xFFFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Return the number of the partition."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Return the 32 bits of MurmurHash2, as org.apache.kafka.common.utils.Utils computes them."""
    result = SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * MULTIPLIER & WORD
        word = (word ^ word >> SHIFT) * MULTIPLIER & WORD
        result = (result * MULTIPLIER & WORD) ^ word
    if rest := data[whole:]:
        result = (result ^ int.from_bytes(rest, "little")) * MULTIPLIER & WORD
    result = (result ^ result >> 13) * MULTIPLIER & WORD
    return result ^ result >> 15
