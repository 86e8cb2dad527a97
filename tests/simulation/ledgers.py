"""Judges a run by its ledgers: what was produced, the calls, the feedback and the snapshots."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from contracts import Emit
from contracts.records.record import Reason
from contracts.types.origin import Origin
from contracts.wire import REDRIVEN, DeadLetter, Feedback
from tests.simulation.answers import accepted_forgery, explained, true_answers
from tests.simulation.application import EMIT_INTERVAL, HEAVY, WEBHOOK, application_of
from tests.simulation.closed import closed_problems
from tests.simulation.deliveries import delivery_problems
from tests.simulation.derived import derive_problems
from tests.simulation.layout import layout_problems, unread_problems
from tests.simulation.oracle import KEPT_FOR, SKEW, expected
from tests.simulation.quiet import ANSWERED_S, QUIET_S, answered_within_s, quiet_times, recovers_at
from tests.simulation.recorded import before, by_window, decoded
from tests.simulation.refreshed import Refreshes
from tests.simulation.script import ENDS_S, FOLLOWED_S, FORGED, Forged, Redrive, time_at
from tests.simulation.stored import store_problems

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from contracts.records.record import Record
    from contracts.wire import Snapshot
    from tests.simulation.answers import Answers
    from tests.simulation.oracle import LastEvent
    from tests.simulation.recorded import Ledgers
    from tests.simulation.script import Script

    Window = tuple[str, datetime]

SETTLED_S = 60.0
"""The time after a fault by which the requests that it has made fail are in their dead letters."""
NO_BACKLOG = 1000
"""The size of backlogs that no script reaches."""
SHORT_S = 60.0
"""The length of batches of which there are enough after the last fault: a job that starts in a quiet loop knows the
broker's clock only after it has read its own heartbeat."""
PROGRESS_READ_S = ENDS_S - FOLLOWED_S
"""The time at which the progress is read."""
FOLLOWED = timedelta(seconds=FOLLOWED_S)
PROGRESS_BATCHES = 2
"""The age of the progress, in batches: a check begins with one, and ends with the next."""
HEARTBEAT_BATCHES = 4
"""How far the watermark is behind, in batches: two of the progress, one that a heartbeat waits, and one to read it."""
REPEATS = 3
"""How often a fault may repeat a call: it may begin two rebalances, and one at its end."""


def problems(script: Script, ledgers: Ledgers) -> list[str]:
    """Return what is wrong with a run; nothing if it kept all promises."""
    return list(_Judge(script, ledgers).problems())


