"""What a run has left, and what is wrong with it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from contracts.wire.partition import partition
from tests.simulation.instances.client_reader import CLIENT
from tests.simulation.instances.followers import missing, wrong_followings
from tests.simulation.instances.job import BEFORE_ALL, plate
from tests.simulation.instances.reads import FOUND_BY
from tests.simulation.instances.script import BOUND_S, Fault
from tests.simulation.instances.unanswered import broken, unanswered
from tests.simulation.instances.watchers import ALL, BY_VALUE, WINDOWS
from tests.simulation.script import time_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from services.query.store.entry import EntryOrder
    from tests.simulation.instances.followers import Following
    from tests.simulation.instances.growth import Layout
    from tests.simulation.instances.job import Expiry
    from tests.simulation.instances.reader import Answered
    from tests.simulation.instances.script import Script
    from tests.simulation.instances.watchers import Marked, Watched


EXPIRED_S = 5.0
"""The time within which an instance knows that a window has expired."""
PUSHED_S = 12.0
"""The time within which watchers learn that a window has expired."""
CLOSED_S = 9.0
"""The time within which a window is answered as closed that the job's progress has closed."""


class Ledgers(NamedTuple):
    """The answers, in their order, and what the topic has given each key after each record."""

    answers: Sequence[Answered]
    of_windows: Sequence[Answered]
    """The answers about single windows."""
    watched: Sequence[Watched]
    marked: Sequence[Marked]
    watchers: Collection[str]
    """The names of the clients that watched."""
    followings: Sequence[Following]
    """The connections of the clients that watched only changes."""
    states: Mapping[str, Sequence[EntryOrder | None]]
    times: Mapping[str, Sequence[float]]
    """The time of each of these states."""
    offsets: Mapping[str, Sequence[int]]
    """The offset of the record of each of these states."""
    windows: Mapping[str, Sequence[Mapping[int, EntryOrder]]]
    """The order of each window of a key, in each of these states."""
    last_versions: Mapping[tuple[str, int, int], int]
    """The last version of each window of a key in each epoch."""
    expiry: Expiry
    layouts: Sequence[Layout]
    """The numbers of partitions, in their order."""
    errors: Sequence[str]
    """The errors with which processes ended, and of tasks that nobody awaited."""
    unready: Sequence[str]
    """What the instances lacked at last."""


def problems(script: Script, found: Ledgers) -> list[str]:
    """Return what is wrong: errors, answers that go back or were never written, and keys that end without the last."""
    wrong = [f"an error: {error}" for error in found.errors] + [*found.unready]
    late_s = PUSHED_S + _slow_clocks(script)[1]
    for key, states in found.states.items():
        answers = [answer for answer in found.answers if answer.key == key]
        wrong += _wrong_answers(answers, states, found.expiry)
        calm = [answer for answer in answers if _is_calm(script, answer)]
        wrong += _wrong_expiry(answers, found.expiry)
        wrong += _late_expiry(script, answers, calm, found.expiry)
        wrong += _late_answers(script, calm, states, found.times[key], found.expiry)
        last = [answer for answer in answers if answer.sent_at >= script.quiet_at]
        wrong += _wrong_ends(key, last, states[-1], found.expiry)
        wrong += unanswered(script, key, [answer.at for answer in answers])
        for name in (key, ALL):
            updates = [one for one in found.watched if (one.watcher, one.key) == (name, key)]
            wrong += _wrong_updates(updates, states, found.expiry)
            wrong += _repeated_updates(updates, states)
            wrong += _wrong_last(name, updates, states[-1], last[-1:], found.expiry, late_s)
        wrong += _wrong_returns(answers, states)
        wrong += _wrong_window_answers(script, key, found)
        wrong += _wrong_windows(key, found)
        wrong += _wrong_matches(key, found, last[-1:], late_s)
        wrong += _wrong_closes(script, key, found, last[-1:])
        wrong += wrong_followings(script, found.followings, key, states, found.times[key])
        wrong += _wrong_changes(key, found, last[-1:])
        if all(after is not None and (before is None or before <= after) for before, after in pairwise(states)):
            wrong += _wrong_marks(key, found)
    return wrong


