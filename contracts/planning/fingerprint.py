"""The names of what enrichments are asked: equal for equal inputs, whatever the device."""

import hashlib
from typing import Any

import orjson

from contracts.model.enrichment import Enrichment


def fingerprint(one: Enrichment, inputs: dict[str, Any]) -> str:
    """Names the inputs of an enrichment."""
    return digest([one.name, inputs])


def skip_fingerprint(one: Enrichment, reason: str) -> str:
    """Names the reason for which an enrichment is skipped."""
    return digest([one.name, "skipped", reason])


def round_fingerprint(inputs: str, number: int, own: Any) -> str:
    """Names one round: the fingerprint of all other inputs, the round's number, and the own result that it reads."""
    return f"{inputs}.{number}.{digest(own)}"


def digest(named: Any) -> str:
    """Of anything that JSON has, whatever the order of its names."""
    return hashlib.blake2b(orjson.dumps(named, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()
