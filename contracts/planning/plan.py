"""The requests that a snapshot calls for, as pure functions."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from contracts.model.application import Application
from contracts.model.enrichment import Enrichment
from contracts.model.tracing import carried
from contracts.planning.admission import admit
from contracts.planning.fingerprint import fingerprint, skip_fingerprint
from contracts.planning.inputs import NO_INPUTS, Inputs, inputs_of
from contracts.planning.request import Request
from contracts.wire import LARGEST_COUNT, Answer, Snapshot, Status

__all__ = ["EnrichmentStatus", "Request", "answered", "enrichment_status", "fingerprint", "plan", "settled", "wanted"]


class EnrichmentStatus(StrEnum):
    """The status of an enrichment on one snapshot."""

    WAITING = "waiting"
    """A dependency has no value yet, or only one of former inputs."""
    SKIPPED = "skipped"
    """A dependency has no result or was skipped, so this one cannot run; or its condition is false."""
    PLANNABLE = "plannable"
    TOO_SOON = "too_soon"
    """The last request is too recent (`at_most_every`): a later snapshot plans the next one."""
    OVER_BUDGET = "over_budget"
    """The device's budget is spent: the first snapshot of the next period plans it."""
    ANSWERED = "answered"
    CLOSED = "closed"
    """The job would not accept an answer: the window has expired, or the slot has one of a later version."""


class _Evaluation(NamedTuple):
    """The status of an enrichment or of a field of the state, and the value that its dependents receive."""

    enrichment_status: EnrichmentStatus
    result: Any = None
    """The result of an answer to the current inputs, even a stale one."""
    is_pending: bool = False
    """Whether a first answer to the current inputs is requested, of this one or of a dependency."""
    status: Status | None = None
    """The status of the answer to the current inputs."""
    request: Request | None = None

    @property
    def gives_nothing(self) -> bool:
        """Whether the current inputs have no result."""
        return self.enrichment_status in (EnrichmentStatus.ANSWERED, EnrichmentStatus.SKIPPED) and self.result is None


def plan(application: Application, snapshot: Snapshot, now: datetime) -> list[Request]:
    """Return the requests that this snapshot calls for and that may start now, by its slots alone."""
    return admit(application, snapshot, now, wanted(application, snapshot, now, now), {}).admitted


def wanted(application: Application, snapshot: Snapshot, now: datetime, broker_now: datetime) -> list[Request]:
    """Return the requests that this snapshot calls for: all inputs present, and no answer to them or a stale one.

    An enrichment that is skipped gets one request without a call. There are no requests once the window and its grace
    have ended by both clocks, `now` and the broker's, except in a replay, whose times do not follow a clock.
    """
    return _requests(_evaluations(application, snapshot, now, broker_now))


def answered(application: Application, snapshot: Snapshot, now: datetime) -> set[str]:
    """Return the enrichments whose slot has the answer to the present inputs, or the present reason of a skip.

    A stale answer does not count, nor one of this version or a later one, which may be forged.
    """
    evaluations = _evaluations(application, snapshot, now, snapshot.first_seen)  # of a window that is over too
    return {
        enrichment.name
        for enrichment in application.enrichments
        if (answer := snapshot.enrichments.get(enrichment.name)) is not None
        and answer.order < snapshot.order
        and evaluations[enrichment.name].status is not None
        and evaluations[enrichment.name].request is None
    }


def enrichment_status(
    application: Application, enrichment: Enrichment, snapshot: Snapshot, now: datetime
) -> EnrichmentStatus:
    """Return the status of one enrichment on a snapshot."""
    evaluations = _evaluations(application, snapshot, now, now)
    evaluation, admission = evaluations[enrichment.name], admit(application, snapshot, now, _requests(evaluations), {})
    if evaluation.request in admission.too_soon:
        return EnrichmentStatus.TOO_SOON
    return EnrichmentStatus.OVER_BUDGET if evaluation.request in admission.over_budget else evaluation.enrichment_status


def is_expired(application: Application, snapshot: Snapshot, now: datetime) -> bool:
    """Return whether the job would refuse an answer as late."""
    return not application.topics.replay and now - snapshot.first_seen > application.kept_for


def settled(application: Application, snapshot: Snapshot, now: datetime) -> bool:
    """Return whether the snapshot calls for no request."""
    return not plan(application, snapshot, now)


def _evaluations(
    application: Application, snapshot: Snapshot, now: datetime, broker_now: datetime
) -> dict[str, _Evaluation]:
    """Evaluate all enrichments, each after its dependencies, against the current inputs."""
    is_over = is_expired(application, snapshot, min(now, broker_now))
    evaluations: dict[str, _Evaluation] = {}
    for enrichment in application.enrichments:
        needs = {
            need.name: evaluations.get(need.name) or _field(snapshot.state.get(need.name)) for need in enrichment.needs
        }
        closed = is_over or not _can_replace(
            snapshot.enrichments.get(enrichment.name), snapshot, now, application.state.grace
        )
        evaluations[enrichment.name] = _blocked(enrichment, needs, snapshot, closed=closed) or _free(
            enrichment, needs, snapshot, now, closed=closed
        )
    return evaluations