def _is_of(answer: Answered | Watched, state: EntryOrder | None, expiry: Expiry) -> bool:
    """Return whether the answer may be that of a store with this state."""
    if (order := answer.order or answer.expired) is not None:
        return state == order
    if state is None or (answer.without is not None and plate(state) != answer.without):
        return True
    kept = expiry.kept if answer.live_only else expiry.forgotten
    return expiry.may_have(state[0], _ms(answer.at), answer.newest, kept)


def _wrong_answers(answers: Sequence[Answered], states: Sequence[EntryOrder | None], expiry: Expiry) -> Iterator[str]:
    """Yield the answers that are older than one that came before their request, or that no reader can have.

    A later answer must be of the same or of a later state of the topic.
    """
    seen: list[tuple[int, int]] = []
    """The number of each answer, and the state up to which readers are then."""
    for answer in answers:
        floor = max((state for number, state in seen if number < answer.sent), default=0)
        state = next((at for at in range(floor, answer.written) if _is_of(answer, states[at], expiry)), None)
        if state is not None:
            seen.append((answer.number, state))
        else:
            is_older = answer.order in states[:floor]
            kind = f"older than {states[floor]}" if is_older else "nothing that the topic had"
            yield f"{answer.instance} answers {answer.key} at {answer.at:.2f} with {answer.order}: {kind}"


def _wrong_returns(answers: Sequence[Answered], states: Sequence[EntryOrder | None]) -> Iterator[str]:
    """Yield the results of the client that are older than one that it returned before, unless that was removed."""
    floor: EntryOrder | None = None
    for answer in answers:
        if answer.instance == CLIENT:
            order = answer.order or answer.expired
            is_older = order is not None and floor is not None and order < floor
            if is_older and not _has_removal(floor, states[: answer.written]):
                yield f"the client returns {order} of {answer.key} at {answer.at:.2f} after {floor}"
            floor = order


def _wrong_window_answers(script: Script, key: str, found: Ledgers) -> Iterator[str]:
    """Yield what is wrong with the answers about each window of a key."""
    by_window: dict[int, list[Answered]] = {}
    for answer in found.of_windows:
        if answer.key == key and answer.window is not None:
            by_window.setdefault(answer.window, []).append(answer)
    for start, answers in by_window.items():
        states = [state.get(start) for state in found.windows[key]]
        yield from _wrong_answers(answers, states, found.expiry)
        calm = [answer for answer in answers if _is_calm(script, answer)]
        yield from _late_answers(script, calm, states, found.times[key], found.expiry)
        last = [answer for answer in answers if answer.sent_at >= script.quiet_at]
        yield from (one for one in _wrong_ends(key, last, states[-1], found.expiry) if last)


def _is_calm(script: Script, answer: Answered) -> bool:
    """Return whether no fault explains that the answer is not of the present."""
    return not any(begin < answer.at and answer.sent_at < end for begin, end in broken(script, answer.key))


def _late_answers(
    script: Script,
    answers: Sequence[Answered],
    states: Sequence[EntryOrder | None],
    times: Sequence[float],
    expiry: Expiry,
) -> Iterator[str]:
    """Yield the answers that lack what the topic has had for a while."""
    late_s = script.late_s
    for answer in answers:
        oldest = max(0, bisect_right(times, answer.sent_at - late_s) - 1)
        if not any(_is_of(answer, state, expiry) for state in states[oldest : answer.written]):
            yield f"{answer.instance} answers {answer.key} at {answer.at:.2f} late with {answer.order}"


def _wrong_expiry(answers: Sequence[Answered], expiry: Expiry) -> Iterator[str]:
    """Yield the answers with a window that has expired too early, or lives again."""
    expired: list[tuple[int, int]] = []
    """The number of each answer with an expired window, and the window."""
    for answer in answers:
        who = f"{answer.instance} answers {answer.key} at {answer.at:.2f}"
        if answer.expired is not None:
            start = answer.expired[0]
            expired.append((answer.number, start))
            if not expiry.may_have(start, _ms(answer.at), answer.newest, expiry.kept):
                yield f"{who} with an expired window, {start}, that lives"
        elif answer.order is not None:
            start = answer.order[0]
            if start <= max((one for number, one in expired if number < answer.sent), default=start - 1):
                yield f"{who} with a window, {start}, that was answered as expired"


