"""The inputs of an enrichment's next request, and whether its slot has the answer to them."""

import itertools
from typing import Any, NamedTuple

from contracts.model.enrichment import Enrichment
from contracts.planning.fingerprint import digest, fingerprint, round_fingerprint
from contracts.wire import Answer

LONGEST_NUMBER = 9
NO_INPUTS: dict[str, Any] = {}


class Inputs(NamedTuple):
    """The values that the function receives, their fingerprint, and the round of an iterative enrichment."""

    values: dict[str, Any]
    fingerprint: str
    round: int
    is_answered: bool
    """Whether the slot's answer is of these inputs. They are requested again when that answer is stale."""


def inputs_of(enrichment: Enrichment, values: dict[str, Any], answer: Answer | None) -> Inputs:
    """Return the inputs for these values of the state: rounded, and of the first round that the slot does not have."""
    others = (
        values
        if enrichment.rounds is None
        else {name: value for name, value in values.items() if name != enrichment.name}
    )
    rounded, named = _rounded(enrichment, others, None if answer is None else answer.fingerprint.partition(".")[0])
    if enrichment.rounds is not None:
        return _in_rounds(enrichment, rounded, named, answer)
    return Inputs(rounded, named, 1, answer is not None and answer.fingerprint == named)


def _rounded(enrichment: Enrichment, values: dict[str, Any], answered: str | None) -> tuple[dict[str, Any], str]:
    """Return the rounded values and their fingerprint: the slot's if they are in reach, else the nearest."""
    if not enrichment.rounding:
        return values, fingerprint(enrichment, values)
    choices = [quantize.choices(values[name]) for name, quantize in enrichment.rounding.items()]
    within = [values | dict(zip(enrichment.rounding, chosen, strict=True)) for chosen in itertools.product(*choices)]
    named = [(rounded, fingerprint(enrichment, rounded)) for rounded in within]
    return next((candidate for candidate in named if candidate[1] == answered), named[0])


def _in_rounds(enrichment: Enrichment, others: dict[str, Any], named: str, answer: Answer | None) -> Inputs:
    """Return the inputs of the next round: the first reads no result, each later one the result of the round before.

    The rounds end when a result repeats, or with the last one. The slot's fingerprint has its round and what that
    round read, so the slot is all that this needs.
    """
    number, read = _reached(answer, named)
    result = answer.result if answer and number else None
    if number and (result is None or number >= (enrichment.rounds or 1) or digest(result) == read):
        return Inputs(others | {enrichment.name: None}, round_fingerprint(named, 1, None), 1, is_answered=True)
    following = round_fingerprint(named, number + 1, result)
    return Inputs(others | {enrichment.name: result}, following, number + 1, is_answered=False)


def _reached(answer: Answer | None, named: str) -> tuple[int, str]:
    """Return the round of the slot's answer, 0 for none with these inputs, and the digest of what it read."""
    inputs, _, round_part = (answer.fingerprint if answer else "").partition(".")
    number, _, read = round_part.partition(".")
    plain = inputs == named and number.isdecimal() and number.isascii() and len(number) <= LONGEST_NUMBER
    return (int(number) if plain else 0), read