def _requests(evaluations: dict[str, _Evaluation]) -> list[Request]:
    return [evaluation.request for evaluation in evaluations.values() if evaluation.request]


def _field(value: Any) -> _Evaluation:
    return _Evaluation(EnrichmentStatus.WAITING if value is None else EnrichmentStatus.ANSWERED, value)


def _blocked(
    enrichment: Enrichment, needs: dict[str, _Evaluation], snapshot: Snapshot, *, closed: bool
) -> _Evaluation | None:
    """Return the evaluation of an enrichment that its dependencies block; None if they do not."""
    without_result, is_missing, is_pending = [], False, False
    for need in enrichment.needs:
        evaluation = needs[need.name]
        is_pending = is_pending or evaluation.is_pending
        if evaluation.result is None and not need.optional:
            is_missing = is_missing or not evaluation.is_pending
            if evaluation.gives_nothing:
                without_result.append(f"{need.name}: {evaluation.status}")
    if without_result:
        return _skipped(enrichment, ", ".join(without_result), snapshot, closed=closed)
    return _Evaluation(EnrichmentStatus.WAITING, is_pending=not is_missing) if is_missing or is_pending else None


def _free(
    enrichment: Enrichment, needs: dict[str, _Evaluation], snapshot: Snapshot, now: datetime, *, closed: bool
) -> _Evaluation:
    """Evaluate an enrichment that has its inputs."""
    values = {name: need.result for name, need in needs.items()}
    inputs = inputs_of(enrichment, values, snapshot.enrichments.get(enrichment.name))
    if enrichment.when and (unmet := enrichment.when.unmet(inputs.values)):
        return _skipped(enrichment, unmet, snapshot, closed=closed)
    return _evaluated(enrichment, inputs, snapshot, now, closed=closed)


def _evaluated(
    enrichment: Enrichment, inputs: Inputs, snapshot: Snapshot, now: datetime, *, closed: bool
) -> _Evaluation:
    """Evaluate an enrichment that can run, by the answer in its slot."""
    answer = snapshot.enrichments.get(enrichment.name)
    if answer is not None and inputs.is_answered:
        if closed or not _is_stale(enrichment, answer, now):
            return _Evaluation(EnrichmentStatus.ANSWERED, answer.result, status=answer.status)
        request = _request(enrichment, inputs, snapshot)
        return _Evaluation(EnrichmentStatus.PLANNABLE, answer.result, status=answer.status, request=request)
    if closed:
        return _Evaluation(EnrichmentStatus.CLOSED)
    return _Evaluation(EnrichmentStatus.PLANNABLE, is_pending=True, request=_request(enrichment, inputs, snapshot))


def _skipped(enrichment: Enrichment, reason: str, snapshot: Snapshot, *, closed: bool) -> _Evaluation:
    """Evaluate a skipped enrichment: its slot must have the reason, for readers of the state."""
    answer, named = snapshot.enrichments.get(enrichment.name), skip_fingerprint(enrichment, reason)
    is_recorded = answer is not None and answer.fingerprint == named
    if is_recorded or closed:
        return _Evaluation(EnrichmentStatus.SKIPPED, status="skipped")
    request = _request(enrichment, Inputs(NO_INPUTS, named, 1, is_answered=False), snapshot, reason)
    return _Evaluation(EnrichmentStatus.SKIPPED, status="skipped", request=request)


def _can_replace(answer: Answer | None, snapshot: Snapshot, now: datetime, grace: timedelta) -> bool:
    """Return whether an answer that is computed now may replace the slot's.

    A true answer is merged after the version that it was computed from. One of this version or a later one is either
    true, while the job reads again what it had read before a crash, or forged. The job does that within the grace, so
    an answer that is older (or from the future) is forged, and is replaced.
    """
    if answer is None or answer.order < snapshot.order:
        return True
    return answer.version < LARGEST_COUNT and not timedelta(0) <= now - answer.ts <= grace


def _is_stale(enrichment: Enrichment, answer: Answer, now: datetime) -> bool:
    """Return whether an answer is too old. One whose time lies as far ahead, by a wrong clock, is of unknown age."""
    return enrichment.stale_after is not None and abs(now - answer.ts) > enrichment.stale_after


def _request(enrichment: Enrichment, inputs: Inputs, snapshot: Snapshot, skipped: str | None = None) -> Request:
    return Request(
        device_id=snapshot.device_id,
        first_seen=snapshot.first_seen,
        enrichment=enrichment.name,
        fingerprint=inputs.fingerprint,
        version=_version(snapshot.enrichments.get(enrichment.name), snapshot),
        as_of=snapshot.as_of,
        inputs=inputs.values,
        skipped=skipped,
        traceparent=carried(snapshot.traceparent),
        round=inputs.round,
        epoch=snapshot.epoch,
        alias=enrichment.aliases.get(enrichment.name),
    )


def _version(answer: Answer | None, snapshot: Snapshot) -> int:
    """Return the version of the answer: the snapshot's, or one that replaces an impossible one in the slot."""
    return snapshot.version if answer is None or answer.order < snapshot.order else answer.version + 1