def _late_expiry(
    script: Script, answers: Sequence[Answered], calm: Sequence[Answered], expiry: Expiry
) -> Iterator[str]:
    """Yield the answers with a window that has not expired in time.

    A slow clock does not delay the expiry while another instance announces its own.
    """
    slow, slow_s = _slow_clocks(script)
    punctual = {answer.number for answer in calm} if len(slow) < script.instances else set()
    for answer in answers:
        late_s = EXPIRED_S + (0.0 if answer.number in punctual else slow_s)
        if answer.order is not None and expiry.must_have(answer.order[0], _ms(answer.sent_at - late_s)):
            yield f"{answer.instance} answers {answer.key} at {answer.at:.2f} with an expired window, {answer.order}"


def _slow_clocks(script: Script) -> tuple[set[str], float]:
    """Return the instances whose clocks are behind at times, and by how much at most."""
    steps = [step for step in script.steps if isinstance(step, Fault) and step.kind == "clock" and step.amount < 0]
    return {step.part for step in steps}, sum(-step.amount for step in steps)


def _wrong_ends(key: str, answers: Sequence[Answered], last: EntryOrder | None, expiry: Expiry) -> Iterator[str]:
    if not answers:
        yield f"{key} has no answer in the end"
    for answer in answers:
        if not _is_of(answer, last, expiry):
            yield f"{answer.instance} answers {key} in the end with {answer.order}, and the last is {last}"


def _wrong_updates(updates: Sequence[Watched], states: Sequence[EntryOrder | None], expiry: Expiry) -> Iterator[str]:
    """Yield the updates of a watcher that are older than the one before, or that no reader can have.

    The removal of a window precedes the window before it, which is the newest one again.
    """
    floor, found = 0, None
    for update in (one for one in updates if one.window_start is None):
        if update.has_expired:
            if found is not None and not expiry.may_have(found[0], _ms(update.at), update.newest, expiry.kept):
                yield f"{update} follows {found}"
            continue
        found = update.order
        state = next((at for at in range(floor, update.written) if _is_of(update, states[at], expiry)), None)
        if state is None:
            yield f"{update} is not of {states[floor : update.written]}"
        else:
            floor = state


def _repeated_updates(updates: Sequence[Watched], states: Sequence[EntryOrder | None]) -> Iterator[str]:
    """Yield the versions that a watch yields again, or after a later one, although nothing was removed meanwhile."""
    for before, update in pairwise(updates):
        both = before.order is not None and update.order is not None
        is_newer = (update.order, update.is_open is False) > (before.order, before.is_open is False) if both else True
        if not is_newer and not _has_removal(before.order, states[: update.written]):
            yield f"{update} follows {before}"


def _has_removal(order: EntryOrder | None, states: Sequence[EntryOrder | None]) -> bool:
    """Return whether a tombstone follows this state of a key: there is no state, or an earlier one follows."""
    since = states[states.index(order) :] if order in states else ()
    return any(after is None or (state is not None and after < state) for state, after in pairwise(since))


def _wrong_marks(key: str, found: Ledgers) -> Iterator[str]:
    """Yield the marks before which a watcher of a key that is never gone has not got a record before their position."""
    states, offsets = found.states[key], found.offsets[key]
    for mark in found.marked:
        layout = _layout_at(found.layouts, mark.at)
        if layout is None or mark.watcher not in (key, ALL):
            continue
        position = mark.positions.get(partition(key.encode(), layout.partitions), 0)
        first = bisect_left(found.times[key], layout.since) if layout.since else 0
        index = bisect_left(offsets, position, first, max(first, mark.written[key])) - 1
        order = states[index] if index >= first else None
        if order is None or found.expiry.may_have(order[0], _ms(mark.at + EXPIRED_S), mark.newest, found.expiry.kept):
            continue
        updates = [one for one in found.watched[: mark.after] if (one.watcher, one.key) == (mark.watcher, key)]
        if max((one.order for one in updates if one.order is not None), default=BEFORE_ALL) < order:
            yield f"{mark} precedes {order} of {key}"


def _layout_at(layouts: Sequence[Layout], time: float) -> Layout | None:
    """Return what all instances use at a time; None while they may use another number of partitions than the job."""
    begun = [layout for layout in layouts if layout.began <= time]
    is_used = begun[-1].since == 0 or time >= begun[-1].since + BOUND_S
    return begun[-1] if is_used else None


