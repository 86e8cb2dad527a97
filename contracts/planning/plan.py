"""Which requests a snapshot calls for: the one decision that the loop turns on, as pure functions."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from contracts.model.application import Application
from contracts.model.enrichment import Enrichment
from contracts.planning.admission import afford
from contracts.planning.fingerprint import fingerprint, skip_fingerprint
from contracts.planning.inputs import NO_INPUTS, Question, question
from contracts.planning.request import Request
from contracts.wire import LARGEST_COUNT, Answer, Snapshot, Status

__all__ = ["Progress", "Request", "fingerprint", "plan", "progress", "settled", "wanted"]


class Progress(StrEnum):
    """Where an enrichment stands on one snapshot."""

    WAITING = "waiting"
    """A need has no value yet, or only one whose own inputs have changed since."""
    SKIPPED = "skipped"
    """A need was answered without a result, or was skipped, so this one cannot run; or its condition is false."""
    PLANNABLE = "plannable"
    HELD = "held"
    """It comes too soon after the last request (`at_most_every`): a later snapshot plans it."""
    STOPPED = "stopped"
    """The device's budget is spent: the first snapshot of the next period plans it."""
    ANSWERED = "answered"
    CLOSED = "closed"
    """An answer could not count: the window has expired, or the slot has one of a version that is still to come."""


class _Standing(NamedTuple):
    """Where an enrichment, or a field of the state, stands, and what that means for those that need it."""

    progress: Progress
    result: Any = None
    """What serves those that need it: that of an answer to the present inputs, even a stale one."""
    coming: bool = False
    """Whether a first answer to the present inputs is being asked for, of this one or of what it waits for."""
    status: Status | None = None
    """Of the answer to the present inputs."""
    request: Request | None = None

    @property
    def gives_nothing(self) -> bool:
        """Whether the present inputs lead to no result."""
        return self.progress in (Progress.ANSWERED, Progress.SKIPPED) and self.result is None


def plan(application: Application, snapshot: Snapshot, now: datetime) -> list[Request]:
    """The requests that this snapshot calls for and that may begin now, as far as its slots tell."""
    return afford(application, snapshot, now, wanted(application, snapshot, now), {}).begin


def wanted(application: Application, snapshot: Snapshot, now: datetime) -> list[Request]:
    """The requests that this snapshot calls for: inputs present, and not answered for them, or too long ago.

    One that cannot or need not run is told so once, by a request without a call. None at all once the life and its
    grace are over by the clock; a replay's times are not those of the clock.
    """
    return _requests(_standings(application, snapshot, now))


def progress(application: Application, one: Enrichment, snapshot: Snapshot, now: datetime) -> Progress:
    """Where one enrichment stands on a snapshot."""
    standings = _standings(application, snapshot, now)
    standing, afforded = standings[one.name], afford(application, snapshot, now, _requests(standings), {})
    if standing.request in afforded.held:
        return Progress.HELD
    return Progress.STOPPED if standing.request in afforded.stopped else standing.progress


def settled(application: Application, snapshot: Snapshot, now: datetime) -> bool:
    """Whether no enrichment can run or is under way: what the state has now is all that it calls for."""
    return not plan(application, snapshot, now)


def _standings(application: Application, snapshot: Snapshot, now: datetime) -> dict[str, _Standing]:
    """All enrichments, each after what it needs: what a slot still holds of former inputs serves nobody."""
    over = _is_over(application, snapshot, now)
    found: dict[str, _Standing] = {}
    for one in application.enrichments:
        needs = {need.name: found.get(need.name) or _field(snapshot.state.get(need.name)) for need in one.needs}
        closed = over or not _can_replace(snapshot.enrichments.get(one.name), snapshot, now, application.state.grace)
        found[one.name] = _blocked(one, needs, snapshot, closed=closed) or _free(
            one, needs, snapshot, now, closed=closed
        )
    return found


def _requests(standings: dict[str, _Standing]) -> list[Request]:
    return [standing.request for standing in standings.values() if standing.request]


def _is_over(application: Application, snapshot: Snapshot, now: datetime) -> bool:
    """Whether the job would refuse an answer as late."""
    return not application.topics.replay and now - snapshot.first_seen > application.kept_for