class _Judge:
    def __init__(self, script: Script, ledgers: Ledgers) -> None:
        self._script = script
        self._ledgers = ledgers
        self._application = application_of(script)
        self._kept_for = KEPT_FOR[script.application]
        emit = self._application.emit
        self._emits_closed = emit is Emit.CLOSE
        self._batch_s = script.batch_s if emit is Emit.EVENT else EMIT_INTERVAL.total_seconds()
        topics, records = self._application.topics, ledgers.records
        self._events, self._feedback = records[topics.events], records.get(topics.feedback, ())
        self._layouts = [script.partitions, *(growth.partitions for growth in ledgers.growths)]
        self._expected = expected(self._application, self._events, self._layouts)
        self._snapshots = list(decoded(records[topics.snapshots]))
        self._published = by_window(self._snapshots, ENDS_S)
        self._explained = explained(self._application, self._published)
        self._letters = [
            (record.key, DeadLetter.model_validate_json(record.value or b"")) for record in records[topics.dead_letters]
        ]
        forged = [answer for step in script.steps if (answer := accepted_forgery(step)) is not None]
        self._forged = {(answer.device_id, answer.first_seen) for answer in forged}
        """The windows with forged answers that may win over true ones."""
        self._refreshes = Refreshes(script, ledgers, self._application, self._snapshots, self._forged)
        self._refreshes.add_explained(self._explained)
        self._failures = {
            (key, letter.first_seen, letter.enrichment)
            for key, letter in self._letters
            if letter.reason == Reason.ENRICHMENT_FAILED
        }

    def problems(self) -> Iterator[str]:
        yield from self._ledgers.errors
        if self._ledgers.former_jobs:
            yield f"{self._ledgers.former_jobs} jobs of former checkpoints run"
        if not self._script.grows:
            yield from self._ledgers.refused_savepoints
        yield from self._windows()
        if self._emits_closed:
            yield from closed_problems(self._script, self._snapshots, self._expected.windows, self._kept_for)
        yield from self._versions()
        yield from self._refusals()
        yield from self._refused_answers()
        yield from self._answers()
        for at in quiet_times(self._script):
            yield from self._states(at)
        yield from self._calls()
        yield from self._refreshes.problems()
        yield from self._budget()
        yield from self._backlog()
        yield from self._progress()
        yield from self._redriven()
        yield from self._expiry()
        yield from layout_problems(self._ledgers, self._application)
        if self._script.sinks:
            yield from store_problems(self._script, self._ledgers, self._application)
        if self._script.derivers:
            yield from derive_problems(self._script, self._ledgers, self._application)
        if self._script.derivers and not self._script.grows:
            repeats = self._repeats({WEBHOOK.api})
            yield from delivery_problems(self._ledgers, self._application, repeats, self._redelivered_at())

    def _windows(self) -> Iterator[str]:
        """Each window with a valid event has snapshots, and no window without a valid record has any.

        With `Emit.CLOSE`, a window has none that is not over, or of which the last state lacks events.
        """
        missing = datetime.fromtimestamp(max(0, self._ledgers.commit.unpublished.missing) / 1000, UTC)
        for window in self._expected.windows.keys() - self._published.keys():
            if not self._emits_closed or missing < window[1] < self._forgotten():
                yield f"{_named(window)} has no snapshot"
        if not any(step.topic == "feedback" for step in self._script.steps if isinstance(step, Forged)):
            for window in self._published.keys() - self._expected.windows.keys():
                yield f"{_named(window)} has snapshots without a valid event"

    def _versions(self) -> Iterator[str]:
        """The last record of a window has its greatest version, no version is skipped, and none comes after the end."""
        has_job_fault = any(fault.part in {"job", "broker"} for fault in self._script.faults)
        may_skip = self._script.backlog < NO_BACKLOG or self._script.replaces_state
        may_skip = may_skip or self._application.emit is not Emit.EVENT
        for window, snapshots in self._published.items():
            orders = [snapshot.order for snapshot in snapshots]
            if orders[-1] != max(orders):
                yield f"the last record of {_named(window)} is {orders[-1]}, after {max(orders)}"
            versions = {version for _, version in orders}
            if not may_skip and versions != set(range(1, max(versions) + 1)):
                yield f"{_named(window)} lacks versions"
            if not has_job_fault and any(later <= earlier for earlier, later in pairwise(orders)):
                yield f"{_named(window)} repeats versions"
            if max(snapshot.as_of for snapshot in snapshots) > window[1] + self._kept_for:
                yield f"{_named(window)} has changed after its end"

    def _refusals(self) -> Iterator[str]:
        """Each refused event has a dead letter with the reason, and no other event has one."""
        events = self._application.topics.events
        found = {(one.partition, one.offset): one.reason for _, one in self._letters if one.topic == events}
        if found != self._expected.refused:
            yield f"the dead letters of events are {found}, and {self._expected.refused} are expected"

    def _refused_answers(self) -> Iterator[str]:
        """The job refuses no answer of a worker, unless its window was over."""
        topic, answers = self._application.topics.feedback, {(one.partition, one.offset): one for one in self._feedback}
        forged = {step.value for step in self._script.steps if isinstance(step, Forged)}
        for _, letter in self._letters:
            if letter.topic != topic or (record := answers[letter.partition, letter.offset]).value in forged:
                continue
            first_seen = Feedback.model_validate_json(record.value or b"").first_seen
            if letter.reason != Reason.LATE or record.timestamp <= first_seen + self._kept_for:
                yield f"the answer {record.value!r} is refused: {letter.reason} {letter.detail}"

    def _answers(self) -> Iterator[str]:
        """Each answer is true, or a failure of an API, with a dead letter of the same request."""
        requests = {_request(key, letter) for key, letter in self._letters}
        may_fail = any(fault.part in self._application.apis for fault in self._script.faults)
        for feedback in self._true_feedback():
            name, identity = feedback.enrichment, (feedback.enrichment, feedback.fingerprint)
            if feedback.status == "failure":
                if not may_fail:
                    yield f"{feedback} has failed, and no API has"
                if _request(feedback.device_id.encode(), feedback) not in requests:
                    yield f"{feedback} has no dead letter"
            else:
                found = (feedback.result or {}).get(name)
                if identity not in self._explained.results or found != self._explained.results[identity]:
                    yield f"{feedback} is not true"

    def _true_feedback(self) -> Iterator[Feedback]:
        """The answers of the workers for which they have called an API."""
        forged = {step.value for step in self._script.steps if isinstance(step, Forged)}
        for record in self._feedback:
            if record.value is not None and record.value not in forged:
                feedback = Feedback.model_validate_json(record.value)
                if feedback.status != "skipped" and feedback.fingerprint != REDRIVEN:
                    yield feedback

    def _states(self, at: float) -> Iterator[str]:
        """At a quiet time, the last snapshot of each window has the expected state, and the true answers."""
        states = expected(self._application, before(at, self._events), self._layouts)
        published = by_window(self._snapshots, at)
        for window in sorted(states.windows.keys() & published.keys()):
            last, state = max(published[window], key=lambda one: one.order), states.windows[window]
            if last.state != state:
                yield f"at {at:g}, {_named(window)} has {last.state}, and its events give {state}"
            elif not self._has_last(last, states.last[window]):
                yield f"{last} is not of the last event, {states.last[window]}"
            elif self._is_complete(window, at) and self._is_within_budget(window):
                true = self._refreshes.required(true_answers(self._application, last), last, at)
                yield from self._slots(last, true, at)
                yield from self._refreshes.stale(last, at)

    def _has_last(self, snapshot: Snapshot, last: LastEvent) -> bool:
        """Return whether a snapshot has the time and the offset of the last event of its window."""
        has_offset = self._application.state.is_windowed or last.may_have(
            snapshot.event_offset, is_grown=self._script.grows
        )
        return snapshot.as_of >= last.at and has_offset

    def _is_within_budget(self, window: Window) -> bool:
        """Return whether the budget of a window allows what its snapshots explain, and one answer more than it has."""
        if (budget := self._application.budget) is None:
            return True
        explained = sum(count for identity, count in self._explained.answers.items() if identity[0] == window)
        answered = sum((feedback.device_id, feedback.first_seen) == window for feedback in self._true_feedback())
        return explained <= budget.requests and answered < budget.requests

    def _budget(self) -> Iterator[str]:
        """No window has more answers in a period than its budget allows, while all APIs work."""
        budget, apis = self._application.budget, self._application.apis
        if budget is None or any(fault.part in apis for fault in self._script.faults):
            return
        disruptions = len(self._script.faults) + self._ledgers.redrives + len(self._forged)
        most = budget.requests * (1 + REPEATS * disruptions)
        periods: Counter[tuple[Window, int]] = Counter()
        for feedback in self._true_feedback():
            since = feedback.ts - feedback.first_seen
            if since % budget.per > timedelta(seconds=2 * ANSWERED_S):  # else it may be of the period before
                periods[(feedback.device_id, feedback.first_seen), since // budget.per] += 1
        for (window, period), count in periods.items():
            if count > most:
                yield f"{_named(window)} has {count} answers in period {period}, and {most} are allowed"

    def _slots(self, last: Snapshot, true: Answers, at: float) -> Iterator[str]:
        failed = {name for name, answer in last.enrichments.items() if answer.status == "failure"}
        for name in failed:
            if (last.device_id.encode(), last.first_seen, name) not in self._failures:
                yield f"{name} of {_named(last.window)} has failed without a dead letter"
            if self._is_redriven(last.window, at):
                yield f"{name} of {_named(last.window)} has failed, and was not requested again"
        if last.window in self._forged:
            owner = last.enrichments.get("owner")
            if "owner" in true and owner is not None and owner.fingerprint == FORGED:
                yield f"the forged owner of {_named(last.window)} was not replaced"
            return  # what replaces it has its version, and closes the slot for others
        for name, answer in true.items():
            found = last.enrichments.get(name)
            if found is None:
                yield f"{name} of {_named(last.window)} has no answer at {at:g}"
            elif not failed and (found.status, found.result) != answer:
                yield f"{name} of {_named(last.window)} is {found}, and {answer} is true"

    def _is_redriven(self, window: Window, until: float) -> bool:
        """Return whether a redrive has repeated all failures: no API has failed since, and no part shortly before."""
        if self._application.budget is not None:
            return False
        apis, faults = self._application.apis, self._script.faults
        redriven = [step.at for step in self._script.steps if isinstance(step, Redrive)]
        return any(
            all(fault.at + fault.lasts + SETTLED_S < at for fault in faults if fault.at < at or fault.part in apis)
            and max([at, *(fault.at + fault.lasts for fault in faults)]) + QUIET_S < min(self._end_s(window), until)
            for at in redriven
        )

    def _redriven(self) -> Iterator[str]:
        """A redrive sends each refused record again, once."""
        topics = self._application.topics
        inputs = {(one.topic, one.partition, one.offset): one for one in (*self._events, *self._feedback)}
        copies = Counter(one.position for one in map(_origin, inputs.values()) if one is not None)
        begun = max([step.at for step in self._script.steps if isinstance(step, Redrive)], default=0.0)
        for record in self._ledgers.records[topics.dead_letters]:
            letter = DeadLetter.model_validate_json(record.value or b"")
            refused = inputs.get((letter.topic, letter.partition, letter.offset))
            if refused is None or letter.reason == Reason.EMPTY or record.timestamp >= time_at(begun):
                continue
            origin = _origin(refused)
            position = f"{letter.topic}/{letter.partition}/{letter.offset}" if origin is None else origin.position
            if not 0 < copies[position] <= self._ledgers.redrives:
                yield f"{position} was sent again {copies[position]} times by {self._ledgers.redrives} redrives"

    def _redelivered_at(self) -> float | None:
        """Return when the last redrive began after all faults of the webhook; None if there was none."""
        ends = [fault.at + fault.lasts for fault in self._script.faults if fault.part == WEBHOOK.api]
        begun = [step.at for step in self._script.steps if isinstance(step, Redrive)]
        return max((at for at in begun if at > max(ends, default=0.0)), default=None)

    def _calls(self) -> Iterator[str]:
        """No call and no answer is repeated without a fault that explains it."""
        repeats = self._repeats({*self._application.apis, WEBHOOK.api})
        for target, count in Counter(call.target for call in self._ledgers.calls if call.is_answered).items():
            if count > (most := self._explained.calls[target] * repeats):
                yield f"{target} was called {count} times, and {most} are explained"
        for identity, count in Counter(map(_identity, self._true_feedback())).items():
            if count > (most := self._explained.answers[identity] * repeats):
                yield f"{identity} was answered {count} times, and {most} are explained"

    def _backlog(self) -> Iterator[str]:
        """Everything is read and committed: no part waits for ever."""
        for at in quiet_times(self._script):
            for group, topic in self._groups():
                committed = self._ledgers.committed[at].get(group, {})
                if self._script.grows and at == ENDS_S:
                    yield from unread_problems(f"{group} is", committed, self._ledgers.logs[topic])
                    continue
                for record in before(at - SETTLED_S, self._ledgers.records[topic]):
                    if committed.get(record.partition, 0) <= record.offset:
                        yield f"at {at:g}, {group} has committed {committed}, without {topic} {record[1:3]}"
                        break
        positions = self._ledgers.commit.positions
        least = time_at(ENDS_S - QUIET_S - self._batch_s)
        for record in (*self._events, *self._feedback):
            if record.timestamp < least and positions[record.topic, record.partition] <= record.offset:  # type: ignore[index]
                yield f"the job has not committed {record.topic} {record.partition} {record.offset}"

    def _groups(self) -> Iterator[tuple[str, str]]:
        """The consumer groups, and the topics that they read."""
        application, topics = self._application, self._application.topics
        if application.enrichments:
            yield application.enrichment_group, topics.snapshots
        if self._script.derivers:
            yield application.derive_group, topics.snapshots
        if self._script.derivers and not self._script.grows:
            yield application.webhook_group(HEAVY), topics.derived(HEAVY.name)

    def _progress(self) -> Iterator[str]:
        """The job has recorded its progress: it is some batches old, because all faults ended long before."""
        if self._batch_s > SHORT_S:
            return
        least = time_at(PROGRESS_READ_S - QUIET_S - PROGRESS_BATCHES * self._batch_s)
        least = self._forgotten() - FOLLOWED if self._emits_closed else least
        found = self._ledgers.progress
        for number in range(len(self._ledgers.logs[self._application.topics.snapshots])):
            if number not in found or found[number].time < least:
                yield f"the progress in partition {number} is {found.get(number)}, and {least} is expected"

    def _expiry(self) -> Iterator[str]:
        """The job has forgotten the windows that ended long ago, by heartbeats alone if no event came."""
        if self._batch_s > SHORT_S:
            return
        for window in self._ledgers.commit.windows:
            if window[1] < self._forgotten():
                yield f"the job has {_named(window)} still"

    def _forgotten(self) -> datetime:
        """Return the time before which windows begin that the job has forgotten at the end."""
        return time_at(ENDS_S - QUIET_S - HEARTBEAT_BATCHES * self._batch_s) - self._kept_for - SKEW

    def _repeats(self, apis: Collection[str]) -> int:
        """Return how often something happens at most that happens once without a fault, but of these APIs."""
        disruptions = sum(fault.part not in apis for fault in self._script.faults)
        return 1 + REPEATS * (disruptions + self._ledgers.redrives + len(self._forged))

    def _is_complete(self, window: Window, at: float) -> bool:
        """Return whether the loop was quiet for some time before the window ended, and before this time."""
        end_s = min(self._end_s(window), at)
        steps = self._script.steps
        sent = [one.at for one in steps if isinstance(one, Forged | Redrive) or getattr(one, "device", "") == window[0]]
        sent = [one for one in sent if one < at]
        broken = [recovers_at(self._script, fault) for fault in self._script.faults if fault.at < end_s]
        return max([0.0, *sent]) + answered_within_s(self._script) < end_s and max([0.0, *broken]) < end_s

    def _end_s(self, window: Window) -> float:
        return min((window[1] + self._kept_for - time_at(0.0)) / timedelta(seconds=1), ENDS_S)


def _request(key: bytes | None, found: Feedback | DeadLetter) -> tuple[object, ...]:
    """Return what a failure and its dead letter share."""
    return key, found.first_seen, found.enrichment, found.epoch, found.version


def _origin(record: Record) -> Origin | None:
    """Return the origin of a record that was sent again."""
    return Origin.read("", 0, dict(record.headers)) if record.headers else None


def _named(window: Window) -> str:
    return f"{window[0]} since {window[1]:%H:%M:%S}"


def _identity(feedback: Feedback) -> tuple[Window, str, str]:
    return (feedback.device_id, feedback.first_seen), feedback.enrichment, feedback.fingerprint