def _wrong_last(  # noqa: PLR0913, PLR0917  # all are facts of one watcher and key
    name: str,
    updates: Sequence[Watched],
    last: EntryOrder | None,
    answers: Sequence[Answered],
    expiry: Expiry,
    late_s: float,
) -> Iterator[str]:
    """Yield what is wrong with the last update: it is that of the last answer, but for windows that just expire.

    A watcher of many keys may miss that a key is gone, and each one that a window is, while it has no connection.
    """
    found = updates[-1].order if updates else None
    for answer in answers:
        order, at = answer.order, answer.at
        if found is None:
            is_right = order is None or expiry.may_have(order[0], _ms(at + EXPIRED_S), answer.newest, expiry.kept)
        elif order is None:
            is_right = name in (ALL, BY_VALUE) or (
                last is not None and not expiry.must_have(found[0], _ms(at - late_s))
            )
        else:
            is_right = found >= order
        if not is_right:
            yield f"the watcher {name} of {answer.key} ends with {found}, and the last answer is {order}"


def _updates(found: Ledgers, watcher: str, key: str) -> list[Watched]:
    return [one for one in found.watched if (one.watcher, one.key) == (watcher, key)]


def _wrong_changes(key: str, found: Ledgers, answers: Sequence[Answered]) -> Iterator[str]:
    """Yield the last versions that clients that watch only changes have not received, and that have not expired."""
    for answer in answers:
        for following in found.followings:
            order = missing(following, key, found.states[key], found.times[key])
            kept = found.expiry.kept
            if order and not found.expiry.may_have(order[0], _ms(answer.at + EXPIRED_S), answer.newest, kept):
                yield f"{following.name} has not received {order} of {key}, written after {following.began:.2f}"


def _wrong_windows(key: str, found: Ledgers) -> Iterator[str]:
    """Yield what is wrong with the updates of the watcher of all windows: each window has its own order."""
    updates, states = _updates(found, WINDOWS, key), found.windows[key]
    for start in {update.order[0] for update in updates if update.order is not None}:
        versions = [one for one in updates if one.order is not None and one.order[0] == start]
        yield from _wrong_updates(versions, [state.get(start) for state in states], found.expiry)
    if WINDOWS not in found.watchers:
        return
    seen, end = {one.order for one in updates}, found.answers[-1]
    for start, order in states[-1].items():
        if order not in seen and not found.expiry.may_have(start, _ms(end.at), end.newest, found.expiry.kept):
            yield f"the watcher of all windows has not received {order} of {key}"


def _wrong_matches(key: str, found: Ledgers, answers: Sequence[Answered], late_s: float) -> Iterator[str]:
    """Yield what is wrong with the updates of the watcher of a value, which receives the versions that have it."""
    updates = _updates(found, BY_VALUE, key)
    versions = [one for one in updates if one.order is not None]
    yield from _wrong_updates(versions, found.states[key], found.expiry)
    yield from (f"{one} has another value" for one in versions if one.order and plate(one.order) != FOUND_BY)
    if BY_VALUE in found.watchers:
        matching = [answer for answer in answers if answer.order is not None and plate(answer.order) == FOUND_BY]
        yield from _wrong_last(BY_VALUE, updates, found.states[key][-1], matching, found.expiry, late_s)


def _wrong_closes(script: Script, key: str, found: Ledgers, answers: Sequence[Answered]) -> Iterator[str]:
    """Yield the closed windows that changed, and those that stay open."""
    answered = (*found.answers, *found.of_windows)
    closed: list[Answered | Watched] = [one for one in answered if one.key == key and one.is_open is False]
    closed += [one for one in found.watched if one.key == key and one.is_open is False]
    for one in closed:
        assert one.order is not None
        start, epoch, version = one.order
        if version < found.last_versions[key, start, epoch]:
            yield f"{one} is of a closed window, and changed"
    watchers = {key} if any(isinstance(step, Fault) for step in script.steps) else {key, ALL}
    for answer in answers:
        if answer.order is None or not found.expiry.must_be_closed(answer.order[0], _ms(answer.sent_at - CLOSED_S)):
            continue
        if answer.is_open:
            yield f"{answer} is of an open window, which is closed"
        for name in sorted(watchers):
            last = _updates(found, name, key)[-1:]
            yield from (f"{one} is of an open window, which is closed" for one in last if one.is_open)


def _ms(at: float) -> int:
    """Return a time of a script in milliseconds since 1970."""
    return round(time_at(at).timestamp() * 1000)
