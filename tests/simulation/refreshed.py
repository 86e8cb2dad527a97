"""Judges when the answers of the application `refreshed` are requested again: what is stale, and nothing too early."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from contracts.wire import REDRIVEN, Feedback
from tests.simulation.answers import owner_request
from tests.simulation.application import AT_MOST_EVERY, STALE_AFTER, is_loaded
from tests.simulation.oracle import KEPT_FOR
from tests.simulation.quiet import QUIET_S, recovers_at
from tests.simulation.script import ENDS_S, Fault, Forged, Redrive, time_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from contracts import Application
    from contracts.wire import Answer, Order, Snapshot
    from tests.simulation.answers import Answers, Explained
    from tests.simulation.oracle import Window
    from tests.simulation.recorded import Ledgers
    from tests.simulation.script import Script

ANSWERED = timedelta(seconds=15)
"""The time from the plan of a request to its answer, in a loop without a fault that runs several requests at once."""
LEAST = {"owner": STALE_AFTER, "quote": AT_MOST_EVERY - ANSWERED}
"""The time from one answer to the next that has the same inputs, or of a quote, any."""


class _Given(NamedTuple):
    """An answer of a worker, and when the broker had it."""

    at: datetime
    feedback: Feedback


class Refreshes:
    """The answers of a run by their times. It accepts everything from the other applications."""

    def __init__(
        self,
        script: Script,
        ledgers: Ledgers,
        application: Application,
        snapshots: Sequence[tuple[datetime, Snapshot]],
        forged: Collection[Window],
    ) -> None:
        self._script = script
        self._application = application
        self._is_judged = application.name == "refreshed"
        self._snapshots = snapshots
        self._forged = forged
        self._feedback = ledgers.records.get(application.topics.feedback, ())
        self._calls = ledgers.calls
        faults = script.faults
        self._clocks = [fault for fault in faults if fault.kind == "clock" and fault.part.startswith("worker")]

    def add_explained(self, explained: Explained) -> None:
        """Add a call for each stale answer to the present inputs that a snapshot has."""
        if not self._is_judged:
            return
        stale: dict[tuple[Window, datetime], str] = {}
        for written, snapshot in self._snapshots:
            answer, plate = snapshot.enrichments.get("owner"), snapshot.state.get("plate")
            if answer is None or plate is None or abs(written - answer.ts) < STALE_AFTER - ANSWERED:
                continue
            if answer.fingerprint == owner_request(plate).fingerprint(self._application):
                stale[snapshot.window, answer.ts] = plate
        for (window, _), plate in stale.items():
            request = owner_request(plate)
            explained.calls[request.target] += 1
            explained.answers[window, "owner", request.fingerprint(self._application)] += 1

    def required(self, true: Answers, last: Snapshot, at: float) -> Answers:
        """Return the true answers that the last snapshot at a quiet time must have.

        The quote of a car may be of former inputs if the snapshot came too soon after its last request.
        """
        is_skipped = true.get("quote", ("", None))[0] == "skipped"
        if not self._is_judged or is_skipped or not (self._is_too_soon(last, at) or self._may_have_superseded(last)):
            return true
        return {name: answer for name, answer in true.items() if name != "quote"}

    def stale(self, last: Snapshot, at: float) -> Iterator[str]:
        """The last snapshot at a quiet time has no owner that was stale when it came: there is a later answer."""
        if not self._is_judged or last.window in self._forged or (answer := last.enrichments.get("owner")) is None:
            return
        written = self._written(last)
        if written > self._ends(last) - ANSWERED:
            return
        clocks = [fault.at + fault.lasts for fault in self._clocks if fault.at < at]
        if written > time_at(max(clocks, default=0.0)) and abs(written - answer.ts) > STALE_AFTER:
            yield f"at {at:g}, the owner of {last.window} is of {answer.ts}, and its last snapshot of {written}"

    def problems(self) -> Iterator[str]:
        """No request came too early, and none had an answer of a cache that was stale before."""
        if self._is_judged:
            yield from self._early()
            yield from self._early_by_slot()
            yield from self._cached()

    def _early(self) -> Iterator[str]:
        """No answer is requested again too early, unless a fault before explains it."""
        busy = list(_busy(self._script))
        for (window, name), answers in self._answers().items():
            for former, later in pairwise(answers):
                begin, end = former.at - timedelta(seconds=QUIET_S), later.at
                is_early = later.feedback.ts - former.feedback.ts < LEAST[name]
                if not is_early or any(start < end and begin < stop for start, stop in busy):
                    continue
                if self._had_to_wait(window, former.feedback, later.feedback):
                    yield f"{name} of {window} was requested again too early: {former.feedback} and {later.feedback}"

    def _had_to_wait(self, window: Window, former: Feedback, later: Feedback) -> bool:
        """Return whether the later request had to wait.

        A quote may have waited for its own call, and for an owner the plate may have been another one meanwhile.
        """
        if former.enrichment == "quote":
            return self._script.in_flight > 1
        first, last = sorted([(former.epoch, former.version), (later.epoch, later.version)])
        of_window = (snapshot for _, snapshot in self._snapshots if snapshot.window == window)
        plates = {snapshot.state.get("plate") for snapshot in of_window if first <= snapshot.order <= last}
        return former.fingerprint == later.fingerprint and len(plates) == 1

    def _early_by_slot(self) -> Iterator[str]:
        """No request came too early by the slot of its snapshot, whatever happened between: the slot shows the former.

        Where the job has published the snapshot more than once, perhaps with other slots, one of them explains it.
        """
        if self._clocks:
            return
        slots: dict[tuple[Window, Order], list[Mapping[str, Answer]]] = defaultdict(list)
        for _, snapshot in self._snapshots:
            slots[snapshot.window, snapshot.order].append(snapshot.enrichments)
        for (window, name), answers in self._answers().items():
            for _, later in answers:
                known = [slot.get(name) for slot in slots[window, (later.epoch, later.version)]]
                if known and all(answer is not None and _is_early(later, answer) for answer in known):
                    yield f"{later} of {window} was requested too early by the slot of its snapshot, {known}"

    def _cached(self) -> Iterator[str]:
        """No owner is of a call so long ago that it was stale at once: caches have answers for longer.

        The time of an answer shows the call. If the clock was ahead, its record does, which faults may have delayed.
        """
        delay = timedelta(seconds=sum(fault.lasts for fault in self._script.faults))
        calls: dict[str, list[datetime]] = defaultdict(list)
        for call in self._calls:
            calls[call.target].append(time_at(call.at))
        plates = {snapshot.state["plate"] for _, snapshot in self._snapshots if "plate" in snapshot.state}
        requests = [owner_request(plate) for plate in plates]
        targets = {request.fingerprint(self._application): request.target for request in requests}
        for (window, name), answers in self._answers().items():
            for at, feedback in answers if name == "owner" else ():
                since = (at - delay if feedback.ts > at else feedback.ts) - STALE_AFTER - ANSWERED
                if not any(since <= call <= at for call in calls[targets.get(feedback.fingerprint, "")]):
                    yield f"no call since {since} gave {feedback} of {window}"

    def _answers(self) -> dict[tuple[Window, str], list[_Given]]:
        """The answers of owners and quotes for which workers have called an API, by window."""
        found: dict[tuple[Window, str], list[_Given]] = defaultdict(list)
        forged = {step.value for step in self._script.steps if isinstance(step, Forged)}
        for record in self._feedback:
            if record.value is None or record.value in forged:
                continue
            feedback = Feedback.model_validate_json(record.value)
            window = feedback.device_id, feedback.first_seen
            is_called = feedback.status != "skipped" and feedback.fingerprint != REDRIVEN
            if is_called and feedback.enrichment in LEAST and window not in self._forged:
                found[window, feedback.enrichment].append(_Given(record.timestamp, feedback))
        return found

    def _is_too_soon(self, last: Snapshot, at: float) -> bool:
        """Return whether a quote of the window was called for shortly before its last snapshot, or later.

        A snapshot that comes when the window is over, as after a rebuild, requests nothing: the one before it counts.
        """
        of_window = [(written, snapshot) for written, snapshot in self._snapshots if snapshot.window == last.window]
        alive = [snapshot for written, snapshot in of_window if written <= self._ends(last)]
        written = self._written(max(alive, key=lambda snapshot: snapshot.order)) if alive else self._written(last)
        loads = {snapshot.state["load"] for _, snapshot in of_window}
        since = (min(written, self._written(last)) - time_at(0.0) - AT_MOST_EVERY - ANSWERED) / timedelta(seconds=1)
        targets = tuple(f"/quotes?load={load}&" for load in loads)
        return any(since <= call.at <= at and call.target.startswith(targets) for call in self._calls)

    def _may_have_superseded(self, last: Snapshot) -> bool:
        """Return whether a skip came shortly before, and after a snapshot that calls for a quote.

        Its request counts from the time at which it starts, also if it waits for the limits of its API, without a call,
        when the skip supersedes it.
        """
        slot = last.enrichments.get("quote")
        if slot is None or slot.status != "skipped" or self._written(last) - slot.ts > AT_MOST_EVERY:
            return False
        return any(
            snapshot.window == last.window and snapshot.order < slot.order and is_loaded(snapshot.state["load"])
            for _, snapshot in self._snapshots
        )

    def _ends(self, last: Snapshot) -> datetime:
        return last.first_seen + KEPT_FOR[self._application.name]

    def _written(self, last: Snapshot) -> datetime:
        return min(
            written
            for written, snapshot in self._snapshots
            if (snapshot.window, snapshot.order) == (last.window, last.order)
        )


def _is_early(later: Feedback, former: Answer) -> bool:
    """Return whether a request came too early after the answer in its slot."""
    if later.enrichment == "quote":
        return former.status != "skipped" and former.fingerprint != REDRIVEN and later.ts - former.ts < AT_MOST_EVERY
    return former.fingerprint == later.fingerprint and later.ts - former.ts <= STALE_AFTER


def _busy(script: Script) -> Iterator[tuple[datetime, datetime]]:
    """The times at which a fault of a part that enriches, or a redrive, may repeat requests or delay them."""
    for step in script.steps:
        if isinstance(step, Redrive):
            yield time_at(step.at), time_at(step.at + QUIET_S)
        elif isinstance(step, Fault) and not step.part.startswith(("sink", "store", "derive", "webhook", "pager")):
            ends = ENDS_S if step.kind == "growth" else recovers_at(script, step)
            yield time_at(step.at), time_at(ends)