def _field(value: Any) -> _Standing:
    return _Standing(Progress.WAITING if value is None else Progress.ANSWERED, value)


def _blocked(one: Enrichment, needs: dict[str, _Standing], snapshot: Snapshot, *, closed: bool) -> _Standing | None:
    """What keeps an enrichment from running now, if anything does."""
    nothing, lacks, coming = [], False, False
    for need in one.needs:
        standing = needs[need.name]
        coming = coming or standing.coming
        if standing.result is None and not need.optional:
            lacks = lacks or not standing.coming
            if standing.gives_nothing:
                nothing.append(f"{need.name}: {standing.status}")
    if nothing:
        return _skipped(one, ", ".join(nothing), snapshot, closed=closed)
    return _Standing(Progress.WAITING, coming=not lacks) if lacks or coming else None


def _free(
    one: Enrichment, needs: dict[str, _Standing], snapshot: Snapshot, now: datetime, *, closed: bool
) -> _Standing:
    """Where an enrichment stands that has its inputs."""
    inputs = {name: need.result for name, need in needs.items()}
    asked = question(one, inputs, snapshot.enrichments.get(one.name))
    if one.when and (unmet := one.when.unmet(asked.inputs)):
        return _skipped(one, unmet, snapshot, closed=closed)
    return _asked(one, asked, snapshot, now, closed=closed)


def _asked(one: Enrichment, asked: Question, snapshot: Snapshot, now: datetime, *, closed: bool) -> _Standing:
    """Where an enrichment stands that can run, by the answer in its slot."""
    answer = snapshot.enrichments.get(one.name)
    if answer is not None and asked.answered:
        if closed or not _is_stale(one, answer, now):
            return _Standing(Progress.ANSWERED, answer.result, status=answer.status)
        request = _request(one, asked, snapshot)
        return _Standing(Progress.PLANNABLE, answer.result, status=answer.status, request=request)
    if closed:
        return _Standing(Progress.CLOSED)
    return _Standing(Progress.PLANNABLE, coming=True, request=_request(one, asked, snapshot))


def _skipped(one: Enrichment, reason: str, snapshot: Snapshot, *, closed: bool) -> _Standing:
    """The standing of one that is skipped: its slot must say so, and why, for whoever reads the state."""
    answer, named = snapshot.enrichments.get(one.name), skip_fingerprint(one, reason)
    told = answer is not None and answer.fingerprint == named
    if told or closed:
        return _Standing(Progress.SKIPPED, status="skipped")
    request = _request(one, Question(NO_INPUTS, named, 1, answered=False), snapshot, reason)
    return _Standing(Progress.SKIPPED, status="skipped", request=request)


def _can_replace(answer: Answer | None, snapshot: Snapshot, now: datetime, grace: timedelta) -> bool:
    """Whether an answer that is computed now may replace the slot's.

    A true answer is merged after the version that it was computed from. One of this version or a later one is either
    about to be caught up with, while the job reads again what it had read before a crash, or forged. The job does that
    within the grace, so an answer that is older (or from the future) is forged, and is replaced.
    """
    if answer is None or answer.order < snapshot.order:
        return True
    return answer.version < LARGEST_COUNT and not timedelta(0) <= now - answer.ts <= grace


def _is_stale(one: Enrichment, answer: Answer, now: datetime) -> bool:
    return one.stale_after is not None and now - answer.ts > one.stale_after


def _request(one: Enrichment, asked: Question, snapshot: Snapshot, skipped: str | None = None) -> Request:
    return Request(
        device_id=snapshot.device_id,
        first_seen=snapshot.first_seen,
        enrichment=one.name,
        fingerprint=asked.fingerprint,
        version=_version(snapshot.enrichments.get(one.name), snapshot),
        as_of=snapshot.as_of,
        inputs=asked.inputs,
        skipped=skipped,
        traceparent=snapshot.traceparent,
        round=asked.round,
        epoch=snapshot.epoch,
    )


def _version(answer: Answer | None, snapshot: Snapshot) -> int:
    """The version that the answer will have: the snapshot's, or one that replaces an impossible one in the slot."""
    return snapshot.version if answer is None or answer.order < snapshot.order else answer.version + 1
