"""Fingerprints of an enrichment's inputs: equal for equal inputs, whatever the device."""

import hashlib
from typing import Any

import orjson

from contracts.model.enrichment import Enrichment


def fingerprint(one: Enrichment, inputs: dict[str, Any]) -> str:
    """Return the fingerprint of an enrichment's inputs, under the first names of the fields."""
    if one.aliases:
        inputs = {one.aliases.get(name, name): value for name, value in inputs.items()}
    return digest([one.recorded_as, inputs])


def skip_fingerprint(one: Enrichment, reason: str) -> str:
    """Return the fingerprint of the reason for which an enrichment is skipped."""
    return digest([one.recorded_as, "skipped", reason])


def round_fingerprint(inputs: str, number: int, own: Any) -> str:
    """Return the fingerprint of a round: that of the other inputs, its number, and the own result that it reads."""
    return f"{inputs}.{number}.{digest(own)}"


def digest(named: Any) -> str:
    """Return a digest of a JSON value that does not depend on the order of its names."""
    return hashlib.blake2b(orjson.dumps(named, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()
