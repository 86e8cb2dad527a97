"""The partition of a key, by the Java clients' default partitioner: computed without a broker."""

_MASK = 0xFFFFFFFF
_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C


def partition(key: bytes, partitions: int) -> int:
    """Return the number of the partition of a key. Source: murmur2 in Kafka's Utils.java, its sign bit dropped."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Austin Appleby's MurmurHash2 of 32 bits, with Kafka's seed."""
    value = (_SEED ^ len(data)) & _MASK
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        value = value * _MULTIPLIER & _MASK ^ word
    if remainder := data[whole:]:
        value = (value ^ int.from_bytes(remainder, "little")) * _MULTIPLIER & _MASK
    value = (value ^ value >> 13) * _MULTIPLIER & _MASK
    return value ^ value >> 15


def partition_sql(key: str, partitions: int) -> str:
    """The SQL of `partition`, over a column of texts. It needs a session in which whole numbers wrap, as Java's do.

    A function of bytes is not there, so the hash reads eight of them at once through their hexadecimal text. The
    intermediate values have names as the variables of lambda functions.
    """
    size = f"octet_length({key})"
    eights = f"CASE WHEN {size} >= 8 THEN transform(sequence(0, {size} div 8 - 1), i -> {_long(key, '8 * i')}) END"
    start = f"{_signed(_SEED)} ^ {size}"
    body = f"aggregate(coalesce({eights}, array()), {start}, (h, x) -> {_mixed(_mixed('h', _low('x')), _high('x'))})"
    has_word = f"{size} & 4 > 0"
    word = f"CASE WHEN {has_word} THEN {_mixed('h', _low('x'))} ELSE h END"
    remainder = f"({word} ^ CASE WHEN {has_word} THEN {_high('x')} ELSE {_low('x')} END) * {_MULTIPLIER}"
    last = _long(key, f"{size} - {size} % 8")
    tail = f"(h, x) -> CASE WHEN {size} % 4 > 0 THEN {remainder} ELSE {word} END"
    mixed = f"((h ^ shiftrightunsigned(h, 13)) * {_MULTIPLIER})"
    number = f"h -> (({mixed} ^ shiftrightunsigned({mixed}, 15)) & 2147483647) % {partitions}"
    return f"aggregate(array({last}), {body}, {tail}, {number})"


def _long(key: str, at: str) -> str:
    """The SQL of up to eight bytes from an index on, the first the lowest; null for none."""
    return f"CAST(conv(hex(reverse(substring(CAST({key} AS BINARY), {at} + 1, 8))), 16, -10) AS BIGINT)"


def _mixed(value: str, word: str) -> str:
    """The SQL of the hash after a word of four bytes."""
    multiplied = f"({word} * {_MULTIPLIER})"
    return f"({value} * {_MULTIPLIER} ^ ({multiplied} ^ shiftrightunsigned({multiplied}, 24)) * {_MULTIPLIER})"


def _low(long: str) -> str:
    return f"CAST({long} AS INT)"


def _high(long: str) -> str:
    return f"CAST(shiftrightunsigned({long}, 32) AS INT)"


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word
