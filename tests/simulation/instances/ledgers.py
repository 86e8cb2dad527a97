"""What a run has left, and what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from services.query.store.entry import EntryOrder
    from tests.simulation.instances.reader import Answered
    from tests.simulation.instances.script import Script


class Ledgers(NamedTuple):
    """The answers, in their order, and what the topic has given each key after each record."""

    answers: Sequence[Answered]
    states: Mapping[str, Sequence[EntryOrder | None]]
    errors: Sequence[str]
    """The errors with which processes ended, and of tasks that nobody awaited."""


def problems(script: Script, found: Ledgers) -> list[str]:
    """Return what is wrong: errors, answers that go back or were never written, and keys that end without the last."""
    wrong = [f"an error: {error}" for error in found.errors]
    for key, states in found.states.items():
        answers = [answer for answer in found.answers if answer.key == key]
        wrong += _wrong_answers(answers, states)
        wrong += _wrong_ends(key, [answer for answer in answers if answer.sent_at >= script.quiet_at], states[-1])
    return wrong


def _wrong_answers(answers: Sequence[Answered], states: Sequence[EntryOrder | None]) -> Iterator[str]:
    """Yield the answers that are older than one that came before their request, or that no reader can have.

    A later answer must be of the same or of a later state of the topic.
    """
    seen: list[tuple[int, int]] = []
    """The number of each answer, and the state up to which readers are then."""
    for answer in answers:
        floor = max((state for number, state in seen if number < answer.sent), default=0)
        state = next((at for at in range(floor, answer.written) if states[at] == answer.order), None)
        if state is not None:
            seen.append((answer.number, state))
        else:
            is_older = answer.order in states[:floor]
            kind = f"older than {states[floor]}" if is_older else "nothing that the topic had"
            yield f"{answer.instance} answers {answer.key} at {answer.at:.2f} with {answer.order}: {kind}"


def _wrong_ends(key: str, answers: Sequence[Answered], last: EntryOrder | None) -> Iterator[str]:
    if not answers:
        yield f"{key} has no answer in the end"
    for answer in answers:
        if answer.order != last:
            yield f"{answer.instance} answers {key} in the end with {answer.order}, and the last is {last}"
