"""What an enrichment would be asked with now, and whether its slot has the answer to that."""

import itertools
from typing import Any, NamedTuple

from contracts.model.enrichment import Enrichment
from contracts.planning.fingerprint import digest, fingerprint, round_fingerprint
from contracts.wire import Answer

LONGEST_NUMBER = 9
NO_INPUTS: dict[str, Any] = {}


class Question(NamedTuple):
    """The inputs as the function gets them, what names them, and the round that this is of an iterative enrichment."""

    inputs: dict[str, Any]
    fingerprint: str
    round: int
    answered: bool
    """Whether the slot's answer serves these inputs. Then the question is the one to ask when that is stale."""


def question(one: Enrichment, inputs: dict[str, Any], answer: Answer | None) -> Question:
    """What is to be asked with these inputs of the state: rounded, and in the round that the slot has not seen yet."""
    others = inputs if one.rounds is None else {name: value for name, value in inputs.items() if name != one.name}
    near, named = _near(one, others, None if answer is None else answer.fingerprint.partition(".")[0])
    if one.rounds is not None:
        return _in_rounds(one, near, named, answer)
    return Question(near, named, 1, answer is not None and answer.fingerprint == named)


def _near(one: Enrichment, inputs: dict[str, Any], asked: str | None) -> tuple[dict[str, Any], str]:
    """The rounded inputs with their fingerprint: those of the slot if they are in reach, or the nearest."""
    if not one.rounding:
        return inputs, fingerprint(one, inputs)
    choices = [near.choices(inputs[name]) for name, near in one.rounding.items()]
    within = [inputs | dict(zip(one.rounding, chosen, strict=True)) for chosen in itertools.product(*choices)]
    named = [(near, fingerprint(one, near)) for near in within]
    return next((near for near in named if near[1] == asked), named[0])


def _in_rounds(one: Enrichment, others: dict[str, Any], named: str, answer: Answer | None) -> Question:
    """The first round reads no result; each further one that of the round before, until it repeats or is the last.

    The slot's fingerprint tells which round it has, and what that one read: so no more than the slot need be known.
    """
    number, read = _reached(answer, named)
    result = answer.result if answer and number else None
    if number and (result is None or number >= (one.rounds or 1) or digest(result) == read):
        return Question(others | {one.name: None}, round_fingerprint(named, 1, None), 1, answered=True)
    following = round_fingerprint(named, number + 1, result)
    return Question(others | {one.name: result}, following, number + 1, answered=False)


def _reached(answer: Answer | None, named: str) -> tuple[int, str]:
    """The round whose answer the slot has, 0 for none with these inputs, and the digest of the result that it read."""
    inputs, _, rest = (answer.fingerprint if answer else "").partition(".")
    number, _, read = rest.partition(".")
    plain = inputs == named and number.isdecimal() and number.isascii() and len(number) <= LONGEST_NUMBER
    return (int(number) if plain else 0), read
