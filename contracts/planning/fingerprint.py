"""Fingerprints of an enrichment's inputs: equal for equal inputs, whatever the device."""

import hashlib
from typing import Any

import orjson

from contracts.model.enrichment import Enrichment


def fingerprint(enrichment: Enrichment, inputs: dict[str, Any]) -> str:
    """Return the fingerprint of an enrichment's inputs, under the first names of the fields."""
    if enrichment.aliases:
        inputs = {enrichment.aliases.get(name, name): value for name, value in inputs.items()}
    return digest([enrichment.recorded_as, inputs])


def skip_fingerprint(enrichment: Enrichment, reason: str) -> str:
    """Return the fingerprint of the reason for which an enrichment is skipped."""
    return digest([enrichment.recorded_as, "skipped", reason])


def round_fingerprint(inputs: str, number: int, own: Any) -> str:
    """Return the fingerprint of a round: of the other inputs, the round's number, and the own result that it reads."""
    return f"{inputs}.{number}.{digest(own)}"


def digest(named: Any) -> str:
    """Return a digest of a JSON value that does not depend on the order of its names.

    Raises ValueError for one that is nested too deeply: orjson reads deeper values than it writes.
    """
    try:
        written = orjson.dumps(named, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise ValueError("an input is nested too deeply") from error
    return hashlib.blake2b(written, digest_size=12).hexdigest()
